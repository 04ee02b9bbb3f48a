package bagit

import (
	"fmt"
	"hash/maphash"
	"iter"
	"path"
	"strings"

	"github.com/holdfast/holdfast/pathset"
	"github.com/holdfast/holdfast/spill"
)

const (
	// shareWeight is what the records of a share should weigh.
	shareWeight = 8 << 20
	// maxShares bounds the shares of a bag, since each gathers some records in memory while the bag
	// is dealt out.
	maxShares = 512
	// maxHeld bounds the octets that are held of a share. Names that may be taken for one another
	// are never dealt to different shares, so a share has so many only if most of them are such
	// variants, or if the bag has far more than can be meant.
	maxHeld = 32 << 20
	// nameWeight is about what a name takes in the tables of a share beside its octets.
	nameWeight = 200
)

// share is the part of a bag that is held in memory at a time.
type share struct {
	records *spill.Log              // of fileRecord
	listed  map[*tagFile]*spill.Log // of entryRecord, by manifest
	toGet   *spill.Log              // of FetchEntry; nil for none

	files    []shareFile
	byName   map[string]int32
	known    nameIndex
	fetched  map[string]bool     // normalized names in fetch.txt, escaped as in manifests of the version
	absent   map[string]*absence // by name, listed but not there
	stoodFor map[string]bool     // names that a file of another name stands for
	entries  []FetchEntry
	held     int // octets of all of these, roughly
}

// shareFile is a file of a share.
type shareFile struct {
	fileRecord        // its name is that in the bag
	claims     uint64 // a bit for each manifest that lists it
}

// shares yields the shares of the bag. Nearly all bags are one.
func (j *judge) shares() iter.Seq[*share] {
	weight := j.v.weight
	return func(yield func(*share) bool) {
		n := min(weight/j.v.share+1, maxShares)
		if n == 1 {
			s := &share{records: j.v.files, listed: map[*tagFile]*spill.Log{}}
			for _, m := range j.manifests() {
				s.listed[m.tagFile] = m.entries
			}
			if tag := j.tagFile(FetchFile); tag != nil {
				s.toGet = tag.fetch
			}
			yield(s)
			return
		}
		j.parents = pathset.NewSet()
		for _, s := range j.deal(int(n)) {
			if !yield(s) {
				return
			}
			*s = share{} // what it held goes before the next is loaded
		}
	}
}

// deal deals all records out to n shares, each in the order in which they came.
func (j *judge) deal(n int) []*share {
	// What is dealt was counted when it came, and is not more than that.
	j.v.dealt = spill.NewSpace(j.v.opts.TempDir, j.v.opts.MaxRecords)
	seed := maphash.MakeSeed()
	shares := make([]*share, n)
	for i, records := range j.dealLog(n, seed, j.v.files, func(r []byte) string { return strings.TrimPrefix(readFile(r).name, j.base) }) {
		shares[i] = &share{records: records, listed: map[*tagFile]*spill.Log{}}
	}
	for _, m := range j.manifests() {
		for i, listed := range j.dealLog(n, seed, m.entries, func(r []byte) string { return j.decoded(m.tagFile, readEntry(r).name) }) {
			shares[i].listed[m.tagFile] = listed
		}
	}
	if tag := j.tagFile(FetchFile); tag != nil {
		for i, toGet := range j.dealLog(n, seed, tag.fetch, func(r []byte) string { return j.decoded(tag, readFetchEntry(r).File) }) {
			shares[i].toGet = toGet
		}
	}
	return shares
}

// dealLog deals the records of one log out to n, by their names. Each of these gathers records in
// memory only until all are dealt. When one cannot be put aside it ends early, and Err of the Space
// says why.
func (j *judge) dealLog(n int, seed maphash.Seed, from *spill.Log, name func(record []byte) string) []*spill.Log {
	logs := make([]*spill.Log, n)
	for i := range logs {
		logs[i] = j.v.dealt.NewLog()
	}
	for record := range from.Records() {
		if !logs[maphash.String(seed, j.kin(name(record)))%uint64(n)].Append(record) {
			break
		}
	}
	for _, l := range logs {
		l.Flush()
	}
	return logs
}

// decoded is a name in a tag file as UTF-8, or as it is when it cannot be read.
func (j *judge) decoded(tag *tagFile, name string) string {
	if tag.form == formUTF16 {
		return name
	}
	text, _ := j.enc.decode(name)
	return text
}

// kin is equal for all names that may be taken for one another: which differ in case, in normal
// form, in "./", in marks of md5sum, or in how they are escaped.
func (j *judge) kin(name string) string {
	name = pathset.Fold(strings.TrimLeft(path.Clean(name), "*"))
	escaped := strings.ContainsAny(name, "%\n\r")
	if !escaped && j.enc.enc == nil {
		return name
	}
	return strings.Map(func(r rune) rune {
		switch {
		case escaped && strings.ContainsRune("%025ad\n\r", r): // what escapes, and what they stand for, are made of
			return -1
		case j.enc.enc != nil && r > 0x7f: // a name may be meant as the octets that it is in
			return -1
		}
		return r
	}, name)
}

// load reads the files of the share, and reports what their names alone show.
func (j *judge) load() {
	s := j.share
	s.byName = map[string]int32{}
	s.known = nameIndex{first: map[string]int32{}, more: map[string][]int32{}}
	s.fetched, s.absent, s.stoodFor = map[string]bool{}, map[string]*absence{}, map[string]bool{}
	for record := range s.records.Records() {
		f := readFile(record)
		name, inBag := strings.CutPrefix(f.name, j.base)
		if !inBag {
			j.outside(f.name)
			continue
		}
		if _, twice := s.byName[name]; twice {
			j.fail(RuleDuplicateEntry, f.name, "one file of this name", "more", "")
			continue
		}
		if !j.hold(2*len(name) + len(f.digests) + 2*nameWeight) {
			continue
		}
		f.name, f.digests = name, append([]byte(nil), f.digests...)
		s.byName[name] = int32(len(s.files))
		s.files = append(s.files, shareFile{fileRecord: f})
	}
}

// hold says whether there is room in the share for so many octets more, and counts them; when there
// is not, it reports that.
func (j *judge) hold(octets int) bool {
	if j.held+octets <= maxHeld {
		j.held += octets
		return true
	}
	if !j.v.limited["held"] {
		j.v.limited["held"] = true
		j.fail(RuleLimit, "", fmt.Sprintf("at most %d MiB of names that are listed and missing, or differ in case only", maxHeld>>20), "more", "")
	}
	return false
}

func (j *judge) outside(name string) {
	if isSystemFile(name) {
		j.warn(RuleSystemFile, name, "nothing beside the bag", name, "")
	} else {
		j.fail(RuleOutsideBag, name, "a path below "+j.base, name, "")
	}
}

// judgeShare judges one share.
func (j *judge) judgeShare() {
	j.load()
	j.indexFiles()
	j.fetch()
	for _, m := range j.manifests() {
		j.manifest(m)
	}
	j.listing()
	j.reportAbsent()
	j.unlistedFetch()
	j.profileShare()
}

// lookup finds the file of exactly that name in the bag, or -1.
func (j *judge) lookup(name string) int32 {
	if file, ok := j.byName[name]; ok {
		return file
	}
	return -1
}

// rel is the name of a file in the bag.
func (j *judge) rel(file int32) string { return j.files[file].name }
