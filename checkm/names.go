package checkm

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// names remembers the names of an object in 16 bytes each, and 6 more for a name with
// capitals or other letters that folding changes. It keeps 111 bits of a SHA-256: that two
// of a million different names are taken for one has a likelihood of 1 in 10^21, far less
// than that memory or disk turns a bit. The folded form keeps 63, for it only warns.
type names struct {
	exact  table[exactName]
	folded table[foldedName]
	caser  cases.Caser
}

// table is a hash table of 2^15 buckets, made as they are needed, so that the table of a
// small manifest is small.
type table[T any] [128]*[256][]T

func (t *table[T]) bucket(n uint16) *[]T {
	half := &t[n>>8&0x7f]
	if *half == nil {
		*half = new([256][]T)
	}
	return &(*half)[n&0xff]
}

type exactName struct {
	hi   uint64
	lo   uint32
	line uint32
}

// foldedName is what is kept of a folded name's hash.
type foldedName [3]uint16

func (e exactName) folded() foldedName {
	return foldedName{uint16(e.hi), uint16(e.hi >> 16), uint16(e.hi >> 32)}
}

func newNames() *names { return &names{caser: cases.Fold()} }

// seen is what an earlier name has in common with a new one.
type seen struct {
	same     bool // it is the same
	sameFold bool // it differs only by case or normal form
	line     int  // where it stands; 0 when not known
}

// add remembers a name and says whether one like it was there already.
func (n *names) add(name string, line int) seen {
	bucket, key := hashName(name)
	if at, ok := n.find(bucket, key); ok {
		return seen{same: true, line: at}
	}
	folded := n.fold(name)
	var s seen
	foldBucket, foldKey := bucket, key
	if folded != name {
		foldBucket, foldKey = hashName(folded)
		s.line, s.sameFold = n.find(foldBucket, foldKey)
	}
	variants := n.folded.bucket(foldBucket)
	s.sameFold = s.sameFold || slices.Contains(*variants, foldKey.folded())
	if folded != name && !s.sameFold {
		*variants = appendTight(*variants, foldKey.folded())
	}
	key.line = uint32(min(line, math.MaxUint32))
	entries := n.exact.bucket(bucket)
	*entries = appendTight(*entries, key)
	return s
}

func (n *names) find(bucket uint16, key exactName) (int, bool) {
	entries := *n.exact.bucket(bucket)
	for i := range entries {
		if have := &entries[i]; have.hi == key.hi && have.lo == key.lo {
			return int(have.line), true
		}
	}
	return 0, false
}

// fold gives names that a file system without case, or one that normalises, takes for
// one the same text.
func (n *names) fold(name string) string {
	for i := range len(name) {
		if name[i] >= 0x80 {
			return norm.NFC.String(n.caser.String(norm.NFC.String(name)))
		}
	}
	return strings.ToLower(name)
}

func hashName(name string) (uint16, exactName) {
	var buf [256]byte
	sum := sha256.Sum256(append(buf[:0], name...))
	return binary.LittleEndian.Uint16(sum[12:]), exactName{
		hi: binary.LittleEndian.Uint64(sum[0:]),
		lo: binary.LittleEndian.Uint32(sum[8:]),
	}
}

// appendTight grows by an eighth where append would double, since most of the memory of
// a million names would else be room for more of them.
func appendTight[T any](s []T, v T) []T {
	if len(s) == cap(s) {
		grown := make([]T, len(s), len(s)+2+len(s)/8)
		copy(grown, s)
		s = grown
	}
	return append(s, v)
}
