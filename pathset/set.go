// Package pathset finds file names that cannot exist together in one object. It is used for
// manifests, containers and bags.
//
// Two files cannot have the same name, and a file cannot be the folder of another. Names that
// differ only in case or normal form are different names, but some disks cannot hold both.
package pathset

import (
	"hash/maphash"
	"math"
	"strings"
)

// MaxFiles and MaxFolders bound the files and the different folders in a Set. A full Set takes
// about 60 MiB.
const (
	MaxFiles   = 2_000_000
	MaxFolders = 1_000_000
)

// maxAlike bounds the names in a Set that differ only in case or normal form. Adding one takes time
// in proportion to their number.
const maxAlike = 1000

// Set holds names of files and their folders in about 20 bytes each, whatever their length. It
// stores hashes by folded name, so one look-up finds a name and all that differ only in case or
// normal form.
//
// It compares 56 bits of the hash of the folded name and 31 bits of the hash of the name as
// written. Among a million different names, two are confused with probability 10^-14, or 10^-5 if
// they are variants. The seeds are random, so nobody can construct collisions. It is not safe for
// concurrent use.
type Set struct {
	// tables grow independently and at different times. So a small set stays small, no single
	// growth takes long, and they never all have spare room at once.
	tables        [256]table
	folded, exact maphash.Seed
	touched       uint16 // written by AddAll so that its reads are not optimized away
	lastFolder    string // of the last file; it and its parents are in the set
	folders       int
	files         int
	mostFiles     int
	mostFolders   int
}

// NewSet returns an empty Set.
func NewSet() *Set {
	return &Set{folded: maphash.MakeSeed(), exact: maphash.MakeSeed(), mostFiles: MaxFiles, mostFolders: MaxFolders}
}

// Kind says how a name clashes with an earlier one.
type Kind uint8

// The kinds, the worst last.
const (
	Fine       Kind = iota
	Variant         // it or one of its folders differs only in case or normal form
	FileFolder      // one is a file and the other its folder
	Same            // the names are equal
	TooMany         // more than MaxFiles, MaxFolders or 1,000 similar names: this one was not checked
)

// Clash describes how a name clashes with an earlier one.
type Clash struct {
	Kind Kind
	// At is the position of the earlier name, or 0 if Kind is Fine or TooMany.
	At int
	// Folder is the folder of the new name that clashes, or "" if the new name itself does.
	Folder string
}

// worse replaces c by o if o is worse, or equally bad with an earlier position.
func (c *Clash) worse(o Clash) {
	if o.Kind > c.Kind || o.Kind == c.Kind && o.At < c.At {
		*c = o
	}
}

// Add adds the name of a file, a relative path without empty segments, and returns how it clashes
// with earlier names. at is its position, counted from 1, for the Clash of later names; positions
// above 2^32-1 are stored as that.
func (s *Set) Add(name string, at int) Clash { return s.add(s.entry(name, false, at)) }

// File is a name for AddAll.
type File struct {
	Name  string
	At    int
	Clash Clash // set by AddAll
}

// AddAll adds files one after the other, as Add does. It is faster, because it loads the memory of
// many names at the same time.
func (s *Set) AddAll(files []File) {
	var entries [64]entry
	for len(files) > 0 {
		portion := files[:min(len(files), len(entries))]
		files = files[len(portion):]
		for i, f := range portion {
			entries[i] = s.entry(f.Name, false, f.At)
		}
		for i := range portion {
			e := &entries[i]
			if t := &s.tables[e.table]; t.slots != nil {
				s.touched += t.slots[t.first(&e.slot)].at[0]
			}
		}
		for i := range portion {
			portion[i].Clash = s.add(entries[i])
		}
	}
}

// add adds a file.
func (s *Set) add(e entry) Clash {
	clash := s.meet(e)
	if clash.Kind == Same {
		return clash
	}
	if end := strings.LastIndexByte(e.name, '/'); end >= 0 {
		if folder := e.name[:end]; folder != s.lastFolder {
			clash.worse(s.addFolders(folder, e.at))
			s.lastFolder = folder
		}
	}
	return clash
}

// AddFolder adds a folder and its parents. The same folder may be added several times; the result
// is never Same.
func (s *Set) AddFolder(name string, at int) Clash {
	clash := s.addFolders(name, at)
	if clash.Folder == name {
		clash.Folder = ""
	}
	return clash
}

// addFolders adds a folder and its parents, until it meets one that is in the set.
func (s *Set) addFolders(folder string, at int) Clash {
	var worst Clash
	for {
		clash := s.meet(s.entry(folder, true, at))
		if clash.Kind == Same { // so its parents are in the set too
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

// entry is a name to be put into a table.
type entry struct {
	name  string
	at    int
	table uint8
	slot  slot
}

func (s *Set) entry(name string, folder bool, at int) entry {
	var buf [256]byte
	fold := maphash.Bytes(s.folded, appendFold(buf[:0], name))
	return entry{name: name, at: at, table: uint8(fold >> 56), slot: newSlot(fold, maphash.String(s.exact, name), folder, at)}
}

// meet looks up a name and adds it unless it is there.
func (s *Set) meet(e entry) Clash {
	t := &s.tables[e.table]
	if t.slots == nil {
		t.slots = make([]slot, 8+int(e.table)*12/len(s.tables))
	}
	clash, free, alike := t.find(&e.slot)
	if clash.Kind == Same {
		return clash
	}
	if alike >= maxAlike {
		return Clash{Kind: TooMany}
	}
	if e.slot.folder() {
		if s.folders == s.mostFolders {
			return Clash{Kind: TooMany}
		}
		s.folders++
	} else {
		if s.files == s.mostFiles {
			return Clash{Kind: TooMany}
		}
		s.files++
	}
	t.insert(e.slot, free)
	return clash
}

// slot is one stored name; it is empty if at is 0. Its small fields avoid padding.
type slot struct {
	fold  [3]uint16 // of the folded form's hash
	exact [2]uint16 // of the hash of the exact name; the lowest bit marks a folder
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

func (s *slot) folder() bool { return s.exact[0]&1 == 1 }

func (s *slot) place() int { return int(s.at[0]) | int(s.at[1])<<16 }

// clash compares the new name k with s. Their folded forms are equal.
func (s *slot) clash(k *slot) Clash {
	switch {
	case s.exact == k.exact:
		return Clash{Kind: Same, At: s.place()}
	case s.folder() && k.folder(): // their files will show the clash, if any
		return Clash{}
	case s.exact[0]|1 == k.exact[0]|1 && s.exact[1] == k.exact[1]:
		return Clash{Kind: FileFolder, At: s.place()}
	}
	return Clash{Kind: Variant, At: s.place()}
}

// table is a hash table with open addressing and linear probing.
type table struct {
	slots []slot
	used  int
}

// first returns the slot at which the search for k begins. It increases with the hash, so growing a
// table keeps its order.
func (t *table) first(k *slot) int {
	hash := uint64(k.fold[1]) | uint64(k.fold[2])<<16
	return int(hash * uint64(len(t.slots)) >> 32)
}

// find returns the worst clash of k with the names in the table (the earliest of equally bad ones),
// the free slot at which the search ended, and the number of names with the same folded form.
func (t *table) find(k *slot) (c Clash, free, alike int) {
	for i := t.first(k); ; i++ {
		if i == len(t.slots) {
			i = 0
		}
		s := &t.slots[i]
		if s.at == [2]uint16{} {
			return c, i, alike
		}
		if s.fold == k.fold {
			alike++
			c.worse(s.clash(k))
		}
	}
}

// insert stores k, whose search ended at free. A fifth of the slots stays free, so that searches
// are short. Tables grow by a half, so that little memory is spare. The added 8 keeps the different
// initial sizes evenly spread.
func (t *table) insert(k slot, free int) {
	t.used++
	if t.used*5 <= len(t.slots)*4 {
		t.slots[free] = k
		return
	}
	old := t.slots
	t.slots = make([]slot, len(old)+len(old)/2+8)
	for _, s := range old {
		if s.at != [2]uint16{} {
			t.put(s)
		}
	}
	t.put(k)
}

func (t *table) put(k slot) {
	_, free, _ := t.find(&k)
	t.slots[free] = k
}
