package spill_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/holdfast/holdfast/spill"
)

// TestSorter checks the order of few records, which stay in memory, and of many, which do not.
func TestSorter(t *testing.T) {
	for _, n := range []int{0, 1, 100, 200_000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			space := spill.NewSpace(t.TempDir(), 1<<30)
			defer space.Close()
			s := space.NewSorter(nil)
			random := rand.New(rand.NewPCG(1, uint64(n)))
			var want []string
			for i := range n {
				key := fmt.Sprint("key of some length ", random.IntN(n)) // some keys are equal
				want = append(want, fmt.Sprintf("%s %06d", key, i))
				if !s.Add([]byte(key), fmt.Appendf(nil, " %06d", i)) {
					t.Fatal(space.Err())
				}
			}
			slices.SortStableFunc(want, func(a, b string) int {
				return bytes.Compare([]byte(a[:len(a)-7]), []byte(b[:len(b)-7]))
			})
			for range 2 { // it may be read again
				i := 0
				for key, value := range s.Sorted() {
					if got := string(key) + string(value); got != want[i] {
						t.Fatalf("record %d is %q, want %q", i, got, want[i])
					}
					i++
				}
				if i != n || space.Err() != nil {
					t.Fatalf("%d of %d records, %v", i, n, space.Err())
				}
			}
		})
	}
}

// TestSorter_Fails checks that a Sorter tells that its records exceed the Space, or are gone.
func TestSorter_Fails(t *testing.T) {
	full := spill.NewSpace(t.TempDir(), 3<<20)
	defer full.Close()
	s := full.NewSorter(nil)
	stored := true
	for i := 0; i < 1<<16 && stored; i++ {
		stored = s.Add(fmt.Appendf(nil, "%0100d", i), nil)
	}
	if stored || full.Err() == nil {
		t.Errorf("Add after more than the limit: %v, %v", stored, full.Err())
	}
	gone := spill.NewSpace(t.TempDir(), 1<<30)
	s = gone.NewSorter(nil)
	for i := range 200_000 {
		s.Add(fmt.Appendf(nil, "%0100d", i), nil)
	}
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	n := 0
	for range s.Sorted() {
		n++
	}
	if n == 200_000 || gone.Err() == nil {
		t.Errorf("%d records of a closed Space, %v", n, gone.Err())
	}
}
