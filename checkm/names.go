package checkm

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"strings"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// names remembers the names of an object in 14 bytes each, under the hash of their folded form, so that one look finds a
// name and all that differ from it only by case or normal form. Of two names' SHA-256 it compares 64 bits of the folded
// form, 16 of them as the place, and 32 of the name as written: that two of a million different names are taken for
// one has a likelihood of 1 in 10^16, and for variants of each other 1 in 10^7.
type names struct {
	// buckets are made as they are needed, so that the table of a small manifest is small.
	buckets [256]*[256][]knownName
	caser   cases.Caser
}

// knownName is made of small parts, so that it takes no more bytes than they do.
type knownName struct {
	fold  [3]uint16
	exact [2]uint16
	line  [2]uint16
}

func newNames() *names { return &names{caser: cases.Fold()} }

// seen is what an earlier name has in common with a new one.
type seen struct {
	same     bool // it is the same
	sameFold bool // it differs only by case or normal form
	line     int  // where it stands
}

// add remembers a name and says whether one like it was there already.
func (n *names) add(name string, line int) seen {
	folded := n.fold(name)
	sum := hashName(folded)
	place := sum.at(0)
	key := knownName{fold: [3]uint16{sum.at(1), sum.at(2), sum.at(3)}}
	if folded != name {
		sum = hashName(name)
	}
	key.exact = [2]uint16{sum.at(4), sum.at(5)}
	capped := uint32(min(line, math.MaxUint32))
	key.line = [2]uint16{uint16(capped), uint16(capped >> 16)}

	half := &n.buckets[place>>8]
	if *half == nil {
		*half = new([256][]knownName)
	}
	entries := &(*half)[place&0xff]
	var s seen
	for i := range *entries {
		have := &(*entries)[i]
		if have.fold != key.fold {
			continue
		}
		at := int(have.line[0]) | int(have.line[1])<<16
		if have.exact == key.exact {
			return seen{same: true, line: at}
		}
		if !s.sameFold {
			s = seen{sameFold: true, line: at}
		}
	}
	*entries = appendTight(*entries, key)
	return s
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

// nameHash is a SHA-256.
type nameHash [sha256.Size]byte

// at returns 16 bits of it, another 16 for each i.
func (h nameHash) at(i int) uint16 { return binary.LittleEndian.Uint16(h[2*i:]) }

func hashName(name string) nameHash {
	var buf [256]byte
	return sha256.Sum256(append(buf[:0], name...))
}

// appendTight grows by an eighth where append would double, since most of the memory of
// a million names would else be room for more of them.
func appendTight(s []knownName, v knownName) []knownName {
	if len(s) == cap(s) {
		grown := make([]knownName, len(s), len(s)+2+len(s)/8)
		copy(grown, s)
		s = grown
	}
	return append(s, v)
}
