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

// Errors of a Validator. Any other error of Add is one of reading.
var (
	// ErrNeedsContent is returned by AddDigested for a file whose content the verdict depends on:
	// use Add.
	ErrNeedsContent = errors.New("content of the file is needed")
	// ErrSize is returned by Add when the reader did not have as many octets as was said.
	ErrSize = errors.New("size differs from what was said")
	// ErrDigest is returned for a digest that is not one of its algorithm.
	ErrDigest = errors.New("digest is wrong")
	// ErrFinished is returned by all that adds to a Validator after Finish.
	ErrFinished = errors.New("already finished")
)

// Options of a Validator. The zero value judges completely.
type Options struct {
	// FindBase says that names are of an archive: the bag may lie in one top folder, which is where
	// bagit.txt lies, and names are checked as strictly as those in manifests.
	FindBase bool
	// Profile is what the bag must meet beside RFC 8493; nil for nothing. Its faults stand in the
	// same Report.
	Profile *Profile
	// Form is how the bag came, which a Profile may have a say in. ValidateFS, ValidateTar and
	// ValidateZip know it, and look here only for what the caller has unwrapped before them; a
	// Validator of single files must be told.
	Form Form
	// CompletenessOnly leaves payload unread and its digests unverified; the Report then never says
	// Valid.
	CompletenessOnly bool
	// Algorithms are taken of files whose manifests are not known yet, beside md5 and the SHA-1 and
	// SHA-2 ones. Names that are not known are ignored.
	Algorithms []string
	// Workers is how many files ValidateFS, ValidateTar and ValidateZip hash at a time; 0 is one
	// per core.
	Workers int
	// MaxRecords bounds what is kept of names, digests and addresses, in octets: 4 MiB of them in
	// memory, the others in a temporary file, and of a large bag in a second one while it is
	// judged. 0 is 4 GiB, which is enough for some ten million files. Beyond it a fault of
	// RuleLimit is reported.
	MaxRecords int64
	// TempDir is the folder of the temporary files; "" is the one that os.TempDir names.
	TempDir string
	// MaxFaults is how many faults a Report lists; 0 is 1,000. All are counted.
	MaxFaults int
}

// Bounds on what is kept in memory of one bag, in all. Beyond them a fault of RuleLimit is
// reported.
const (
	maxTagFiles = 256       // manifests and other tag files
	maxTags     = 4 << 20   // octets of tags
	maxFetch    = 16 << 20  // octets of entries of fetch.txt
	maxLines    = 10 * 1000 // lines that are kept because they are not of their form; all are counted
)

// Validator judges one bag from its files, given one by one, in any order, each once. All methods
// may be called concurrently, but Finish only after the others have returned.
//
// It holds a bounded part of the bag in memory, whatever the number of its files and the lines of
// its tag files. Whoever does not call Finish must call Close.
type Validator struct {
	opts    Options
	extra   algSet // taken while it is not known what is needed
	bufs    sync.Pool
	records *spill.Space
	files   *spill.Log   // of fileRecord; v.mu is held
	dealt   *spill.Space // the same records, by shares; nil for a bag of one share

	tagBytes, fetchBytes, lines atomic.Int64 // of all tag files

	mu       sync.Mutex
	tags     map[string]*tagFile
	dataDirs map[string]bool
	faults   *faultList
	limited  map[string]bool // what RuleLimit was reported for
	weight   int64           // of all records
	share    int64           // the weight that a share should have
	report   *Report
	err      error // of Finish

	base         string // with a slash at its end, or ""
	baseKnown    bool
	payloadAlgs  algSet // known to be needed so far
	tagAlgs      algSet
	payloadExact bool // and no others will be
	tagExact     bool
}

// NewValidator gives a Validator of a bag that has no files yet.
func NewValidator(opts Options) *Validator {
	if opts.MaxRecords <= 0 {
		opts.MaxRecords = 4 << 30
	}
	v := &Validator{
		opts: opts, extra: usualAlgorithms, records: spill.NewSpace(opts.TempDir, opts.MaxRecords), tags: map[string]*tagFile{},
		dataDirs: map[string]bool{}, faults: newFaultList(opts.MaxFaults), limited: map[string]bool{}, share: shareWeight,
	}
	v.files = v.records.NewLog()
	for _, name := range opts.Algorithms {
		if a, ok := lookupAlgorithm(name); ok {
			v.extra |= 1 << a
		}
	}
	v.baseKnown = !opts.FindBase
	return v
}

// ExpectManifests tells the names of all manifests and tag manifests of the bag, as they will be
// added. From then on only the digests that these need are taken. Names of other files are ignored,
// so all names can be given. If a manifest turns up that was not told, files may come out as
// RuleNotVerified.
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

// need notes the algorithm of a manifest.
func (v *Validator) need(name string) {
	kind, alg := manifestName(name)
	if a, ok := lookupAlgorithm(alg); ok && kind == payloadManifest {
		v.payloadAlgs |= 1 << a
	} else if ok && kind == tagManifest {
		v.tagAlgs |= 1 << a
	}
}

// Wanted gives the algorithms whose digests are needed of the file, as far as is known now;
// AddDigested must have at least those. Fewer are wanted after ExpectManifests. It is empty for a
// file of which only the size is needed.
func (v *Validator) Wanted(name string) []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.wanted(path.Clean(name)).names()
}

func (v *Validator) wanted(name string) algSet {
	payload, tag := v.payloadAlgs, v.tagAlgs
	if !v.payloadExact {
		payload |= v.extra
	}
	if !v.tagExact {
		tag |= v.extra
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

// NeedsContent says whether the file must be given to Add, because it is read and not only hashed:
// bagit.txt, bag-info.txt, fetch.txt and the manifests.
func (v *Validator) NeedsContent(name string) bool { return v.kindOf(path.Clean(name)) != 0 }

// reads says whether Add would read the file; more may be known by then, and it is not read after
// all.
func (v *Validator) reads(name string) bool {
	if v.kindOf(name) != 0 {
		return true
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.wanted(name) != 0
}

// Add takes a file in: reads r to its end, with the digests that are wanted taken in the same pass.
// size is -1 if not known. What is wrong with the file becomes a fault of the Report; the error is
// of reading r, ErrSize, ErrFinished or the cause of ctx, and then the file was not taken in and
// may be added again. The reader is left unread when only the size matters or the name is refused.
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

// wantedNow is what is wanted of a file by what is known at this moment.
func (v *Validator) wantedNow(clean string) algSet {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.wanted(clean)
}

// addDigesting is Add for a file that is only hashed, with the digests of set.
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

// AddDigested takes a file in whose digests are known already, in hexadecimal, by the names of
// their algorithms. Algorithms that are not known are ignored. It returns ErrNeedsContent for a
// file that NeedsContent, ErrDigest for a digest of the wrong length or not hexadecimal, and
// ErrFinished; the file was not taken in then.
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

// decodeDigests reads digests in hexadecimal by the names of their algorithms.
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

// AddDir takes note of a folder. Only a bag without payload needs it: its data folder can be known
// in no other way.
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

// Refuse reports a name that is neither a file nor a folder: a symbolic link, a device. kind says
// what it is.
func (v *Validator) Refuse(name, kind string) {
	v.addFault(newFault(SeverityError, RuleFileType, name, "a file", kind))
}

func (v *Validator) addFault(f Fault) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.faults.add(f)
}

// limit reports once that the bag has more of something than is kept.
func (v *Validator) limit(what string, most int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.limited[what] {
		v.limited[what] = true
		v.faults.add(newFault(SeverityError, RuleLimit, "", fmt.Sprintf("at most %d %s", most, what), "more"))
	}
}

// kept says whether a record was put aside. full is reported as a fault of the bag; the error is of
// the system.
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

// accept checks the name of a file and cleans it.
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

// commit enters a file, with what was read of it if it is a tag file.
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

// enterFile keeps the record of a file. known is false for a tag file that there is no room for, ok
// is false when no record is kept.
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
	if tag == nil || v.tags[name] != nil { // a second one of the name is reported in the end
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

// learn narrows what is needed down to what the tag files that have come say; v.mu is held.
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
	// Since 1.0 a tag manifest must list every payload manifest, so those that may still come are
	// known.
	for record := range tag.entries.Records() {
		v.need(strings.TrimLeft(readEntry(record).name, "*./"))
	}
	v.payloadExact = v.payloadAlgs != 0
}
