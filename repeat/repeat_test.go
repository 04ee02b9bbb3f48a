package repeat_test

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/holdfast/holdfast/repeat"
)

// find is what a Finder that keeps so many says of a sequence: for each record the place of the
// first one like it, -1 for none.
func find(texts []string, keep int) (first []int, incomplete bool) {
	f := repeat.New[int](int64(len(texts)), keep)
	if f.TwoPasses() {
		for _, t := range texts {
			f.Note(repeat.SumOf(t))
		}
	}
	for i, t := range texts {
		at, ok := f.First(repeat.SumOf(t), i)
		if !ok {
			at = -1
		}
		first = append(first, at)
	}
	return first, f.Incomplete()
}

// Every repeat is found, in one pass and in two, unless the Finder reports that it could not store
// enough. Nothing else is reported.
func TestFinder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		numbers := rapid.SliceOfN(rapid.IntRange(0, 300), 0, 400).Draw(t, "numbers")
		keep := rapid.IntRange(1, 500).Draw(t, "keep")
		seen := map[string]int{}
		var texts []string
		var want []int
		for i, n := range numbers {
			text := strconv.Itoa(n)
			texts = append(texts, text)
			if first, ok := seen[text]; ok {
				want = append(want, first)
			} else {
				seen[text] = i
				want = append(want, -1)
			}
		}
		got, incomplete := find(texts, keep)
		if !incomplete {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("keeping %d (-want +got):\n%s", keep, diff)
			}
			return
		}
		if keep >= len(seen) {
			t.Fatalf("%d different records are too many for %d", len(seen), keep)
		}
		for i := range got {
			if got[i] != -1 && got[i] != want[i] {
				t.Fatalf("record %d repeats %d, want %d", i, got[i], want[i])
			}
		}
	})
}

// Of a sequence with more records than may be stored, only possible repeats are stored.
func TestFinder_ManyRecords(t *testing.T) {
	const records, keep = 200_000, 50_000
	texts := make([]string, records)
	for i := range texts {
		texts[i] = strconv.Itoa(i)
	}
	texts[records-1], texts[records/2] = texts[7], texts[records/4]
	got, incomplete := find(texts, keep)
	if incomplete || got[records-1] != 7 || got[records/2] != records/4 {
		t.Errorf("incomplete %v, last repeats %d, middle repeats %d", incomplete, got[records-1], got[records/2])
	}
	if _, incomplete := find(append(texts, texts...), keep); !incomplete {
		t.Error("200,000 records that all repeat are said to have been kept in room for 50,000")
	}
}

func TestSumOf(t *testing.T) {
	if repeat.SumOf("ab", "c") == repeat.SumOf("a", "bc") || repeat.SumOf("a") == repeat.SumOf("a", "") {
		t.Error("two records of different fields have one sum")
	}
}
