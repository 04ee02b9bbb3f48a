package bagit

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/pathset"
	"github.com/holdfast/holdfast/spill"
)

// judge makes the Report from what a Validator was given. It runs once and without concurrency. It
// works on one share at a time: names that may be confused are in the same share, and only the
// records of one share are in memory.
type judge struct {
	v       *Validator
	r       *Report
	base    string // with a slash at its end, or ""
	version Version
	enc     textEncoding

	payload  []*manifest
	tags     []*manifest
	infoFile string   // bag-info.txt or its older name, "" for none
	required required // files that Options.Profile requires and that were not found yet
	sent     Oxum     // payload that fetch.txt does not list

	*share // the current one

	// Totals of the shares so far.
	toFetch    bool         // a listed file is absent, and in fetch.txt
	standIns   Oxum         // names that a file of another name stands for
	unclaimed  Oxum         // system files in the payload that no manifest lists
	tolerated  int64        // system files that are listed and absent
	parents    *pathset.Set // nil for a bag of one share
	parentsMet int
}

// manifest is a manifest of the bag.
type manifest struct {
	*tagFile
	file     string // its name
	bit      uint64 // in shareFile.claims
	marks    bool   // lines have the marks of md5sum
	dots     string // the first path that contains "./", and its line
	dotsLine int
}

func (m *manifest) line(e entryRecord) string { return fmt.Sprintf("%s:%d", m.file, e.line) }

// absence is a name that manifests list and that no file has.
type absence struct {
	source  string // the first line that lists it
	claims  uint64 // the manifests that list it
	payload bool
}

// Finish returns the verdict on the files that were added. A second call returns the same. The
// error is one of the system: a temporary file could not be read.
func (v *Validator) Finish() (*Report, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.report != nil || v.err != nil {
		return v.report, v.err
	}
	j := &judge{v: v, r: &Report{Info: []Tag{}, Algorithms: []string{}, TagAlgorithms: []string{}, Fetch: []FetchEntry{}}}
	j.run()
	err := v.records.Err()
	if errors.Is(err, spill.ErrFull) {
		err = nil // reported as a fault when it happened
	}
	if v.dealt != nil {
		err = errors.Join(err, v.dealt.Err())
	}
	if err = errors.Join(err, v.release()); err != nil {
		v.err = fmt.Errorf("judge the bag: %w", err)
		return nil, v.err
	}
	j.r.settle(v.faults, v.opts.CompletenessOnly)
	v.report = j.r
	return v.report, nil
}

// Close releases memory and temporary files. It must be called unless Finish was. It does nothing
// after Finish or a second time. Later calls of other methods return ErrFinished.
func (v *Validator) Close() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.report != nil || v.err != nil {
		return nil
	}
	v.err = fmt.Errorf("closed: %w", ErrFinished)
	return v.release()
}

// release frees the records and their temporary files.
func (v *Validator) release() error {
	err := v.records.Close()
	if v.dealt != nil {
		err = errors.Join(err, v.dealt.Close())
	}
	v.files, v.tags = nil, nil
	return err
}

func (j *judge) run() {
	j.findBase()
	j.declaration()
	j.findManifests()
	for _, m := range j.manifests() {
		j.form(m.file, m.tagFile, RuleManifestLine, "checksum filepath")
	}
	if tag := j.tagFile(FetchFile); tag != nil {
		j.form(FetchFile, tag, RuleFetch, "url length filepath")
	}
	if p := j.v.opts.Profile; p != nil {
		j.required = lookFor(p.tagFiles.required, p.payloadFiles.required)
	}
	for s := range j.shares() {
		j.share = s
		j.judgeShare()
	}
	j.share = nil
	slices.SortFunc(j.r.Fetch, func(a, b FetchEntry) int { return cmp.Compare(a.line, b.line) })
	j.payloadFolder()
	j.marks()
	j.info()
	j.profile()
}

func (j *judge) manifests() []*manifest { return slices.Concat(j.payload, j.tags) }

// form reports faults in the encoding of a tag file, and its malformed lines.
func (j *judge) form(file string, tag *tagFile, rule Rule, expected string) {
	for _, f := range j.enc.checkForm(file, tag.form, j.version) {
		j.add(f)
	}
	var last Fault
	for _, l := range tag.lines {
		last = newFault(SeverityError, rule, file, expected, l.Reason+": "+l.Text).at(fmt.Sprintf("%s:%d", file, l.Line))
		j.add(last)
	}
	if more := tag.bad - int64(len(tag.lines)); more > 0 {
		last.Severity, last.Rule = SeverityError, rule
		j.v.faults.count(last, more)
	}
}

// marks reports faults that manifests have in many lines, once for each manifest.
func (j *judge) marks() {
	for _, m := range j.manifests() {
		if m.marks || m.md5sum {
			j.warn(RuleMD5Sum, m.file, "checksum filepath", "marks of md5sum", "")
		}
		if m.dots != "" {
			j.warn(RuleRelativePath, m.file, "paths without ./", m.dots, "")
		}
	}
}

func (j *judge) add(f Fault) { j.v.faults.add(f) }

func (j *judge) fail(rule Rule, file, expected, found, source string) {
	j.add(newFault(SeverityError, rule, file, expected, found).at(source))
}

func (j *judge) warn(rule Rule, file, expected, found, source string) {
	j.add(newFault(SeverityWarning, rule, file, expected, found).at(source))
}

func (j *judge) sinceV1(rule Rule, file, expected, found, source string) {
	j.add(newFault(sinceV1(j.version), rule, file, expected, found).at(source))
}

// beforeV1 reports whether the rules of 1.0 are only recommendations for this bag.
func (j *judge) beforeV1() bool { return sinceV1(j.version) == SeverityWarning }

func (j *judge) findBase() {
	if j.v.opts.FindBase {
		all := maps.Keys(j.v.tags)
		if len(j.v.tags) == 0 {
			all = func(yield func(string) bool) {
				for record := range j.v.files.Records() {
					if !yield(readFile(record).name) {
						return
					}
				}
			}
		}
		j.base = chooseBase(all)
	}
	j.r.Base = strings.TrimSuffix(j.base, "/")
}

// chooseBase returns the base directory of the bag in an archive: the archive itself or one of its
// top folders. A bag may hold another one as payload, so the outermost wins. A folder named data
// ranks last.
func chooseBase(names iter.Seq[string]) string {
	best, bestRank := "", 8
	for name := range names {
		dir, rank := baseOf(path.Clean(name))
		if rank < bestRank || rank == bestRank && dir < best {
			best, bestRank = dir, rank
		}
	}
	return best
}

// baseOf returns the folder that is the base if the file belongs to a bag. A low rank is strong
// evidence.
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
	case !ok: // the declaration's faults say so; UTF-8 is the best guess for the rest
		enc, _ = lookupEncoding("UTF-8")
	case !enc.utf8 && !j.beforeV1():
		j.warn(RuleEncoding, DeclarationFile, "UTF-8", enc.name, "")
	}
	j.enc = enc
}

// findManifests lists the manifests of the bag by kind and name.
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
