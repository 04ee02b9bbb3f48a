// Package repeat finds, in a long sequence of records, those that say the same as an earlier one.
//
// Memory is bounded: records are known by their digests, and of a sequence with more records than
// are kept, a first pass finds out which digests can come again at all. The same sequence gives the
// same answer each time.
package repeat

import (
	"crypto/sha256"
	"encoding/binary"
)

// Sum stands for what a record says: the first half of a SHA-256 digest, so that no two records
// share one by chance.
type Sum [16]byte

// SumOf is the sum of a record with these fields, in this order.
func SumOf(fields ...string) Sum {
	h := sha256.New()
	var length [8]byte
	for _, f := range fields {
		binary.LittleEndian.PutUint64(length[:], uint64(len(f)))
		_, _ = h.Write(length[:])
		_, _ = h.Write([]byte(f))
	}
	return Sum(h.Sum(nil))
}

// Kept is how many records a Finder keeps at most when it is not told otherwise: some 40 MiB.
const Kept = 500_000

// mostSlots bounds the filter, at two bits a slot: 32 MiB.
const mostSlots = 1 << 27

// Finder finds repeats; At is where a record is. It is not safe for concurrent use.
type Finder[At any] struct {
	keep        int
	first       map[Sum]At
	once, again []uint64 // a bit for each slot: a record fell into it, several did; nil: every record is kept
	overflowed  bool
}

// New returns a Finder for a sequence of so many records, which keeps at most keep of them.
func New[At any](records int64, keep int) *Finder[At] {
	f := &Finder[At]{keep: keep, first: map[Sum]At{}}
	if records > int64(keep) {
		words := min(records*8, mostSlots)/64 + 1
		f.once, f.again = make([]uint64, words), make([]uint64, words)
	}
	return f
}

// TwoPasses says that Note must be called for every record before the first call of First.
func (f *Finder[At]) TwoPasses() bool { return f.once != nil }

// Note takes a record into account in the first pass.
func (f *Finder[At]) Note(s Sum) {
	word, bit := f.slot(s)
	f.again[word] |= f.once[word] & bit
	f.once[word] |= bit
}

func (f *Finder[At]) slot(s Sum) (word int, bit uint64) {
	n := binary.LittleEndian.Uint64(s[:]) % uint64(len(f.once)*64)
	return int(n / 64), 1 << (n % 64)
}

// First returns where the first record was that says the same as this one, which is at a place; ok
// is false when this one is the first. It is called for each record in order.
func (f *Finder[At]) First(s Sum, at At) (first At, ok bool) {
	if first, ok := f.first[s]; ok {
		return first, true
	}
	if f.TwoPasses() {
		if word, bit := f.slot(s); f.again[word]&bit == 0 {
			return first, false // nothing says the same
		}
	}
	if len(f.first) == f.keep {
		f.overflowed = true
		return first, false
	}
	f.first[s] = at
	return first, false
}

// Incomplete says that more records had to be kept than could be, so that repeats may have been
// missed.
func (f *Finder[At]) Incomplete() bool { return f.overflowed }
