package staging_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/storagetest"
)

// A list returns its entries, with names byte for byte, also after its name was JSON. A short one is
// not stored.
func TestList_RoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		names := rapid.SliceOf(rapid.String()).Draw(rt, "names")
		create := staging.CreateList[staging.File]
		if rapid.Bool().Draw(rt, "stored") {
			create = staging.CreateStoredList[staging.File]
		}
		s := storagetest.NewMemory()
		l, err := create(t.Context(), s, "list")
		if err != nil {
			rt.Fatal(err)
		}
		var want, got []staging.File
		for i, n := range names {
			f := staging.File{Seq: int64(i), Name: n, Digests: map[string]string{"a": "b"}}
			want = append(want, f)
			if err := l.Add(f); err != nil {
				rt.Fatal(err)
			}
		}
		if err := errors.Join(l.Commit(t.Context()), l.Close()); err != nil {
			rt.Fatal(err)
		}
		raw, err := json.Marshal(l.List())
		if err != nil {
			rt.Fatal(err)
		}
		var list staging.List
		if err := json.Unmarshal(raw, &list); err != nil {
			rt.Fatal(err)
		}
		if _, err := s.Stat(t.Context(), "list"); (err == nil) != (list.Inline == "") || len(list.Inline) > 4<<10 {
			rt.Errorf("%d bytes inline, in the store: %v", len(list.Inline), err)
		}
		for f, err := range staging.ReadList[staging.File](t.Context(), s, list) {
			if err != nil {
				rt.Fatal(err)
			}
			got = append(got, f)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Error(diff)
		}
	})
}

func TestList_Faults(t *testing.T) {
	s := storagetest.NewMemory()
	for _, err := range staging.ReadList[staging.File](t.Context(), s, staging.List{Key: "none"}) {
		if !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("error %v, want not found", err)
		}
	}
	if _, err := storage.Put(t.Context(), s, "cut", []byte(`{"seq":1}`+"\n"+`{"seq":`)); err != nil {
		t.Fatal(err)
	}
	var seen []string
	for f, err := range staging.ReadList[staging.File](t.Context(), s, staging.List{Key: "cut"}) {
		seen = append(seen, fmt.Sprint(f.Seq, err != nil))
	}
	if diff := cmp.Diff([]string{"1 false", "0 true"}, seen); diff != "" {
		t.Error(diff)
	}
	l, err := staging.CreateStoredList[int](t.Context(), s, "given up")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Add(1), l.Abort()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Stat(t.Context(), "given up"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("a list that was not committed is there (%v)", err)
	}
}

// A list resumes after its checkpoint under the successor's own key, without later entries (R3).
func TestR03_ListGoesOn(t *testing.T) {
	s := storagetest.NewMemory()
	l, err := staging.CreateStoredList[int](t.Context(), s, "first")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Add(1), l.Add(2)); err != nil {
		t.Fatal(err)
	}
	cp, err := l.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	next, err := staging.ResumeList[int](t.Context(), s, "second", cp)
	if err != nil {
		t.Fatal(err)
	}
	// The predecessor was only thought dead.
	if err := errors.Join(l.Add(99), next.Add(3), l.Commit(t.Context()), next.Commit(t.Context())); err != nil {
		t.Fatal(err)
	}
	digests := map[string]string{"first": l.List().Digest, "second": next.List().Digest}
	for key, want := range map[string][]int{"first": {1, 2, 99}, "second": {1, 2, 3}} {
		var got []int
		for v, err := range staging.ReadList[int](t.Context(), s, staging.List{Key: key, Digest: digests[key]}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, v)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}
}

// A list or staged file that differs from the written one is detected, whatever its reader makes of
// it.
func TestVerified(t *testing.T) {
	s := storagetest.NewMemory()
	l, err := staging.CreateStoredList[int](t.Context(), s, "list")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Add(1), l.Add(2), l.Commit(t.Context())); err != nil {
		t.Fatal(err)
	}
	for _, forged := range []string{"1\n3\n", "1\n2\n3\n", "1\n", "", "1\n\n2\n", "x"} {
		if err := s.Replace(t.Context(), "list", []byte(forged)); err != nil {
			t.Fatal(err)
		}
		var last error
		for _, err := range staging.ReadList[int](t.Context(), s, l.List()) {
			last = err
		}
		if !errors.Is(last, staging.ErrDamaged) {
			t.Errorf("%q was read as the list, error %v", forged, last)
		}
		refused := errors.New("its reader's own")
		err := staging.Verified(t.Context(), s, "list", staging.ListDigest, l.List().Digest, func(io.Reader) error { return refused })
		if !errors.Is(err, staging.ErrDamaged) || errors.Is(err, refused) {
			t.Errorf("%q: %v", forged, err)
		}
	}
	if err := staging.Verified(t.Context(), s, "none", staging.ListDigest, l.List().Digest, nil); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("error %v, want not found", err)
	}
}

func TestKeys(t *testing.T) {
	l := registry.Lease{ItemID: "item", N: 7}
	for got, want := range map[string]string{
		staging.Key(l, "x"): "items/item/7.x", staging.FileKey(l, "f", 1): "items/item/7.f/1",
		staging.FileKey(l, "f", 360_000): "items/item/7.f/360k/360000",
	} {
		if got != want {
			t.Errorf("key %s, want %s", got, want)
		}
	}
	const most = 200_000
	keys := map[string]bool{}
	for seq := range int64(most) {
		keys[staging.FileKey(l, "f", seq)] = true
	}
	for key := range keys {
		if keys[path.Dir(key)] {
			t.Errorf("%s lies below a file", key)
		}
	}
	if len(keys) != most {
		t.Errorf("%d files have %d keys", most, len(keys))
	}
}
