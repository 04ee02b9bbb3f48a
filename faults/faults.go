// Package faults keeps the first of many faults in bounded memory and counts all.
package faults

import (
	"errors"
	"fmt"
	"slices"
)

// Most is the default number of faults that a report lists. All are counted.
const Most = 1000

// MaxText is the greatest length of a text in a fault, in bytes, such as a file name or a value. It
// fits the longest name that a container may have. Longer texts are cut.
const MaxText = 1024

// Named is how many faulty files an error or an event names.
const Named = 10

// Join joins errors of files and says how many more files have errors.
func Join(errs []error, more int) error {
	err := errors.Join(errs...)
	if more > 0 {
		err = fmt.Errorf("%w\nand %d more files", err, more)
	}
	return err
}

// List counts faults and keeps the first of them in a given order. The order in which faults are
// found does not matter, except for faults that compare as equal: of these it keeps the first
// found. It is not safe for concurrent use.
type List[F any] struct {
	most    int
	compare func(a, b F) int
	kept    []F // the first clean elements are sorted
	clean   int
	total   int64
}

// New returns a List that keeps the first most faults in the order of compare. If most is not
// positive it keeps Most.
func New[F any](most int, compare func(a, b F) int) *List[F] {
	if most <= 0 {
		most = Most
	}
	return &List[F]{most: most, compare: compare}
}

// Add counts a fault, and keeps it if it is among the first.
func (l *List[F]) Add(f F) {
	l.total++
	if l.clean == l.most && l.compare(f, l.kept[l.most-1]) >= 0 {
		return
	}
	if l.kept = append(l.kept, f); len(l.kept) >= 2*l.most {
		l.sort()
	}
}

// Count counts n faults without keeping them.
func (l *List[F]) Count(n int64) { l.total += n }

// Total returns the number of faults that were added or counted.
func (l *List[F]) Total() int64 { return l.total }

// Kept returns the first faults in order, or nil. The caller must not change them.
func (l *List[F]) Kept() []F {
	l.sort()
	return l.kept
}

// sort sorts the faults and drops those that are not among the first.
func (l *List[F]) sort() {
	if len(l.kept) == l.clean {
		return
	}
	slices.SortStableFunc(l.kept, l.compare)
	n := min(len(l.kept), l.most)
	clear(l.kept[n:]) // release their memory
	l.kept, l.clean = l.kept[:n], n
}

// Cut shortens a text to MaxText bytes at a rune boundary and marks the cut.
func Cut(text string) string {
	const mark = "…"
	if len(text) <= MaxText {
		return text
	}
	n := MaxText - len(mark)
	for n > MaxText-len(mark)-4 && text[n]&0xc0 == 0x80 {
		n--
	}
	return text[:n] + mark
}
