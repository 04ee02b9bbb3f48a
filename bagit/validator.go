package bagit

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"sync"
	"sync/atomic"
)

// Errors of a Validator. Any other error of Add is one of reading.
var (
	// ErrNeedsContent is returned by AddDigested for a file whose content the verdict depends on: use Add.
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
	// FindBase says that names are of an archive: the bag may lie in one top folder, which is where bagit.txt lies,
	// and names are checked as strictly as those in manifests.
	FindBase bool
	// Profile is what the bag must meet beside RFC 8493; nil for nothing. Its faults stand in the same Report.
	Profile *Profile
	// Form is how the bag came, which a Profile may have a say in. ValidateFS, ValidateTar and ValidateZip know it, and
	// look here only for what the caller has unwrapped before them; a Validator of single files must be told.
	Form Form
	// CompletenessOnly leaves payload unread and its digests unverified; the Report then never says Valid.
	CompletenessOnly bool
	// Algorithms are taken of files whose manifests are not known yet, beside md5 and the SHA-1 and SHA-2 ones.
	// Names that are not known are ignored.
	Algorithms []string
	// Workers is how many files ValidateFS, ValidateTar and ValidateZip hash at a time; 0 is one per core.
	Workers int
	// MaxMemory bounds what is kept of names, digests and tags, in octets; 0 is 1 GiB, which is enough for about
	// four million files. Beyond it a fault of RuleLimit is reported.
	MaxMemory int64
}

// Validator judges one bag from its files, given one by one, in any order, each once. All methods may be called
// concurrently, but Finish only after the others have returned.
type Validator struct {
	opts  Options
	extra algSet // taken while it is not known what is needed
	bufs  sync.Pool
	held  atomic.Int64

	mu       sync.Mutex
	names    nameTable
	files    []fileRecord
	digests  []byte  // of all files; fileRecord says where
	fileOf   []int32 // by name id, index into files plus one
	tags     map[string]*tagFile
	dataDirs map[string]bool
	faults   []Fault
	over     bool // MaxMemory was reached
	report   *Report

	base         string // with a slash at its end, or ""
	baseKnown    bool
	payloadAlgs  algSet // known to be needed so far
	tagAlgs      algSet
	payloadExact bool // and no others will be
	tagExact     bool
}

// fileRecord is what is kept of a file.
type fileRecord struct {
	size   int64
	offset uint64 // into digests
	name   uint32
	algs   algSet // whose digests were taken
}

// NewValidator gives a Validator of a bag that has no files yet.
func NewValidator(opts Options) *Validator {
	if opts.MaxMemory <= 0 {
		opts.MaxMemory = 1 << 30
	}
	v := &Validator{opts: opts, extra: usualAlgorithms, tags: map[string]*tagFile{}, dataDirs: map[string]bool{}}
	for _, name := range opts.Algorithms {
		if a, ok := lookupAlgorithm(name); ok {
			v.extra |= 1 << a
		}
	}
	v.baseKnown = !opts.FindBase
	return v
}

// ExpectManifests tells the names of all manifests and tag manifests of the bag, as they will be added. From then on
// only the digests that these need are taken. Names of other files are ignored, so all names can be given. If a
// manifest turns up that was not told, files may come out as RuleNotVerified.
func (v *Validator) ExpectManifests(names ...string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.baseKnown {
		v.base, v.baseKnown = chooseBase(names), true
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

// Wanted gives the algorithms whose digests are needed of the file, as far as is known now; AddDigested must have
// at least those. Fewer are wanted after ExpectManifests. It is empty for a file of which only the size is needed.
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

// NeedsContent says whether the file must be given to Add, because it is read and not only hashed: bagit.txt,
// bag-info.txt, fetch.txt and the manifests.
func (v *Validator) NeedsContent(name string) bool { return v.kindOf(path.Clean(name)) != 0 }

// reads says whether Add would read the file; more may be known by then, and it is not read after all.
func (v *Validator) reads(name string) bool {
	if v.kindOf(name) != 0 {
		return true
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.wanted(name) != 0
}

// Add takes a file in: reads r to its end, with the digests that are wanted taken in the same pass. size is -1 if not
// known. What is wrong with the file becomes a fault of the Report; the error is of reading r, ErrSize, ErrFinished
// or the cause of ctx, and then the file was not taken in and may be added again. The reader is left unread
// when only the size matters or the name is refused.
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

// AddDigested takes a file in whose digests are known already, in hexadecimal, by the names of their algorithms.
// Algorithms that are not known are ignored. It returns ErrNeedsContent for a file that NeedsContent, ErrDigest for
// a digest of the wrong length or not hexadecimal, and ErrFinished; the file was not taken in then.
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

// AddDir takes note of a folder. Only a bag without payload needs it: its data folder can be known in no other way.
func (v *Validator) AddDir(name string) {
	clean := path.Clean(name)
	if path.Base(clean) != PayloadDir || strings.Count(clean, "/") > 1 {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.dataDirs[clean] = true
}

// Refuse reports a name that is neither a file nor a folder: a symbolic link, a device. kind says what it is.
func (v *Validator) Refuse(name, kind string) {
	v.addFault(newFault(SeverityError, RuleFileType, name, "a file", kind))
}

func (v *Validator) addFault(f Fault) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.hold(int64(len(f.File) + len(f.Expected) + len(f.Found) + 200)) {
		v.faults = append(v.faults, f)
	}
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

// hold counts memory; v.mu is held. False when there is no more: then the caller keeps nothing.
func (v *Validator) hold(n int64) bool {
	if v.held.Add(n) <= v.opts.MaxMemory {
		return true
	}
	v.held.Add(-n)
	if !v.over {
		v.over = true
		v.faults = append(v.faults, newFault(SeverityError, RuleLimit, "",
			fmt.Sprintf("at most %d octets of names, digests and tags", v.opts.MaxMemory), "more"))
	}
	return false
}

// commit enters a file, with what was read of it if it is a tag file.
func (v *Validator) commit(name string, size int64, set algSet, digests []byte, tag *tagFile) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.report != nil {
		return fmt.Errorf("add %q: %w", name, ErrFinished)
	}
	if v.over || !v.hold(int64(len(digests))+32) {
		return nil
	}
	id, ok := v.intern(name)
	if !ok {
		return nil
	}
	if v.file(id) >= 0 {
		v.faults = append(v.faults, newFault(SeverityError, RuleDuplicateEntry, name, "one file of this name", "more"))
		return nil
	}
	v.fileOf[id] = int32(len(v.files)) + 1
	v.files = append(v.files, fileRecord{size: size, offset: uint64(len(v.digests)), name: id, algs: set})
	v.digests = append(v.digests, digests...)
	if tag != nil {
		v.tags[name] = tag
		v.learn(name, tag)
	}
	return nil
}

// intern gives the id of a name. False when memory is used up.
func (v *Validator) intern(name string) (uint32, bool) {
	id, isNew := v.names.intern(name)
	if !isNew {
		return id, true
	}
	v.fileOf = append(v.fileOf, 0)
	return id, v.hold(int64(len(name)) + 48)
}

// file is the index of the file of that name, or -1.
func (v *Validator) file(name uint32) int32 { return v.fileOf[name] - 1 }

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
	// Since 1.0 a tag manifest must list every payload manifest, so those that may still come are known.
	for _, e := range tag.entries {
		v.need(strings.TrimLeft(v.names.list[e.name], "*./"))
	}
	v.payloadExact = v.payloadAlgs != 0
}

// nameTable keeps every name once, whether it comes from a file or from a manifest.
type nameTable struct {
	ids  map[string]uint32
	list []string
}

func (t *nameTable) intern(name string) (id uint32, isNew bool) {
	if id, ok := t.ids[name]; ok {
		return id, false
	}
	if t.ids == nil {
		t.ids = map[string]uint32{}
	}
	name = strings.Clone(name)
	id = uint32(len(t.list))
	t.ids[name] = id
	t.list = append(t.list, name)
	return id, true
}
