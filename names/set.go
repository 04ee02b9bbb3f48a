// Package names says which names of files cannot lie beside each other in one object, for all who judge lists of files
// before they are one: manifests, containers, bags.
//
// Of two files one cannot have the other's name, nor be the folder that the other lies in. Names that differ only by case or
// normal form are two names, which not every disk can keep apart.
package names

import (
	"hash/maphash"
	"math"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// MaxFolders is how many different folders a Set keeps.
const MaxFolders = 4_000_000

// Set remembers names of files and their folders in some 20 bytes each, whatever their length, under the hash of their
// folded form, so that one look finds a name and all that differ from it only by case or normal form. It compares 56
// bits of the folded form's hash and 31 of that of the name as written: that two of a million different names are taken
// for one has a likelihood of 1 in 10^14, and for variants of each other 1 in 10^5. The seeds are new each time, so that
// nobody can choose names that meet. It is not safe for concurrent use.
type Set struct {
	// tables are made and grow one by one, so that the set of a few names is small and no growth is felt.
	tables        [256]table
	caser         cases.Caser
	folded, exact maphash.Seed
	lastFolder    string // of the last file; it and what it lies in are known
	folders       int
	mostFolders   int
}

// NewSet returns an empty Set.
func NewSet() *Set {
	return &Set{caser: cases.Fold(), folded: maphash.MakeSeed(), exact: maphash.MakeSeed(), mostFolders: MaxFolders}
}

// Kind says what keeps a name from lying beside an earlier one.
type Kind uint8

// The kinds, the worst last.
const (
	Fine       Kind = iota
	Variant         // it differs from it by case or normal form only, or a folder does
	FileFolder      // one of the two is a folder that the other lies in
	Same            // it is the same
	TooMany         // there are more than MaxFolders folders: nothing is known of this one
)

// Clash is what a name has in common with an earlier one.
type Clash struct {
	Kind Kind
	// At is the place at which the earlier name was added; 0 when Fine or TooMany.
	At int
	// Folder is the folder of the new name that is a file; "" when the new name itself is what clashes.
	Folder string
}

// worse takes o if it is worse, or as bad and with an earlier name.
func (c *Clash) worse(o Clash) {
	if o.Kind > c.Kind || o.Kind == c.Kind && o.At < c.At {
		*c = o
	}
}

// Add remembers the name of a file, a relative path without empty parts, and says what it clashes with of those before.
// at is its place, counted from 1, that the Clash of a later name tells; beyond 2^32-1 all are that one.
func (s *Set) Add(name string, at int) Clash {
	clash := s.meet(name, false, at)
	if clash.Kind == Same {
		return clash
	}
	if end := strings.LastIndexByte(name, '/'); end >= 0 {
		if folder := name[:end]; folder != s.lastFolder {
			clash.worse(s.addFolders(folder, at))
			s.lastFolder = folder
		}
	}
	return clash
}

// AddFolder remembers a folder, which may come often, and those that it lies in. It is never the Same.
func (s *Set) AddFolder(name string, at int) Clash {
	clash := s.addFolders(name, at)
	if clash.Folder == name {
		clash.Folder = ""
	}
	return clash
}

// addFolders enters a folder and those around it, as far as they are not known yet.
func (s *Set) addFolders(folder string, at int) Clash {
	var worst Clash
	for {
		clash := s.meet(folder, true, at)
		if clash.Kind == Same { // so those around it are known, too
			return worst
		}
		if clash.Kind != Fine {
			clash.Folder = folder
		}
		worst.worse(clash)
		end := strings.LastIndexByte(folder, '/')
		if end < 0 {
			return worst
		}
		folder = folder[:end]
	}
}

// meet looks for a name and enters it, unless it is there as what it is now.
func (s *Set) meet(name string, folder bool, at int) Clash {
	var buf [256]byte
	fold := maphash.Bytes(s.folded, s.fold(buf[:0], name))
	key := newSlot(fold, maphash.String(s.exact, name), folder, at)
	t := &s.tables[fold>>56]
	clash := t.find(key)
	if clash.Kind == Same {
		return clash
	}
	if folder {
		if s.folders == s.mostFolders {
			return Clash{Kind: TooMany}
		}
		s.folders++
	}
	t.insert(key)
	return clash
}

// fold appends to b the text that names have in common which a file system without case, or one that normalises, takes
// for one.
func (s *Set) fold(b []byte, name string) []byte {
	for i := range len(name) {
		c := name[i]
		if c >= utf8.RuneSelf {
			return append(b[:0], norm.NFC.String(s.caser.String(norm.NFC.String(name)))...)
		}
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		b = append(b, c)
	}
	return b
}

// slot is one name, or nothing where at is 0. It is made of small parts, so that it takes no more bytes than they do.
type slot struct {
	fold  [3]uint16 // of the folded form's hash
	exact [2]uint16 // of the hash of the name as written; the lowest bit is set for a folder
	at    [2]uint16
}

func newSlot(fold, exact uint64, folder bool, at int) slot {
	exact &^= 1
	if folder {
		exact |= 1
	}
	capped := min(at, math.MaxUint32)
	return slot{
		fold:  [3]uint16{uint16(fold), uint16(fold >> 16), uint16(fold >> 32)},
		exact: [2]uint16{uint16(exact), uint16(exact >> 16)},
		at:    [2]uint16{uint16(capped), uint16(capped >> 16)},
	}
}

func (s *slot) place() int { return int(s.at[0]) | int(s.at[1])<<16 }

// clash says what the new name k has in common with s, whose folded form is the same.
func (s *slot) clash(k *slot) Clash {
	bothFolders := s.exact[0]&k.exact[0]&1 == 1
	switch {
	case s.exact == k.exact:
		return Clash{Kind: Same, At: s.place()}
	case bothFolders: // folders that are variants of each other show in their files, if at all
		return Clash{}
	case s.exact[0]|1 == k.exact[0]|1 && s.exact[1] == k.exact[1]:
		return Clash{Kind: FileFolder, At: s.place()}
	}
	return Clash{Kind: Variant, At: s.place()}
}

// table is a hash table with open addressing: what does not fit into its slot goes into the next that is free.
type table struct {
	slots []slot
	used  int
}

// first is the slot at which the search for k begins. It grows with the hash, so that a table that grows keeps its order.
func (t *table) first(k *slot) int {
	hash := uint64(k.fold[1]) | uint64(k.fold[2])<<16
	return int(hash * uint64(len(t.slots)) >> 32)
}

// find returns the worst of what k has in common with the names that are there, of several the first.
func (t *table) find(k slot) (c Clash) {
	if t.used == 0 {
		return c
	}
	for i := t.first(&k); ; i++ {
		if i == len(t.slots) {
			i = 0
		}
		s := &t.slots[i]
		if s.at == [2]uint16{} {
			return c
		}
		if s.fold == k.fold {
			c.worse(s.clash(&k))
		}
	}
}

// insert adds k. A fifth of the slots is free, or searches would be long; tables grow by a quarter, or most of the memory of
// a million names would be room for more of them.
func (t *table) insert(k slot) {
	if (t.used+1)*5 > len(t.slots)*4 {
		old := t.slots
		t.slots = make([]slot, len(old)+len(old)/4+8)
		for _, s := range old {
			if s.at != [2]uint16{} {
				t.put(s)
			}
		}
	}
	t.put(k)
	t.used++
}

func (t *table) put(k slot) {
	for i := t.first(&k); ; i++ {
		if i == len(t.slots) {
			i = 0
		}
		if t.slots[i].at == [2]uint16{} {
			t.slots[i] = k
			return
		}
	}
}
