// Package pathset finds names of files that cannot lie beside each other in one object. It serves
// everything that judges lists of files: manifests, containers, bags.
//
// A file cannot have another's name, nor be a folder that another lies in. Names that differ only
// by case or normal form are two names, but not every disk can keep them apart.
package pathset

import (
	"hash/maphash"
	"math"
	"strings"
)

// MaxFiles and MaxFolders are how many names of files, and how many different folders, a Set keeps.
// At most, it takes some 60 MiB.
const (
	MaxFiles   = 2_000_000
	MaxFolders = 1_000_000
)

// maxAlike is how many names a Set keeps that differ by case or normal form only. To meet one more
// takes as many steps.
const maxAlike = 1000

// Set remembers names of files and their folders in some 20 bytes each, whatever their length,
// under the hash of their folded form, so that one look finds a name and all that differ from it
// only by case or normal form. It compares 56 bits of the folded form's hash and 31 of that of the
// name as written: that two of a million different names are taken for one has a likelihood of 1 in
// 10^14, and for variants of each other 1 in 10^5. The seeds are new each time, so that nobody can
// choose names that meet. It is not safe for concurrent use.
type Set struct {
	// tables are made and grow one by one, each at a time of its own, so that the set of a few
	// names is small, no growth is felt, and never all of them have just become larger.
	tables        [256]table
	folded, exact maphash.Seed
	touched       uint16 // what AddAll looked at; only there to be written to
	lastFolder    string // of the last file; it and what it lies in are known
	folders       int
	files         int
	mostFiles     int
	mostFolders   int
}

// NewSet returns an empty Set.
func NewSet() *Set {
	return &Set{folded: maphash.MakeSeed(), exact: maphash.MakeSeed(), mostFiles: MaxFiles, mostFolders: MaxFolders}
}

// Kind says what keeps a name from lying beside an earlier one.
type Kind uint8

// The kinds, the worst last.
const (
	Fine       Kind = iota
	Variant         // it differs from it by case or normal form only, or a folder does
	FileFolder      // one of the two is a folder that the other lies in
	Same            // it is the same
	TooMany         // there are more than MaxFiles, MaxFolders or 1,000 that are alike: nothing is known of this one
)

// Clash is what a name has in common with an earlier one.
type Clash struct {
	Kind Kind
	// At is the place at which the earlier name was added; 0 when Fine or TooMany.
	At int
	// Folder is the folder of the new name that is a file; "" when the new name itself is what
	// clashes.
	Folder string
}

// worse takes o if it is worse, or as bad and with an earlier name.
func (c *Clash) worse(o Clash) {
	if o.Kind > c.Kind || o.Kind == c.Kind && o.At < c.At {
		*c = o
	}
}

// Add remembers the name of a file, a relative path without empty parts, and says what it clashes
// with of those before. at is its place, counted from 1, that the Clash of a later name tells;
// beyond 2^32-1 all are that one.
func (s *Set) Add(name string, at int) Clash { return s.add(s.entry(name, false, at)) }

// File is a name that AddAll adds.
type File struct {
	Name  string
	At    int
	Clash Clash // is filled in
}

// AddAll adds files as Add does, one after the other. It takes less time: what many names wait for
// is the memory that their tables lie in, and here they wait for it together.
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

// AddFolder remembers a folder, which may come often, and those that it lies in. It is never the
// Same.
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
		clash := s.meet(s.entry(folder, true, at))
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

// entry is a name on its way into a table.
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

// meet looks for a name and enters it, unless it is there as what it is now.
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

// slot is one name, or nothing where at is 0. It is made of small parts, so that it takes no more
// bytes than they do.
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

func (s *slot) folder() bool { return s.exact[0]&1 == 1 }

func (s *slot) place() int { return int(s.at[0]) | int(s.at[1])<<16 }

// clash says what the new name k has in common with s, whose folded form is the same.
func (s *slot) clash(k *slot) Clash {
	switch {
	case s.exact == k.exact:
		return Clash{Kind: Same, At: s.place()}
	case s.folder() && k.folder(): // folders that are variants of each other show in their files, if at all
		return Clash{}
	case s.exact[0]|1 == k.exact[0]|1 && s.exact[1] == k.exact[1]:
		return Clash{Kind: FileFolder, At: s.place()}
	}
	return Clash{Kind: Variant, At: s.place()}
}

// table is a hash table with open addressing: what does not fit into its slot goes into the next
// that is free.
type table struct {
	slots []slot
	used  int
}

// first is the slot at which the search for k begins. It grows with the hash, so that a table that
// grows keeps its order.
func (t *table) first(k *slot) int {
	hash := uint64(k.fold[1]) | uint64(k.fold[2])<<16
	return int(hash * uint64(len(t.slots)) >> 32)
}

// find returns the worst of what k has in common with the names that are there, of several the
// first, the free slot at which the search ended, and how many names there are of the same folded
// form.
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

// insert adds k, whose search ended at free. A fifth of the slots is free, or searches would be
// long; tables grow by a half, or most of the memory of a million names would be room for more of
// them. With the 8 their sizes, as they were made, are spread evenly over what lies between one
// growth and the next.
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
