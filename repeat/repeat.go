// Package repeat finds records in a long sequence that repeat an earlier one.
//
// Memory is bounded: the package stores digests of records. If a sequence has more records than it
// may store, a first pass finds out which digests can occur again at all. The same sequence always
// gives the same result. The package does not know what a record is.
package repeat

import (
	"crypto/sha256"
	"encoding/binary"
)

// Sum is a digest of a record: the first half of a SHA-256, which no two records share by chance.
type Sum [16]byte

// SumOf returns the sum of a record with these fields, in this order.
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

// Kept is the usual limit of stored records: some 40 MiB.
const Kept = 500_000

// mostSlots limits the filter, at two bits a slot: 32 MiB.
const mostSlots = 1 << 27

// Finder finds repeats; At is the place of a record. It is not safe for concurrent use.
type Finder[At any] struct {
	keep        int
	first       map[Sum]At
	once, again []uint64 // a bit for each slot: one record fell into it, several did; nil: every record is stored
	overflowed  bool
}

// New returns a Finder for a sequence of so many records, which stores at most keep of them.
func New[At any](records int64, keep int) *Finder[At] {
	f := &Finder[At]{keep: keep, first: map[Sum]At{}}
	if records > int64(keep) {
		words := min(records*8, mostSlots)/64 + 1
		f.once, f.again = make([]uint64, words), make([]uint64, words)
	}
	return f
}

// TwoPasses reports whether Note must be called for every record before the first call of First.
func (f *Finder[At]) TwoPasses() bool { return f.once != nil }

// Note counts a record in the first pass.
func (f *Finder[At]) Note(s Sum) {
	word, bit := f.slot(s)
	f.again[word] |= f.once[word] & bit
	f.once[word] |= bit
}

func (f *Finder[At]) slot(s Sum) (word int, bit uint64) {
	n := binary.LittleEndian.Uint64(s[:]) % uint64(len(f.once)*64)
	return int(n / 64), 1 << (n % 64)
}

// First returns the place of the first record that equals this one; ok is false if this one is the
// first. at is the place of this record. Call it for each record in order.
func (f *Finder[At]) First(s Sum, at At) (first At, ok bool) {
	if first, ok := f.first[s]; ok {
		return first, true
	}
	if f.TwoPasses() {
		if word, bit := f.slot(s); f.again[word]&bit == 0 {
			return first, false // no other record equals it
		}
	}
	if len(f.first) == f.keep {
		f.overflowed = true
		return first, false
	}
	f.first[s] = at
	return first, false
}

// Incomplete reports whether more records had to be stored than allowed, so that repeats may have
// been missed.
func (f *Finder[At]) Incomplete() bool { return f.overflowed }
