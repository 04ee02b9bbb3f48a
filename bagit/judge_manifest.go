package bagit

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"path"
	"strings"
)

// resolved is an entry of a manifest whose name has been read.
type resolved struct {
	manifestRecord
	raw    string // as in the manifest, in UTF-8
	name   string // the name that is meant
	second string // what it may mean otherwise, "" for nothing
	file   int32  // -1 for none of that name
}

// manifest judges the lines of one manifest.
func (j *judge) manifest(m *manifest) {
	for _, f := range j.enc.checkForm(m.file, m.form, j.version) {
		j.add(f)
	}
	for _, l := range m.lines {
		j.fail(RuleManifestLine, m.file, "checksum filepath", l.Reason+": "+l.Text, fmt.Sprintf("%s:%d", m.file, l.Line))
	}
	seen := &seenIn{byFile: map[int32]manifestRecord{}, byName: map[string]manifestRecord{}}
	var strays []resolved // no file of exactly the name
	marks := m.md5sum
	dots := ""
	for _, e := range m.entries {
		entry, ok := j.resolve(m, e, &marks, &dots)
		switch {
		case !ok:
		case entry.file < 0:
			strays = append(strays, entry)
		case !j.repeated(m, seen, entry):
			j.claim(m, seen, entry)
			j.verify(m, e, entry.file)
		}
	}
	for _, entry := range strays {
		j.stray(m, seen, entry)
	}
	if marks {
		j.warn(RuleMD5Sum, m.file, "checksum filepath", "marks of md5sum", "")
	}
	if dots != "" {
		j.warn(RuleRelativePath, m.file, "paths without ./", dots, "")
	}
}

// seenIn knows the entries of one manifest that have been judged.
type seenIn struct {
	byFile map[int32]manifestRecord
	byName map[string]manifestRecord
}

// resolve reads the name of an entry and finds its file. False when the entry is refused; that is reported.
func (j *judge) resolve(m *manifest, e manifestRecord, marks *bool, dots *string) (resolved, bool) {
	raw := j.v.names.list[e.name]
	out := resolved{manifestRecord: e, raw: raw, file: -1}
	if m.form != formUTF16 {
		decoded, ok := j.enc.decode(raw)
		if !ok {
			j.fail(RuleEncoding, m.file, j.enc.name, raw, m.line(e))
			return out, false
		}
		out.raw = decoded
	}
	name := out.raw
	if strings.HasPrefix(name, "*") && j.lookup(name) < 0 {
		*marks = true
		name = name[1:]
	}
	if why := unsafeReference(name); why != "" {
		j.fail(RuleUnsafeName, name, "a relative path inside the bag", why, m.line(e))
		return out, false
	}
	if strings.HasSuffix(name, "/") {
		j.fail(RuleManifestLine, name, "the path of a file", "the path of a folder", m.line(e))
		return out, false
	}
	if clean := path.Clean(name); clean != name {
		if *dots == "" {
			*dots = name
		}
		name = clean
	}
	if !j.scope(m, e, name) {
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
	j.checkEscapes(m, name, out)
	return out, true
}

// scope checks that a manifest lists files of its kind. False when the entry is not to be looked at further.
func (j *judge) scope(m *manifest, e manifestRecord, name string) bool {
	inPayload := strings.HasPrefix(name, payloadPrefix)
	if m.kind == kindPayloadManifest {
		if !inPayload {
			j.fail(RuleOutsidePayload, name, "a path below "+payloadPrefix, name, m.line(e))
		}
		return inPayload
	}
	if kind, _ := manifestName(name); kind == tagManifest {
		j.sinceV1(RuleTagManifest, name, "no tag manifests listed", name, m.line(e))
	}
	if inPayload {
		j.sinceV1(RuleTagManifest, name, "no payload listed", name, m.line(e))
	}
	return true
}

// checkEscapes warns of percent signs that are not used as the version asks.
func (j *judge) checkEscapes(m *manifest, name string, e resolved) {
	if !strings.Contains(name, "%") {
		return
	}
	literal := e.file >= 0 && j.rel(e.file) == name
	if !j.beforeV1() && (literal || !wellEscaped(name)) {
		j.warn(RulePercent, name, escape(unescape(name)), name, m.line(e.manifestRecord))
	} else if j.beforeV1() && !literal && e.file >= 0 && strings.Contains(name, "%25") {
		j.warn(RulePercent, name, "percent sign not escaped before 1.0", name, m.line(e.manifestRecord))
	}
}

// repeated reports an entry for a file that the manifest has listed before.
func (j *judge) repeated(m *manifest, seen *seenIn, e resolved) bool {
	first, again := seen.byFile[e.file], false
	if e.file < 0 {
		first, again = seen.byName[e.name]
	} else {
		again = j.claims[e.file]&m.bit != 0
	}
	if !again {
		return false
	}
	j.twice(m, first, e)
	return true
}

func (j *judge) twice(m *manifest, first manifestRecord, e resolved) {
	if first.digest < 0 || e.digest < 0 || !bytes.Equal(m.digest(first), m.digest(e.manifestRecord)) {
		j.fail(RuleListedTwice, e.name, "one digest for a file", fmt.Sprintf("another in line %d", first.line), m.line(e.manifestRecord))
		return
	}
	j.sinceV1(RuleListedTwice, e.name, "listed once", fmt.Sprintf("the same in line %d", first.line), m.line(e.manifestRecord))
}

func (j *judge) claim(m *manifest, seen *seenIn, e resolved) {
	j.claims[e.file] |= m.bit
	seen.byFile[e.file] = e.manifestRecord
}

// verify compares the digest of an entry with the one taken of the file.
func (j *judge) verify(m *manifest, e manifestRecord, file int32) {
	if e.digest < 0 {
		return // its line or its algorithm has been reported
	}
	found, ok := j.digestOf(file, m.which)
	switch {
	case ok && !bytes.Equal(found, m.digest(e)):
		j.fail(RuleDigest, j.rel(file), m.alg+":"+hex.EncodeToString(m.digest(e)), m.alg+":"+hex.EncodeToString(found), m.line(e))
	case !ok && (!j.v.opts.CompletenessOnly || !strings.HasPrefix(j.rel(file), payloadPrefix)):
		j.fail(RuleNotVerified, j.rel(file), "a digest of "+m.which.String(), "none", m.line(e))
	}
}

func (j *judge) digestOf(file int32, a algorithm) ([]byte, bool) {
	f := j.v.files[file]
	if !f.algs.has(a) {
		return nil, false
	}
	at := int(f.offset) + f.algs.offset(a)
	return j.v.digests[at : at+a.size()], true
}

// same says that the file has the digest of the entry, as far as that can be told.
func (j *judge) same(m *manifest, e manifestRecord, file int32) bool {
	found, ok := j.digestOf(file, m.which)
	return e.digest >= 0 && (ok && bytes.Equal(found, m.digest(e)) || !ok && j.v.opts.CompletenessOnly)
}

// stray judges an entry that has no file of exactly its name: another spelling of the name may have one
// (section 6.1.1.3).
func (j *judge) stray(m *manifest, seen *seenIn, e resolved) {
	if e.file = j.equivalent(m, e); e.file < 0 {
		if !j.repeated(m, seen, e) {
			seen.byName[e.name] = e.manifestRecord
			j.miss(m, e)
		}
		return
	}
	rule := RuleNormalization
	if normalized(j.rel(e.file)) != normalized(e.name) {
		rule = RuleCase
	}
	if j.claims[e.file]&m.bit != 0 {
		// The file is listed by its own name, too. Both can only be meant if the content is that of both.
		if !j.same(m, e.manifestRecord, e.file) {
			j.miss(m, e)
			return
		}
		j.standIns[e.name] = j.v.files[e.file].size
	} else {
		if rule == RuleCase && !j.same(m, e.manifestRecord, e.file) {
			j.miss(m, e)
			return
		}
		j.claim(m, seen, e)
		j.verify(m, e.manifestRecord, e.file)
	}
	j.warn(rule, j.rel(e.file), e.name, j.rel(e.file), m.line(e.manifestRecord))
}

// equivalent finds a file whose name differs from that of the entry in normal form only, or is the octets of the
// manifest not decoded, or before 1.0 differs in case; one that the manifest does not list otherwise is taken first.
func (j *judge) equivalent(m *manifest, e resolved) int32 {
	best, bestRank := int32(-1), 4
	consider := func(file int32, rank int) {
		if j.claims[file]&m.bit != 0 {
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
	if file := j.lookup(j.v.names.list[e.manifestRecord.name]); file >= 0 && best < 0 {
		best = file
	}
	return best
}

// miss notes a listed file that is not there; reported once, whatever number of manifests list it.
func (j *judge) miss(m *manifest, e resolved) {
	a := j.absent[e.name]
	if a == nil {
		a = &absence{source: m.line(e.manifestRecord)}
		j.absent[e.name] = a
	}
	a.claims |= m.bit
	a.payload = a.payload || m.kind == kindPayloadManifest
}

func (j *judge) reportAbsent() {
	for name, a := range j.absent {
		switch {
		case a.payload && j.fetched[normalized(name)]:
			j.fail(RuleNotFetched, name, "a file", "none, to be fetched", a.source)
		case j.beforeV1() && isSystemFile(name):
			j.tolerated++
			j.warn(RuleSystemFile, name, "a file", "none", a.source)
		default:
			j.fail(RuleMissing, name, "a file", "none", a.source)
		}
	}
}
