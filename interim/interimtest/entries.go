package interimtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast/holdfast/interim"
)

func testPutGet(t *testing.T, s interim.Store) {
	a := attempt(1)
	// File names may contain anything: NUL, invalid UTF-8, and special characters of patterns and
	// SQL.
	first := map[string]string{
		"file/a": "1", "file/\x00": "\x00\xff", "\xff\xfe": "no utf-8", "file/*?[a]\\%_'": "signs",
		"empty": "", "ünï 字": strings.Repeat("x", 100_000),
	}
	put(t, s, a, first)
	holds(t, s, a, first)

	put(t, s, a, map[string]string{"file/a": "2", "new": "3"})
	holds(t, s, a, union(first, map[string]string{"file/a": "2", "new": "3"}))

	if err := s.Put(t.Context(), a, nil); err != nil {
		t.Errorf("put nothing: %v", err)
	}
	if err := s.Put(t.Context(), attempt(9), map[string][]byte{}); err != nil {
		t.Errorf("put nothing: %v", err)
	}
	if err := s.Put(t.Context(), a, map[string][]byte{"nil": nil}); err != nil {
		t.Errorf("put nil: %v", err)
	}
	for key, want := range map[string]string{"nil": "", "empty": "", "file/\x00": "\x00\xff", "file/a": "2"} {
		got, err := s.Get(t.Context(), a, key)
		if err != nil || !bytes.Equal(got, []byte(want)) {
			t.Errorf("get %q=%q, %v, want %q", key, got, err, want)
		}
	}
	for name, absent := range map[string]struct {
		a   interim.Attempt
		key string
	}{
		"key":     {a, "file/"},
		"attempt": {attempt(2), "file/a"},
		"item":    {interim.Attempt{ItemID: "other", N: 1}, "file/a"},
		"empty":   {a, ""},
	} {
		if got, err := s.Get(t.Context(), absent.a, absent.key); !errors.Is(err, interim.ErrNotFound) {
			t.Errorf("get of an absent %s=%q, %v, want ErrNotFound", name, got, err)
		}
	}
	holds(t, s, attempt(2), map[string]string{})
}

func testInvalid(t *testing.T, s interim.Store) {
	ctx := t.Context()
	for _, a := range []interim.Attempt{{}, {ItemID: "", N: 1}, {ItemID: "item", N: 0}, {ItemID: "item", N: -1}} {
		_, getErr := s.Get(ctx, a, "k")
		_, countErr := s.Count(ctx, a, "")
		_, adoptErr := s.Adopt(ctx, a)
		for method, err := range map[string]error{
			"put": s.Put(ctx, a, text(map[string]string{"k": "v"})), "get": getErr, "count": countErr, "adopt": adoptErr,
			"each": s.Each(ctx, a, "", func(string, []byte) error { return nil }),
		} {
			if !errors.Is(err, interim.ErrInvalid) {
				t.Errorf("%s with %v: %v, want ErrInvalid", method, a, err)
			}
		}
	}
	if err := s.Put(ctx, attempt(1), text(map[string]string{"k": "v", "": "v"})); !errors.Is(err, interim.ErrInvalid) {
		t.Errorf("put of an empty key: %v, want ErrInvalid", err)
	}
	if err := s.Drop(ctx, ""); !errors.Is(err, interim.ErrInvalid) {
		t.Errorf("drop without item: %v, want ErrInvalid", err)
	}
	holds(t, s, attempt(1), map[string]string{})
}

func testEach(t *testing.T, s interim.Store) {
	a := attempt(1)
	files, parts := many("file/", 1200), many("part/", 700)
	odd := map[string]string{"*": "1", "*a": "2", "[a]": "3", "a": "4", "\\x": "5", "\xff": "6", "\xff\xff": "7", "\xff\xffz": "8", "file": "9"}
	put(t, s, a, union(files, odd))
	put(t, s, a, parts)
	put(t, s, attempt(2), many("file/", 3))

	for _, test := range []struct {
		prefix string
		want   int
	}{
		{"", 1909},
		{"file/", 1200},
		{"file", 1201},
		{"file/0000", 100},
		{"part/", 700},
		{"part/000699", 1},
		{"part/0006999", 0},
		{"*", 2},
		{"?", 0},
		{"[a", 1},
		{"[", 1},
		{"\\", 1},
		{"\xff", 3},
		{"\xff\xff", 2},
		{"z", 0},
	} {
		got := dump(t, s, a, test.prefix)
		if len(got) != test.want {
			t.Errorf("each with prefix %q: %d entries, want %d", test.prefix, len(got), test.want)
		}
		for key := range got {
			if !strings.HasPrefix(key, test.prefix) {
				t.Errorf("each with prefix %q named %q", test.prefix, key)
			}
		}
		n, err := s.Count(t.Context(), a, test.prefix)
		if err != nil || n != int64(test.want) {
			t.Errorf("count with prefix %q=%d, %v, want %d", test.prefix, n, err, test.want)
		}
	}
	holds(t, s, a, union(files, parts, odd))
}

func testEachStops(t *testing.T, s interim.Store) {
	put(t, s, attempt(1), many("file/", 100))
	errEnough := errors.New("enough")
	seen := 0
	err := s.Each(t.Context(), attempt(1), "", func(string, []byte) error {
		if seen++; seen == 3 {
			return errEnough
		}
		return nil
	})
	if !errors.Is(err, errEnough) || seen != 3 {
		t.Errorf("each: %v after %d entries, want the error of fn after 3", err, seen)
	}
}

func testEachReenters(t *testing.T, s interim.Store) {
	before := many("file/", 1100)
	put(t, s, attempt(1), before)
	want := map[string]string{}
	err := s.Each(t.Context(), attempt(1), "file/", func(key string, _ []byte) error {
		if !strings.HasSuffix(key, "00") {
			return nil
		}
		value, err := s.Get(t.Context(), attempt(1), key)
		if err != nil {
			return err
		}
		want["done/"+key] = string(value)
		return s.Put(t.Context(), attempt(1), map[string][]byte{"done/" + key: value})
	})
	if err != nil {
		t.Fatalf("each: %v", err)
	}
	if len(want) != 11 {
		t.Errorf("fn saw %d entries that end in 00, want 11", len(want))
	}
	holds(t, s, attempt(1), union(before, want))
}

func testEachLarge(t *testing.T, s interim.Store) {
	want := map[string]string{}
	for i := range 40 {
		want[fmt.Sprint("file/", i)] = strings.Repeat(fmt.Sprint(i%10), 200_000)
	}
	put(t, s, attempt(1), want)
	put(t, s, attempt(1), many("small/", 600))
	holds(t, s, attempt(1), union(want, many("small/", 600)))
}

func testItems(t *testing.T, s interim.Store) {
	want := map[string]int{}
	for i := range 600 {
		// Ids that could be mistaken for keys of other items.
		id := fmt.Sprintf("item-%d}:1", i)
		want[id] = 1
		put(t, s, interim.Attempt{ItemID: id, N: 1}, map[string]string{"k": "v"})
		if i%100 == 0 {
			put(t, s, interim.Attempt{ItemID: id, N: 2}, map[string]string{"k": "v"})
		}
	}
	got := items(t, s)
	if len(got) != len(want) {
		t.Errorf("items named %d, want %d", len(got), len(want))
	}
	for id, n := range got {
		if n != want[id] {
			t.Errorf("items named %q %d times, want %d", id, n, want[id])
		}
	}
	for _, err := range s.Items(t.Context()) {
		if err != nil {
			t.Errorf("items: %v", err)
		}
		break // ends the walk, without an error
	}
	put(t, s, attempt(1), map[string]string{"k": "v"})
}

func testCancelled(t *testing.T, s interim.Store) {
	before := many("file/", 10)
	put(t, s, attempt(1), before)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range calls(s) {
		if err := call(cancelled); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want context.Canceled", name, err)
		}
	}
	holds(t, s, attempt(1), before)
	holds(t, s, attempt(2), map[string]string{})

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := 0
	err := s.Each(ctx, attempt(1), "", func(string, []byte) error { seen++; cancel(); return nil })
	if !errors.Is(err, context.Canceled) || seen != 1 {
		t.Errorf("each cancelled by fn: %v after %d entries, want context.Canceled after 1", err, seen)
	}
}

func testClosed(t *testing.T, s interim.Store) {
	put(t, s, attempt(1), map[string]string{"k": "v"})
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for {
				err := s.Put(t.Context(), attempt(1), text(map[string]string{"k": "v"}))
				if errors.Is(err, interim.ErrClosed) {
					return
				} else if err != nil {
					t.Errorf("put while closing: %v, want nil or ErrClosed", err)
					return
				}
			}
		})
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	writers.Wait()
	for name, call := range calls(s) {
		if err := call(t.Context()); !errors.Is(err, interim.ErrClosed) {
			t.Errorf("%s: %v, want ErrClosed", name, err)
		}
	}
}
