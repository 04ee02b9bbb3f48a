package interimtest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/holdfast/holdfast/interim"
)

func testAdopt(t *testing.T, s interim.Store) {
	put(t, s, attempt(1), map[string]string{"file/a": "old"})
	second := union(many("file/", 1300), map[string]string{"empty": "", "\x00\xff": "\xff"})
	put(t, s, attempt(2), second)
	put(t, s, attempt(7), map[string]string{"file/a": "of a later attempt"})
	other := interim.Attempt{ItemID: "item2", N: 3}
	put(t, s, other, map[string]string{"file/a": "of another item"})

	// 3 and 4 have written nothing.
	adopts(t, s, attempt(5), 2)
	holds(t, s, attempt(5), second)
	holds(t, s, attempt(2), second)

	put(t, s, attempt(5), map[string]string{"file/000001": "newer"})
	adopts(t, s, attempt(5), 2)
	holds(t, s, attempt(5), union(second, map[string]string{"file/000001": "newer"}))

	holds(t, s, attempt(7), map[string]string{"file/a": "of a later attempt"})
	holds(t, s, other, map[string]string{"file/a": "of another item"})
	adopts(t, s, attempt(6), 5)
	// Numbers are compared as numbers, not as text.
	adopts(t, s, attempt(10), 7)
	adopts(t, s, attempt(100), 10)
}

func testAdoptNothing(t *testing.T, s interim.Store) {
	adopts(t, s, attempt(1), 0)
	put(t, s, attempt(3), map[string]string{"k": "v"})
	adopts(t, s, attempt(2), 0)
	adopts(t, s, attempt(3), 0)
	holds(t, s, attempt(2), map[string]string{})

	// An attempt that wrote before it adopted keeps its entries.
	put(t, s, attempt(4), map[string]string{"own": "v"})
	adopts(t, s, attempt(4), 0)
	holds(t, s, attempt(4), map[string]string{"own": "v"})
	if got := items(t, s); len(got) != 1 {
		t.Errorf("items named %v, want only the one that has entries", got)
	}
}

func testAdoptPrunes(t *testing.T, s interim.Store) {
	want := many("file/", 1100)
	put(t, s, attempt(1), want)
	for n := int64(2); n <= 5; n++ {
		adopts(t, s, attempt(n), n-1)
	}
	for n := int64(1); n <= 3; n++ {
		holds(t, s, attempt(n), map[string]string{})
	}
	holds(t, s, attempt(4), want)
	holds(t, s, attempt(5), want)
	adopts(t, s, attempt(5), 4)
}

// testAdoptAtomic: the two entries of every put are equal, so every copy must have equal ones.
func testAdoptAtomic(t *testing.T, s interim.Store) {
	put(t, s, attempt(1), map[string]string{"a": "0", "z": "0"})
	var writer sync.WaitGroup
	for w := range 2 {
		writer.Go(func() {
			for i := range 100 {
				v := fmt.Sprint(w, "/", i)
				if err := s.Put(t.Context(), attempt(1), text(map[string]string{"a": v, "z": v})); err != nil {
					t.Errorf("put: %v", err)
					return
				}
			}
		})
	}
	for n := int64(2); n < 50; n++ {
		a := attempt(n)
		from, err := s.Adopt(t.Context(), a)
		if err != nil {
			t.Fatalf("adopt: %v", err)
		}
		got := dump(t, s, a, "")
		if from == 0 || got["a"] != got["z"] || len(got) != 2 {
			t.Errorf("adopted from %d: %v, want two equal entries", from, got)
		}
	}
	writer.Wait()
	got := dump(t, s, attempt(1), "")
	if got["a"] != got["z"] {
		t.Errorf("entries of one put differ: %v", got)
	}
}

func testAdoptConcurrent(t *testing.T, s interim.Store) {
	want := many("file/", 700)
	put(t, s, attempt(1), want)
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			if from, err := s.Adopt(t.Context(), attempt(2)); err != nil || from != 1 {
				t.Errorf("adopt from=%d, %v, want 1", from, err)
			}
		})
	}
	callers.Wait()
	holds(t, s, attempt(2), want)
}

func testDrop(t *testing.T, s interim.Store) {
	neighbour := interim.Attempt{ItemID: "item-2", N: 1}
	put(t, s, neighbour, map[string]string{"k": "v"})
	put(t, s, attempt(1), many("file/", 1100))
	put(t, s, attempt(2), many("file/", 300))
	for range 2 {
		if err := s.Drop(t.Context(), "item"); err != nil {
			t.Fatalf("drop: %v", err)
		}
		holds(t, s, attempt(1), map[string]string{})
		holds(t, s, attempt(2), map[string]string{})
		adopts(t, s, attempt(3), 0)
	}
	holds(t, s, neighbour, map[string]string{"k": "v"})
	if got := items(t, s); len(got) != 1 || got["item-2"] != 1 {
		t.Errorf("items named %v, want only item-2", got)
	}

	// An item that runs again starts with nothing.
	put(t, s, attempt(1), map[string]string{"file/000001": "again"})
	holds(t, s, attempt(1), map[string]string{"file/000001": "again"})
}

// Superseded tests safety rule R26 for a driver: a worker whose lease was taken away keeps writing,
// while its successor takes over and after the item is settled. The caller closes s.
func Superseded(t *testing.T, s interim.Store) {
	t.Helper()
	put(t, s, attempt(1), map[string]string{"file/a": "offset 10"})
	adopts(t, s, attempt(2), 1)

	// The superseded worker writes; the successor's view and data are unaffected.
	put(t, s, attempt(1), map[string]string{"file/a": "offset 99", "file/b": "offset 1"})
	holds(t, s, attempt(2), map[string]string{"file/a": "offset 10"})
	put(t, s, attempt(2), map[string]string{"file/a": "offset 20"})
	holds(t, s, attempt(1), map[string]string{"file/a": "offset 99", "file/b": "offset 1"})

	// The next attempt adopts the newest one, never the superseded one.
	adopts(t, s, attempt(3), 2)
	holds(t, s, attempt(3), map[string]string{"file/a": "offset 20"})

	// The superseded worker writes again after the item is settled: Items lists the orphaned data,
	// and a second Drop removes it.
	if err := s.Drop(t.Context(), "item"); err != nil {
		t.Fatalf("drop: %v", err)
	}
	put(t, s, attempt(1), map[string]string{"file/a": "offset 100"})
	if got := items(t, s); got["item"] != 1 {
		t.Errorf("items named %v, want the orphan", got)
	}
	if err := s.Drop(t.Context(), "item"); err != nil {
		t.Fatalf("drop again: %v", err)
	}
	if got := items(t, s); len(got) != 0 {
		t.Errorf("items named %v, want none", got)
	}
}
