package checkm

import (
	"hash/maphash"
	"math"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// names remembers the names of an object in 14 bytes each, under the hash of their folded form, so that one look finds a
// name and all that differ from it only by case or normal form. It compares 64 bits of the folded form's hash, 16 of
// them as the place, and 32 of that of the name as written: that two of a million different names are taken for one has
// a likelihood of 1 in 10^16, and for variants of each other 1 in 10^7. The seeds are new each time, so that nobody can
// choose names that meet.
type names struct {
	// buckets are made as they are needed, so that the table of a small manifest is small.
	buckets       [256]*[256][]knownName
	caser         cases.Caser
	folded, exact maphash.Seed
}

// knownName is made of small parts, so that it takes no more bytes than they do.
type knownName struct {
	fold  [3]uint16
	exact [2]uint16
	line  [2]uint16
}

func newNames() *names {
	return &names{caser: cases.Fold(), folded: maphash.MakeSeed(), exact: maphash.MakeSeed()}
}

// seen is what an earlier name has in common with a new one.
type seen struct {
	same     bool // it is the same
	sameFold bool // it differs only by case or normal form
	line     int  // where it stands
}

// add remembers a name and says whether one like it was there already.
func (n *names) add(name string, line int) seen {
	var buf [256]byte
	folded := maphash.Bytes(n.folded, n.fold(buf[:0], name))
	exact := maphash.String(n.exact, name)
	capped := min(line, math.MaxUint32)
	key := knownName{
		fold:  [3]uint16{uint16(folded), uint16(folded >> 16), uint16(folded >> 32)},
		exact: [2]uint16{uint16(exact), uint16(exact >> 16)},
		line:  [2]uint16{uint16(capped), uint16(capped >> 16)},
	}
	half := &n.buckets[folded>>56]
	if *half == nil {
		*half = new([256][]knownName)
	}
	entries := &(*half)[folded>>48&0xff]
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

// fold appends to b the text that names have in common which a file system without case, or one that normalises, takes
// for one.
func (n *names) fold(b []byte, name string) []byte {
	for i := range len(name) {
		c := name[i]
		if c >= utf8.RuneSelf {
			return append(b[:0], norm.NFC.String(n.caser.String(norm.NFC.String(name)))...)
		}
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		b = append(b, c)
	}
	return b
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
