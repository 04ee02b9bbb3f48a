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
	// shareWeight is the target weight of a share's records.
	shareWeight = 8 << 20
	// maxShares bounds the number of shares. Each buffers some records in memory while the bag is
	// dealt out.
	maxShares = 512
	// maxHeld bounds the octets held of one share. Names that may be confused always go into one
	// share, so only a bag made of such variants, or one of absurd size, exceeds it.
	maxHeld = 32 << 20
	// nameWeight is about what the tables of a share need for a name beside its octets.
	nameWeight = 200
)

// share is the part of a bag that is in memory at a time.
type share struct {
	records *spill.Log              // of fileRecord
	listed  map[*tagFile]*spill.Log // of entryRecord, by manifest
	toGet   *spill.Log              // of FetchEntry; nil if there is no fetch.txt

	files    []shareFile
	byName   map[string]int32
	known    nameIndex
	fetched  map[string]bool     // normalized names in fetch.txt, escaped as in the bag's manifests
	absent   map[string]*absence // by name, listed but not there
	stoodFor map[string]bool     // names that a file of another name stands for
	entries  []FetchEntry
	held     int // octets of all of these, estimated
}

// shareFile is a file of a share.
type shareFile struct {
	fileRecord        // with its name in the bag
	claims     uint64 // a bit for each manifest that lists it
}

// shares yields the shares of the bag. Nearly all bags have one.
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
			*s = share{} // frees its memory before the next is loaded
		}
	}
}

// deal distributes all records over n shares and keeps their order.
func (j *judge) deal(n int) []*share {
	// The records were within the limit when they were added, so they are now.
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

// dealLog distributes the records of one log over n logs, by their names. The new logs buffer
// records in memory only during the call. If a record cannot be stored it stops early, and Err of
// the Space returns the error.
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

// decoded returns a name of a tag file in UTF-8, or unchanged if it cannot be decoded.
func (j *judge) decoded(tag *tagFile, name string) string {
	if tag.form == formUTF16 {
		return name
	}
	text, _ := j.enc.decode(name)
	return text
}

// kin returns the same key for all names that may be confused: names that differ in case, normal
// form, "./", marks of md5sum, or escapes.
func (j *judge) kin(name string) string {
	name = pathset.Fold(strings.TrimLeft(path.Clean(name), "*"))
	escaped := strings.ContainsAny(name, "%\n\r")
	if !escaped && j.enc.enc == nil {
		return name
	}
	return strings.Map(func(r rune) rune {
		switch {
		case escaped && strings.ContainsRune("%025ad\n\r", r): // the characters of escapes and what they stand for
			return -1
		case j.enc.enc != nil && r > 0x7f: // a name may also be meant as its undecoded octets
			return -1
		}
		return r
	}, name)
}

// load reads the files of the share, and reports duplicates and files outside the bag.
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

// hold reserves memory of the share. It reports a fault and returns false if there is no room.
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

// judgeShare checks one share.
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

// lookup returns the file of exactly this name in the bag, or -1.
func (j *judge) lookup(name string) int32 {
	if file, ok := j.byName[name]; ok {
		return file
	}
	return -1
}

// rel returns the name of a file in the bag.
func (j *judge) rel(file int32) string { return j.files[file].name }
