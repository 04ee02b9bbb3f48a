package bagit

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"path"
	"strings"
)

// resolved is a manifest entry whose name was decoded and looked up.
type resolved struct {
	entryRecord
	raw    string // the name as in the manifest, in UTF-8
	name   string // the name of the file that is meant
	second string // another reading of the name, "" for none
	file   int32  // -1 for no such file
}

// manifest checks the share's lines of one manifest. Entries that have a file of exactly their name
// come first.
func (j *judge) manifest(m *manifest) {
	seen := &seenIn{byFile: map[int32]first{}, byName: map[string]first{}}
	strays := false
	for record := range j.listed[m.tagFile].Records() {
		entry, ok := j.resolve(m, readEntry(record), true)
		switch {
		case !ok:
		case entry.file < 0:
			strays = true
		case !j.repeated(m, seen, entry):
			j.claim(m, seen, entry)
			j.verify(m, entry.entryRecord, entry.file)
		}
	}
	if !strays {
		return
	}
	for record := range j.listed[m.tagFile].Records() {
		if entry, ok := j.resolve(m, readEntry(record), false); ok && entry.file < 0 {
			j.stray(m, seen, entry)
		}
	}
	j.held -= seen.held // seen is dropped here
}

// seenIn holds the entries of one manifest that were checked.
type seenIn struct {
	byFile map[int32]first
	byName map[string]first
	held   int // octets of byName, estimated
}

// first is the first entry for a name or file.
type first struct {
	line   int
	digest []byte
}

func firstOf(e resolved) first { return first{line: e.line, digest: bytes.Clone(e.digest)} }

// resolve decodes the name of an entry and finds its file. It returns false for an entry that is
// refused, and reports that if report is set.
func (j *judge) resolve(m *manifest, e entryRecord, report bool) (resolved, bool) {
	out := resolved{entryRecord: e, raw: e.name, file: -1}
	fail := func(rule Rule, file, expected, found string) (resolved, bool) {
		if report {
			j.fail(rule, file, expected, found, m.line(e))
		}
		return out, false
	}
	if m.form != formUTF16 {
		decoded, ok := j.enc.decode(e.name)
		if !ok {
			return fail(RuleEncoding, m.file, j.enc.name, e.name)
		}
		out.raw = decoded
	}
	name := out.raw
	if strings.HasPrefix(name, "*") && j.lookup(name) < 0 {
		m.marks = true
		name = name[1:]
	}
	if why := unsafeReference(name); why != "" {
		return fail(RuleUnsafeName, name, "a relative path inside the bag", why)
	}
	if strings.HasSuffix(name, "/") {
		return fail(RuleManifestLine, name, "the path of a file", "the path of a folder")
	}
	if clean := path.Clean(name); clean != name {
		if m.dots == "" || e.line < m.dotsLine {
			m.dots, m.dotsLine = name, e.line
		}
		name = clean
	}
	if !j.scope(m, e, name, report) {
		return out, false
	}
	out.name = name
	if strings.Contains(name, "%") {
		out.second = unescape(name)
		if !j.beforeV1() {
			out.name, out.second = out.second, name
		}
		if out.second == out.name {
			out.second = ""
		}
	}
	out.file = j.lookup(out.name)
	if out.file < 0 && out.second != "" {
		out.file = j.lookup(out.second)
	}
	if report {
		j.checkEscapes(m, name, out)
	}
	return out, true
}

// scope checks that a manifest lists files of its kind. It returns false if the entry is to be
// skipped.
func (j *judge) scope(m *manifest, e entryRecord, name string, report bool) bool {
	inPayload := strings.HasPrefix(name, payloadPrefix)
	if m.kind == kindPayloadManifest {
		if !inPayload && report {
			j.fail(RuleOutsidePayload, name, "a path below "+payloadPrefix, name, m.line(e))
		}
		return inPayload
	}
	if !report {
		return true
	}
	if kind, _ := manifestName(name); kind == tagManifest {
		j.sinceV1(RuleTagManifest, name, "no tag manifests listed", name, m.line(e))
	}
	if inPayload {
		j.sinceV1(RuleTagManifest, name, "no payload listed", name, m.line(e))
	}
	return true
}

// checkEscapes warns of percent signs that are not escaped as the version requires.
func (j *judge) checkEscapes(m *manifest, name string, e resolved) {
	if !strings.Contains(name, "%") {
		return
	}
	literal := e.file >= 0 && j.rel(e.file) == name
	if !j.beforeV1() && (literal || !wellEscaped(name)) {
		j.warn(RulePercent, name, escape(unescape(name)), name, m.line(e.entryRecord))
	} else if j.beforeV1() && !literal && e.file >= 0 && strings.Contains(name, "%25") {
		j.warn(RulePercent, name, "percent sign not escaped before 1.0", name, m.line(e.entryRecord))
	}
}

// repeated reports an entry for a file that the manifest has already listed.
func (j *judge) repeated(m *manifest, seen *seenIn, e resolved) bool {
	before, again := seen.byFile[e.file]
	if e.file < 0 {
		before, again = seen.byName[e.name]
	}
	if again {
		j.twice(m, before, e)
	}
	return again
}

func (j *judge) twice(m *manifest, before first, e resolved) {
	if len(before.digest) == 0 || len(e.digest) == 0 || !bytes.Equal(before.digest, e.digest) {
		j.fail(RuleListedTwice, e.name, "one digest for a file", fmt.Sprintf("another in line %d", before.line), m.line(e.entryRecord))
		return
	}
	j.sinceV1(RuleListedTwice, e.name, "listed once", fmt.Sprintf("the same in line %d", before.line), m.line(e.entryRecord))
}

func (j *judge) claim(m *manifest, seen *seenIn, e resolved) {
	j.files[e.file].claims |= m.bit
	seen.byFile[e.file] = firstOf(e)
}

// verify compares the digest of an entry with that of the file.
func (j *judge) verify(m *manifest, e entryRecord, file int32) {
	if len(e.digest) == 0 {
		return // the malformed line or unknown algorithm has been reported
	}
	found, ok := j.digestOf(file, m.which)
	switch {
	case ok && !bytes.Equal(found, e.digest):
		j.fail(RuleDigest, j.rel(file), m.alg+":"+hex.EncodeToString(e.digest), m.alg+":"+hex.EncodeToString(found), m.line(e))
	case !ok && (!j.v.opts.CompletenessOnly || !strings.HasPrefix(j.rel(file), payloadPrefix)):
		j.fail(RuleNotVerified, j.rel(file), "a digest of "+m.which.String(), "none", m.line(e))
	}
}

func (j *judge) digestOf(file int32, a algorithm) ([]byte, bool) {
	f := j.files[file]
	if !f.algs.has(a) {
		return nil, false
	}
	at := f.algs.offset(a)
	return f.digests[at : at+a.size()], true
}

// same reports whether the file has the digest of the entry. With CompletenessOnly an unknown
// digest counts as equal.
func (j *judge) same(m *manifest, e entryRecord, file int32) bool {
	found, ok := j.digestOf(file, m.which)
	return len(e.digest) > 0 && (ok && bytes.Equal(found, e.digest) || !ok && j.v.opts.CompletenessOnly)
}

// stray checks an entry without a file of exactly its name. A file whose name is spelled
// differently may be meant (section 6.1.1.3).
func (j *judge) stray(m *manifest, seen *seenIn, e resolved) {
	if e.file = j.equivalent(m, e); e.file < 0 {
		if weight := len(e.name) + nameWeight; !j.repeated(m, seen, e) && j.hold(weight) {
			seen.held += weight
			seen.byName[e.name] = firstOf(e)
			j.miss(m, e)
		}
		return
	}
	rule := RuleNormalization
	if normalized(j.rel(e.file)) != normalized(e.name) {
		rule = RuleCase
	}
	if j.files[e.file].claims&m.bit != 0 {
		// The file is also listed by its own name. It can stand for both only if its content
		// matches both.
		if !j.same(m, e.entryRecord, e.file) {
			j.miss(m, e)
			return
		}
		if !j.stoodFor[e.name] && j.hold(len(e.name)+nameWeight) {
			j.stoodFor[e.name] = true
			j.standIns.Files++
			j.standIns.Bytes += j.files[e.file].size
		}
	} else {
		if rule == RuleCase && !j.same(m, e.entryRecord, e.file) {
			j.miss(m, e)
			return
		}
		j.claim(m, seen, e)
		j.verify(m, e.entryRecord, e.file)
	}
	j.warn(rule, j.rel(e.file), e.name, j.rel(e.file), m.line(e.entryRecord))
}

// equivalent returns the file that an entry may mean, or -1. The name of the file differs from that
// of the entry in normal form only, or equals its undecoded octets, or before 1.0 differs in case.
// Files that the manifest does not list otherwise are preferred.
func (j *judge) equivalent(m *manifest, e resolved) int32 {
	best, bestRank := int32(-1), 4
	consider := func(file int32, rank int) {
		if j.files[file].claims&m.bit != 0 {
			rank++
		}
		if rank < bestRank {
			best, bestRank = file, rank
		}
	}
	for _, name := range []string{e.name, e.second} {
		if name == "" {
			continue
		}
		for file := range j.known.like(name) {
			if normalized(j.rel(file)) == normalized(name) {
				consider(file, 0)
			} else if j.beforeV1() {
				consider(file, 2)
			}
		}
	}
	if file := j.lookup(e.entryRecord.name); file >= 0 && best < 0 {
		best = file
	}
	return best
}

// miss notes a listed file that is absent. It is reported once, however many manifests list it.
func (j *judge) miss(m *manifest, e resolved) {
	a := j.absent[e.name]
	if a == nil {
		if !j.hold(len(e.name) + nameWeight) {
			return
		}
		a = &absence{source: m.line(e.entryRecord)}
		j.absent[e.name] = a
	}
	a.claims |= m.bit
	a.payload = a.payload || m.kind == kindPayloadManifest
}

func (j *judge) reportAbsent() {
	for name, a := range j.absent {
		switch {
		case a.payload && j.fetched[normalized(name)]:
			j.toFetch = true
			j.fail(RuleNotFetched, name, "a file", "none, to be fetched", a.source)
		case j.beforeV1() && isSystemFile(name):
			j.tolerated++
			j.warn(RuleSystemFile, name, "a file", "none", a.source)
		default:
			j.fail(RuleMissing, name, "a file", "none", a.source)
		}
	}
}
