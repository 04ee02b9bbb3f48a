// Package interimtest is the conformance suite of [interim.Store]. Every driver passes it, so that
// drivers are interchangeable.
package interimtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/interim"
)

// Run tests a driver. It calls open once for each subtest; open returns an empty store, which the
// suite closes.
func Run(t *testing.T, open func(t *testing.T) interim.Store) {
	t.Helper()
	for _, test := range []struct {
		name string
		run  func(t *testing.T, s interim.Store)
	}{
		{"entries come back as they were put", testPutGet},
		{"invalid arguments are refused", testInvalid},
		{"each yields every entry with the prefix once", testEach},
		{"each stops with fn's error", testEachStops},
		{"fn of each may use the store", testEachReenters},
		{"each pages through large values", testEachLarge},
		{"adopt copies the newest predecessor once", testAdopt},
		{"adopt finds nothing", testAdoptNothing},
		{"adopt keeps two generations", testAdoptPrunes},
		{"adopt is atomic against put", testAdoptAtomic},
		{"concurrent adopts agree", testAdoptConcurrent},
		{"drop takes every attempt of one item", testDrop},
		{"items are each named once", testItems},
		{"a cancelled context ends every call", testCancelled},
		{"a closed store refuses every call", testClosed},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := open(t)
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			})
			test.run(t, s)
		})
	}
}

// attempt returns attempt n of the suite's item.
func attempt(n int64) interim.Attempt { return interim.Attempt{ItemID: "item", N: n} }

// text returns entries of strings.
func text(entries map[string]string) map[string][]byte {
	out := make(map[string][]byte, len(entries))
	for k, v := range entries {
		out[k] = []byte(v)
	}
	return out
}

func put(t *testing.T, s interim.Store, a interim.Attempt, entries map[string]string) {
	t.Helper()
	if err := s.Put(t.Context(), a, text(entries)); err != nil {
		t.Fatalf("put: %v", err)
	}
}

// dump returns all entries of an attempt, and fails the test if an entry comes twice.
func dump(t *testing.T, s interim.Store, a interim.Attempt, prefix string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := s.Each(t.Context(), a, prefix, func(key string, value []byte) error {
		if _, ok := got[key]; ok {
			t.Errorf("each named %q twice", key)
		}
		got[key] = string(value)
		return nil
	})
	if err != nil {
		t.Fatalf("each: %v", err)
	}
	return got
}

// holds fails the test unless the attempt has exactly these entries.
func holds(t *testing.T, s interim.Store, a interim.Attempt, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, dump(t, s, a, "")); diff != "" {
		t.Errorf("entries of %s (-want +got):\n%s", a, diff)
	}
	n, err := s.Count(t.Context(), a, "")
	if err != nil || n != int64(len(want)) {
		t.Errorf("count of %s=%d, %v, want %d", a, n, err, len(want))
	}
}

func adopts(t *testing.T, s interim.Store, a interim.Attempt, want int64) {
	t.Helper()
	from, err := s.Adopt(t.Context(), a)
	if err != nil {
		t.Fatalf("adopt: %v", err)
	}
	if from != want {
		t.Errorf("adopt for %s from=%d, want %d", a, from, want)
	}
}

func items(t *testing.T, s interim.Store) map[string]int {
	t.Helper()
	got := map[string]int{}
	for id, err := range s.Items(t.Context()) {
		if err != nil {
			t.Fatalf("items: %v", err)
		}
		got[id]++
	}
	return got
}

// many returns n entries under the prefix.
func many(prefix string, n int) map[string]string {
	out := make(map[string]string, n)
	for i := range n {
		out[fmt.Sprintf("%s%06d", prefix, i)] = fmt.Sprint("value of ", i)
	}
	return out
}

// union merges maps with different keys.
func union(all ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range all {
		maps.Copy(out, m)
	}
	return out
}

// calls returns every method that can fail, by name.
func calls(s interim.Store) map[string]func(ctx context.Context) error {
	a := attempt(1)
	return map[string]func(ctx context.Context) error{
		"put":   func(ctx context.Context) error { return s.Put(ctx, a, text(map[string]string{"k": "v"})) },
		"get":   func(ctx context.Context) error { _, err := s.Get(ctx, a, "k"); return err },
		"each":  func(ctx context.Context) error { return s.Each(ctx, a, "", func(string, []byte) error { return nil }) },
		"count": func(ctx context.Context) error { _, err := s.Count(ctx, a, "k"); return err },
		"adopt": func(ctx context.Context) error { _, err := s.Adopt(ctx, attempt(2)); return err },
		"drop":  func(ctx context.Context) error { return s.Drop(ctx, a.ItemID) },
		"items": func(ctx context.Context) (last error) {
			for _, err := range s.Items(ctx) {
				last = errors.Join(last, err)
			}
			return last
		},
	}
}
