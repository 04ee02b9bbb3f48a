package faults_test

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/holdfast/holdfast/faults"
)

type fault struct{ rank, seq int }

func byRank(a, b fault) int { return cmp.Compare(a.rank, b.rank) }

// TestList_KeepsTheFirst checks that all faults are counted in any order, and that those kept are
// the first in a stable order.
func TestList_KeepsTheFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 10).Draw(t, "most")
		l := faults.New(most, byRank)
		var all []fault
		for seq := range rapid.IntRange(0, 60).Draw(t, "n") {
			f := fault{rapid.IntRange(0, 5).Draw(t, "rank"), seq}
			all = append(all, f)
			l.Add(f)
			if rapid.Bool().Draw(t, "look") {
				l.Kept()
			}
		}
		l.Count(3)
		want := slices.Clone(all)
		slices.SortStableFunc(want, byRank)
		want = want[:min(len(want), most)]
		if got := l.Kept(); !slices.Equal(got, want) || l.Total() != int64(len(all))+3 {
			t.Fatalf("kept %v of %d, want %v of %d", got, l.Total(), want, len(all))
		}
	})
}

func TestCut(t *testing.T) {
	for _, text := range []string{"", "a", strings.Repeat("x", faults.MaxText), strings.Repeat("é", faults.MaxText), strings.Repeat("x", 1<<20), strings.Repeat("\x80", 5000)} {
		got := faults.Cut(text)
		if len(got) > faults.MaxText || len(text) <= faults.MaxText && got != text || utf8.ValidString(text) && !utf8.ValidString(got) {
			t.Errorf("%d bytes became %d: %q", len(text), len(got), got[:min(20, len(got))])
		}
	}
}

func TestJoin(t *testing.T) {
	t.Parallel()
	one, two := errors.New("one"), errors.New("two")
	if err := faults.Join([]error{one, two}, 3); !errors.Is(err, one) || !errors.Is(err, two) || err.Error() != "one\ntwo\nand 3 more files" {
		t.Errorf("%q", err)
	}
	if err := faults.Join([]error{one}, 0); err.Error() != "one" {
		t.Errorf("%q", err)
	}
}
