package bagit

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/holdfast/holdfast/spill"
)

// Errors of a Validator. Any other error of Add comes from reading.
var (
	// ErrNeedsContent is returned by AddDigested for a file that must be read: use Add.
	ErrNeedsContent = errors.New("content of the file is needed")
	// ErrSize is returned by Add when the reader did not deliver the announced number of octets.
	ErrSize = errors.New("size differs from the announced size")
	// ErrDigest is returned for a digest that is not hexadecimal or has the wrong length.
	ErrDigest = errors.New("digest is wrong")
	// ErrFinished is returned by Add and AddDigested after Finish or Close.
	ErrFinished = errors.New("already finished")
)

// Options configure a Validator. The zero value checks everything.
type Options struct {
	// FindBase says that the names are those of an archive. The bag may lie in one top folder, the
	// one that holds bagit.txt. Names are checked as strictly as those in manifests.
	FindBase bool
	// Profile holds requirements beyond RFC 8493; nil for none. Its faults are in the same
	// Report.
	Profile *Profile
	// Form is the form of the bag, which a Profile may restrict. ValidateFS and ValidateTar set it
	// if it is empty. A caller that decompressed the bag, or that uses a Validator, must set it.
	Form Form
	// CompletenessOnly leaves payload unread and its digests unverified. The Report is then never
	// Valid.
	CompletenessOnly bool
	// MaxRecords bounds the octets of names, digests and addresses that are kept; 0 is 4 GiB,
	// enough for some ten million files. The first 4 MiB stay in memory, the rest in a temporary
	// file; a large bag needs a second one at the end. A bag with more has a fault of RuleLimit.
	MaxRecords int64
	// TempDir is the folder of the temporary files; "" is the one that os.TempDir names.
	// TempDir is the folder for temporary files; "" is os.TempDir.
	TempDir string
}

// maxRecords is the default of Options.MaxRecords.
const maxRecords = 4 << 30

// Bounds on what one bag keeps in memory in total. Beyond them a fault of RuleLimit is reported.
const (
	maxTagFiles = 256       // manifests and other tag files
	maxTags     = 4 << 20   // octets of tags
	maxFetch    = 16 << 20  // octets of entries of fetch.txt
	maxLines    = 10 * 1000 // malformed lines that are kept; all are counted
)

// Validator checks one bag. Its files are added one by one, in any order, each once. Methods may be
// called concurrently; call Finish after all others have returned.
//
// It holds a bounded part of the bag in memory, however many files it has. Call Finish or Close, or
// temporary files remain.
type Validator struct {
	opts    Options
	bufs    sync.Pool
	records *spill.Space
	files   *spill.Log   // of fileRecord; guarded by mu
	dealt   *spill.Space // the same records, by shares; nil for a bag of one share

	tagBytes, fetchBytes, lines atomic.Int64 // of all tag files

	mu       sync.Mutex
	tags     map[string]*tagFile
	dataDirs map[string]bool
	faults   *faultList
	limited  map[string]bool // the limits that RuleLimit was reported for
	weight   int64           // of all records
	share    int64           // the target weight of a share
	report   *Report
	err      error // of Finish

	base         string // with a slash at its end, or ""
	baseKnown    bool
	payloadAlgs  algSet // known to be needed so far
	tagAlgs      algSet
	payloadExact bool // payloadAlgs is final
	tagExact     bool
}

// NewValidator returns a Validator without files.
func NewValidator(opts Options) *Validator {
	if opts.MaxRecords <= 0 {
		opts.MaxRecords = maxRecords
	}
	v := &Validator{
		opts: opts, records: spill.NewSpace(opts.TempDir, opts.MaxRecords), tags: map[string]*tagFile{},
		dataDirs: map[string]bool{}, faults: newFaultList(), limited: map[string]bool{}, share: shareWeight,
	}
	v.files = v.records.NewLog()
	v.baseKnown = !opts.FindBase
	return v
}

// ExpectManifests announces all manifests and tag manifests of the bag. From then on only the
// digests that these need are taken. Names of other files are ignored, so the caller may pass all
// names. If another manifest is added later, its files may get faults of RuleNotVerified.
func (v *Validator) ExpectManifests(names ...string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.baseKnown {
		v.base, v.baseKnown = chooseBase(slices.Values(names)), true
	}
	v.payloadExact, v.tagExact = true, true
	for _, name := range names {
		if rest, ok := strings.CutPrefix(path.Clean(name), v.base); ok {
			v.need(rest)
		}
	}
}

// need notes the algorithm that a manifest needs.
func (v *Validator) need(name string) {
	kind, alg := manifestName(name)
	if a, ok := lookupAlgorithm(alg); ok && kind == payloadManifest {
		v.payloadAlgs |= 1 << a
	} else if ok && kind == tagManifest {
		v.tagAlgs |= 1 << a
	}
}

// Wanted returns the algorithms whose digests AddDigested needs for the file. Call it after
// ExpectManifests: before, it returns all usual algorithms. It is empty if only the size of the
// file matters.
func (v *Validator) Wanted(name string) []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.wanted(path.Clean(name)).names()
}

func (v *Validator) wanted(name string) algSet {
	payload, tag := v.payloadAlgs, v.tagAlgs
	if !v.payloadExact {
		payload |= usualAlgorithms
	}
	if !v.tagExact {
		tag |= usualAlgorithms
	}
	if v.opts.CompletenessOnly {
		payload = 0
	}
	switch {
	case v.baseKnown && strings.HasPrefix(name, v.base+payloadPrefix):
		return payload
	case v.baseKnown:
		return tag
	case strings.HasPrefix(name, payloadPrefix), strings.Contains(name, "/"+payloadPrefix):
		if v.opts.CompletenessOnly {
			return 0
		}
	}
	return payload | tag
}

// NeedsContent reports whether the file must be given to Add, because its text is read: bagit.txt,
// bag-info.txt, fetch.txt, the manifests and the tag files of the profile.
func (v *Validator) NeedsContent(name string) bool { return v.kindOf(path.Clean(name)) != 0 }

// reads reports whether Add would read the file. A manifest that is added in between can change the
// answer.
func (v *Validator) reads(name string) bool {
	if v.kindOf(name) != 0 {
		return true
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.wanted(name) != 0
}

// Add reads r to its end and adds the file with the digests that are wanted. size is -1 if unknown.
// Add does not read r if only the size matters, or if the name is refused.
//
// Faults of the file go into the Report. The error comes from reading r, or is ErrSize, ErrFinished
// or the cause of ctx. The file was then not added and may be added again.
func (v *Validator) Add(ctx context.Context, name string, size int64, r io.Reader) error {
	clean, ok := v.accept(name)
	if !ok {
		return nil
	}
	if kind := v.kindOf(clean); kind != 0 {
		return v.addTag(ctx, clean, kind, size, r)
	}
	return v.addDigesting(ctx, name, size, r, v.wantedNow(clean))
}

// wantedNow returns the algorithms that are wanted of a file, by the manifests known so far.
func (v *Validator) wantedNow(clean string) algSet {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.wanted(clean)
}

// addDigesting adds a file whose text is not needed. It takes the digests of set.
func (v *Validator) addDigesting(ctx context.Context, name string, size int64, r io.Reader, set algSet) error {
	clean := path.Clean(name)
	if set == 0 && size >= 0 {
		return v.commit(clean, size, 0, nil, nil)
	}
	digests, n, err := takeDigests(ctx, r, set, &v.bufs)
	if err != nil {
		return fmt.Errorf("add %q: %w", name, err)
	}
	if size >= 0 && n != size {
		return fmt.Errorf("add %q: %d octets, not %d: %w", name, n, size, ErrSize)
	}
	return v.commit(clean, n, set, digests, nil)
}

// AddDigested adds a file whose digests are known, in hexadecimal by name of their algorithm.
// Unknown algorithms are ignored.
//
// It returns ErrNeedsContent for a file that NeedsContent, ErrDigest for a malformed digest, and
// ErrFinished. The file was then not added.
func (v *Validator) AddDigested(name string, size int64, digests map[string]string) error {
	clean, ok := v.accept(name)
	if !ok {
		return nil
	}
	if v.kindOf(clean) != 0 {
		return fmt.Errorf("add %q: %w", name, ErrNeedsContent)
	}
	sums, set, err := decodeDigests(digests)
	if err != nil {
		return fmt.Errorf("add %q: %w", name, err)
	}
	var blob []byte
	for _, a := range set.list() {
		blob = append(blob, sums[a]...)
	}
	return v.commit(clean, size, set, blob, nil)
}

// decodeDigests decodes hexadecimal digests by name of their algorithm.
func decodeDigests(digests map[string]string) (sums [algCount][]byte, set algSet, err error) {
	for name, text := range digests {
		a, ok := lookupAlgorithm(name)
		if !ok {
			continue
		}
		sum, err := hex.DecodeString(text)
		if err != nil || len(sum) != a.size() {
			return sums, 0, fmt.Errorf("%s %q: %w", name, text, ErrDigest)
		}
		sums[a] = sum
		set |= 1 << a
	}
	return sums, set, nil
}

// AddDir adds a folder. Only a bag without payload needs this: nothing else shows that it has a
// data folder.
func (v *Validator) AddDir(name string) {
	clean := path.Clean(name)
	if path.Base(clean) != PayloadDir || strings.Count(clean, "/") > 1 {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.dataDirs) < maxTagFiles { // a bag has one; an archive without a bag may have very many
		v.dataDirs[clean] = true
	}
}

// Refuse reports an entry that is neither a file nor a folder. kind describes it, such as "a
// symbolic link".
func (v *Validator) Refuse(name, kind string) {
	v.addFault(newFault(SeverityError, RuleFileType, name, "a file", kind))
}

func (v *Validator) addFault(f Fault) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.faults.add(f)
}

// limit reports, once for each kind of record, that the bag has too many.
func (v *Validator) limit(what string, most int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.limited[what] {
		v.limited[what] = true
		v.faults.add(newFault(SeverityError, RuleLimit, "", fmt.Sprintf("at most %d %s", most, what), "more"))
	}
}

// kept handles the result of storing a record. It reports a full store as a fault of the bag; full
// then is true. The error is one of the system.
func (v *Validator) kept(ok bool) (full bool, err error) {
	if ok {
		return false, nil
	}
	if err := v.records.Err(); !errors.Is(err, spill.ErrFull) {
		return false, err
	}
	v.limit("octets of names, digests and addresses", v.opts.MaxRecords)
	return true, nil
}

// accept checks the name of a file and returns it cleaned.
func (v *Validator) accept(name string) (string, bool) {
	check := unsafeEntry
	if v.opts.FindBase {
		check = unsafeReference
	}
	if why := check(name); why != "" {
		v.addFault(newFault(SeverityError, RuleUnsafeName, name, "a relative path inside the bag", why))
		return "", false
	}
	return path.Clean(name), true
}

// commit stores the record of a file, and its content if it is a tag file.
func (v *Validator) commit(name string, size int64, set algSet, digests []byte, tag *tagFile) error {
	known, ok, err := v.enterFile(name, size, set, digests, tag)
	switch {
	case err != nil:
		return err
	case !ok:
		_, err = v.kept(false)
		return err
	case tag != nil && !known:
		v.limit("tag files", maxTagFiles)
	}
	return nil
}

// enterFile stores the record of a file. known is false for a tag file beyond maxTagFiles. ok is
// false if the record could not be stored.
func (v *Validator) enterFile(name string, size int64, set algSet, digests []byte, tag *tagFile) (known, ok bool, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.report != nil || v.err != nil {
		return false, false, fmt.Errorf("add %q: %w", name, ErrFinished)
	}
	record := fileRecord{size: size, name: name, algs: set, digests: digests}.append(nil)
	if !v.files.Append(record) {
		return false, false, nil
	}
	v.weight += int64(len(record)) + recordWeight
	if tag == nil || v.tags[name] != nil { // Finish reports a second file of the same name
		return true, true, nil
	}
	if len(v.tags) == maxTagFiles {
		return false, true, nil
	}
	v.tags[name] = tag
	v.weight += tag.weight
	v.learn(name, tag)
	return true, true, nil
}

// learn updates which digests are needed from a tag file that was added; v.mu is held.
func (v *Validator) learn(name string, tag *tagFile) {
	dir, file := path.Split(name)
	if !v.baseKnown && dir != payloadPrefix && (tag.kind == kindDeclaration || tag.kind == kindTagManifest) {
		v.base, v.baseKnown = dir, true
	}
	if !v.baseKnown || dir != v.base {
		return
	}
	v.need(file)
	decl := v.tags[v.base+DeclarationFile]
	if tag.kind != kindTagManifest || decl == nil || decl.decl.Version != Version10 {
		return
	}
	// Since 1.0 a tag manifest must list every payload manifest, so it names those still to come.
	for record := range tag.entries.Records() {
		v.need(strings.TrimLeft(readEntry(record).name, "*./"))
	}
	v.payloadExact = v.payloadAlgs != 0
}
