// Package faults keeps the first faults of any number, in bounded memory, and counts the others.
package faults

import (
	"errors"
	"fmt"
	"slices"
)

// Most is how many faults a report lists unless its caller says otherwise. All are counted.
const Most = 1000

// MaxText is the greatest number of bytes of a text in a fault: a file's name, a value. It holds
// the longest name that a container may have. Longer texts are cut.
const MaxText = 1024

// Named is how many files with faults an error or an event names.
const Named = 10

// Join joins the faults of files, of which there are more than errs has.
func Join(errs []error, more int) error {
	err := errors.Join(errs...)
	if more > 0 {
		err = fmt.Errorf("%w\nand %d more files", err, more)
	}
	return err
}

// List counts faults and keeps the first of them in a given order. So which faults are kept does
// not depend on the order in which they are found, except for those that compare as equal: of these
// the first found are kept. It is not safe for concurrent use.
type List[F any] struct {
	most    int
	compare func(a, b F) int
	kept    []F // sorted up to clean
	clean   int
	total   int64
}

// New returns a List that keeps the first most faults by compare; Most of them if most is not
// above 0.
func New[F any](most int, compare func(a, b F) int) *List[F] {
	if most <= 0 {
		most = Most
	}
	return &List[F]{most: most, compare: compare}
}

// Add counts a fault, and keeps it while it is among the first.
func (l *List[F]) Add(f F) {
	l.total++
	if l.clean == l.most && l.compare(f, l.kept[l.most-1]) >= 0 {
		return
	}
	if l.kept = append(l.kept, f); len(l.kept) >= 2*l.most {
		l.sort()
	}
}

// Count counts n faults that are not kept.
func (l *List[F]) Count(n int64) { l.total += n }

// Total is the number of faults that were added or counted.
func (l *List[F]) Total() int64 { return l.total }

// Kept returns the first faults, in order; nil for none. The caller must not change them.
func (l *List[F]) Kept() []F {
	l.sort()
	return l.kept
}

// sort puts the faults in order and drops those that are not among the first.
func (l *List[F]) sort() {
	if len(l.kept) == l.clean {
		return
	}
	slices.SortStableFunc(l.kept, l.compare)
	n := min(len(l.kept), l.most)
	clear(l.kept[n:]) // their texts go
	l.kept, l.clean = l.kept[:n], n
}

// Cut shortens a text of a fault to MaxText bytes, at the beginning of a rune, and marks the cut.
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
