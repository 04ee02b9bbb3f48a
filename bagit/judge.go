package bagit

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// judge draws the Report from all that a Validator was given. It runs once, alone.
type judge struct {
	v       *Validator
	r       *Report
	base    string // with a slash at its end, or ""
	version Version
	enc     textEncoding

	payload   []*manifest
	tags      []*manifest
	claims    []uint64 // by file: a bit for each manifest that lists it
	known     nameIndex
	fetched   map[string]bool     // normalized names in fetch.txt, escaped as in manifests of the version
	absent    map[string]*absence // by name, listed but not there
	standIns  map[string]int64    // names that a file of another name stands for, and its size
	tolerated int64               // system files that are listed and absent
	infoFile  string              // bag-info.txt or what it was called, "" for none
}

// manifest is a manifest of the bag under judgement.
type manifest struct {
	*tagFile
	file string // its name
	bit  uint64
}

func (m *manifest) line(e manifestRecord) string { return fmt.Sprintf("%s:%d", m.file, e.line) }

// absence is a name that manifests list and that has no file.
type absence struct {
	source  string // the first line that lists it
	claims  uint64 // the manifests that do
	payload bool
}

// Finish gives the verdict on all that was added. A second call gives the same Report.
func (v *Validator) Finish() *Report {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.report != nil {
		return v.report
	}
	r := &Report{Info: []Tag{}, Algorithms: []string{}, TagAlgorithms: []string{}, Fetch: []FetchEntry{}}
	r.Faults = append([]Fault{}, v.faults...)
	j := &judge{
		v: v, r: r, claims: make([]uint64, len(v.files)),
		fetched: map[string]bool{}, absent: map[string]*absence{}, standIns: map[string]int64{},
	}
	j.findBase()
	j.declaration()
	j.indexFiles()
	j.findManifests()
	j.fetch()
	for _, m := range slices.Concat(j.payload, j.tags) {
		j.manifest(m)
	}
	j.listing()
	j.reportAbsent()
	j.unlistedFetch()
	j.info()
	j.profile()
	r.settle(v.opts.CompletenessOnly)
	v.report = r
	return r
}

func (j *judge) add(f Fault) { j.r.Faults = append(j.r.Faults, f) }

func (j *judge) fail(rule Rule, file, expected, found, source string) {
	j.add(newFault(SeverityError, rule, file, expected, found).at(source))
}

func (j *judge) warn(rule Rule, file, expected, found, source string) {
	j.add(newFault(SeverityWarning, rule, file, expected, found).at(source))
}

func (j *judge) sinceV1(rule Rule, file, expected, found, source string) {
	j.add(newFault(sinceV1(j.version), rule, file, expected, found).at(source))
}

// beforeV1 says that a rule of 1.0 is only a recommendation for this bag.
func (j *judge) beforeV1() bool { return sinceV1(j.version) == SeverityWarning }

func (j *judge) findBase() {
	if j.v.opts.FindBase {
		names := slices.Collect(maps.Keys(j.v.tags))
		if len(names) == 0 {
			for _, f := range j.v.files {
				names = append(names, j.v.names.list[f.name])
			}
		}
		j.base = chooseBase(names)
	}
	j.r.Base = strings.TrimSuffix(j.base, "/")
}

// chooseBase finds the folder that the bag of an archive lies in: the archive itself or one of its top folders.
// A bag may hold another one as payload, so the outermost wins, and a folder named data comes last.
func chooseBase(names []string) string {
	best, bestRank := "", 8
	for _, name := range names {
		dir, rank := baseOf(path.Clean(name))
		if rank < bestRank || rank == bestRank && dir < best {
			best, bestRank = dir, rank
		}
	}
	return best
}

// baseOf says which folder would be the base if the file were a part of a bag, and how little that is to be believed.
func baseOf(name string) (dir string, rank int) {
	dir, file := path.Split(name)
	kind, _ := manifestName(file)
	switch {
	case strings.Count(dir, "/") > 1:
		rank = 6
	case file == DeclarationFile:
		rank = 0
	case kind == payloadManifest:
		rank = 1
	default:
		rank = 6
	}
	if rank == 6 {
		top, _, deep := strings.Cut(name, "/")
		if !deep || top == PayloadDir {
			return "", 7
		}
		return top + "/", 6
	}
	switch dir {
	case "":
	case payloadPrefix:
		rank += 4
	default:
		rank += 2
	}
	return dir, rank
}

func (j *judge) tagFile(name string) *tagFile { return j.v.tags[j.base+name] }

// rel is the name of a file in the bag.
func (j *judge) rel(file int32) string {
	return strings.TrimPrefix(j.v.names.list[j.v.files[file].name], j.base)
}

func (j *judge) inBag(file int32) bool {
	return strings.HasPrefix(j.v.names.list[j.v.files[file].name], j.base)
}

// lookup finds the file of exactly that name in the bag, or -1.
func (j *judge) lookup(name string) int32 {
	if j.base != "" {
		name = j.base + name
	}
	id, ok := j.v.names.ids[name]
	if !ok {
		return -1
	}
	return j.v.file(id)
}

func (j *judge) declaration() {
	decl := j.tagFile(DeclarationFile)
	if decl == nil {
		j.fail(RuleDeclaration, DeclarationFile, "a file "+DeclarationFile, "none", "")
		j.enc, _ = lookupEncoding("UTF-8")
		return
	}
	for _, f := range decl.faults {
		j.add(f)
	}
	j.version = decl.decl.Version
	j.r.Version, j.r.Encoding = j.version, decl.decl.Encoding
	enc, ok := lookupEncoding(decl.decl.Encoding)
	switch {
	case !ok: // reported by the declaration; UTF-8 is the best guess for the rest
		enc, _ = lookupEncoding("UTF-8")
	case !enc.utf8 && !j.beforeV1():
		j.warn(RuleEncoding, DeclarationFile, "UTF-8", enc.name, "")
	}
	j.enc = enc
}

// findManifests sorts the manifests of the bag by kind and name.
func (j *judge) findManifests() {
	for _, name := range slices.Sorted(maps.Keys(j.v.tags)) {
		tag := j.v.tags[name]
		file, ok := strings.CutPrefix(name, j.base)
		if !ok || strings.Contains(file, "/") || (tag.kind != kindPayloadManifest && tag.kind != kindTagManifest) {
			continue
		}
		n := len(j.payload) + len(j.tags)
		if n == 64 {
			j.fail(RuleLimit, file, "at most 64 manifests", "more", "")
			continue
		}
		m := &manifest{tagFile: tag, file: file, bit: 1 << n}
		algs := &j.r.Algorithms
		if tag.kind == kindPayloadManifest {
			j.payload = append(j.payload, m)
		} else {
			j.tags = append(j.tags, m)
			algs = &j.r.TagAlgorithms
		}
		normal := normalizeAlgorithm(tag.alg)
		switch {
		case !tag.known:
			j.fail(RuleAlgorithm, file, "one of "+strings.Join(Algorithms(), ", "), tag.alg, "")
		case slices.Contains(*algs, normal):
			j.warn(RuleAlgorithm, file, "one manifest for "+normal, "more", "")
		case normal != tag.alg:
			j.warn(RuleAlgorithm, file, normal, tag.alg, "")
		}
		if !slices.Contains(*algs, normal) {
			*algs = append(*algs, normal)
		}
	}
	if len(j.payload) == 0 {
		j.fail(RuleNoManifest, "manifest-sha512.txt", "at least one payload manifest", "none", "")
	}
}
