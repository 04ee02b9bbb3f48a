package bagit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

type tagKind uint8

const (
	kindDeclaration tagKind = iota + 1
	kindPayloadManifest
	kindTagManifest
	kindInfo
	kindFetch
)

// tagFile is what was read of a tag file, with its names and texts still in the encoding of the file: that is known
// for sure only at the end.
type tagFile struct {
	kind    tagKind
	form    textForm
	decl    Declaration
	faults  []Fault // of the declaration
	alg     string  // of a manifest, as its name spells it
	known   bool    // alg is one that can be verified
	which   algorithm
	entries []manifestRecord
	digests []byte // of the entries, which.size() each
	md5sum  bool   // lines are escaped as by md5sum
	info    []Tag
	fetch   []FetchEntry
	lines   []*LineError
}

// manifestRecord is what is kept of a line of a manifest.
type manifestRecord struct {
	name   uint32
	line   uint32
	digest int32 // index into digests, -1 for none that can be compared
}

// digest gives the octets that entry e says.
func (t *tagFile) digest(e manifestRecord) []byte {
	n := t.which.size()
	return t.digests[int(e.digest)*n : (int(e.digest)+1)*n]
}

// kindOf says which tag file a name is, as far as the name can tell: in an archive the bag may begin one folder deep.
func (v *Validator) kindOf(name string) tagKind {
	dir, file := path.Split(name)
	if dir != "" && (!v.opts.FindBase || strings.Count(dir, "/") > 1) {
		return 0
	}
	switch file {
	case DeclarationFile:
		return kindDeclaration
	case InfoFile, packageInfoFile:
		return kindInfo
	case FetchFile:
		return kindFetch
	}
	switch kind, _ := manifestName(file); kind {
	case payloadManifest:
		return kindPayloadManifest
	case tagManifest:
		return kindTagManifest
	}
	if v.opts.Profile != nil && v.opts.Profile.other[file] != nil {
		return kindInfo
	}
	return 0
}

// addTag reads a tag file and takes its digests, in one pass.
func (v *Validator) addTag(ctx context.Context, name string, kind tagKind, size int64, r io.Reader) error {
	v.mu.Lock()
	set := v.wanted(name)
	v.mu.Unlock()
	h := &hashingReader{r: r, hashes: newHashes(set), stopped: func() error { return context.Cause(ctx) }}
	tag := &tagFile{kind: kind}
	err := v.readTag(h, name, tag)
	if err == nil {
		err = h.drain()
	}
	if err != nil {
		return fmt.Errorf("add %q: %w", name, hideEOF(err))
	}
	if size >= 0 && h.size != size {
		return fmt.Errorf("add %q: %d octets, not %d: %w", name, h.size, size, ErrSize)
	}
	return v.commit(name, h.size, set, sumAll(h.hashes), tag)
}

// readTag returns errors of reading only; when memory is used up it stops early.
func (v *Validator) readTag(r io.Reader, name string, tag *tagFile) error {
	if tag.kind == kindDeclaration {
		var err error
		tag.decl, tag.faults, err = ParseDeclaration(r)
		return err
	}
	text, form, err := openText(r)
	if err != nil {
		return err
	}
	tag.form = form
	switch tag.kind {
	case kindInfo:
		return v.readInfo(text, tag)
	case kindFetch:
		return v.readFetch(text, tag)
	default:
		return v.readManifest(text, name, tag)
	}
}

func (v *Validator) readManifest(text io.Reader, name string, tag *tagFile) error {
	_, tag.alg = manifestName(path.Base(name))
	tag.which, tag.known = lookupAlgorithm(tag.alg)
	for entry, err := range scanManifest(text) {
		if done, err := v.lineFault(tag, err); done || err != nil {
			return err
		} else if entry.Line == 0 {
			continue
		}
		tag.md5sum = tag.md5sum || entry.MD5Sum
		if tag.known && len(entry.Digest) != tag.which.size() {
			reason := fmt.Sprintf("checksum has %d octets, %s has %d", len(entry.Digest), tag.which, tag.which.size())
			if done, err := v.lineFault(tag, lineError(entry.Line, reason, []byte(entry.Name))); done || err != nil {
				return err
			}
		}
		if !v.enter(tag, entry) {
			return nil
		}
	}
	return nil
}

// enter keeps a line of a manifest. False when memory is used up.
func (v *Validator) enter(tag *tagFile, entry ManifestEntry) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.over || !v.hold(int64(len(entry.Digest))+12) {
		return false
	}
	id, ok := v.intern(entry.Name)
	record := manifestRecord{name: id, line: uint32(entry.Line), digest: -1}
	if tag.known && len(entry.Digest) == tag.which.size() {
		record.digest = int32(len(tag.digests) / tag.which.size())
		tag.digests = append(tag.digests, entry.Digest...)
	}
	tag.entries = append(tag.entries, record)
	return ok
}

func (v *Validator) readInfo(text io.Reader, tag *tagFile) error {
	for t, err := range scanBagInfo(text) {
		if done, err := v.lineFault(tag, err); done || err != nil {
			return err
		} else if t.line == 0 {
			continue
		}
		if !v.reserve(len(t.Label) + len(t.Value) + 48) {
			return nil
		}
		tag.info = append(tag.info, t)
	}
	return nil
}

func (v *Validator) readFetch(text io.Reader, tag *tagFile) error {
	for e, err := range scanFetch(text) {
		if done, err := v.lineFault(tag, err); done || err != nil {
			return err
		} else if e.line == 0 {
			continue
		}
		if !v.reserve(len(e.URL) + len(e.File) + 56) {
			return nil
		}
		tag.fetch = append(tag.fetch, e)
	}
	return nil
}

// lineFault keeps a *LineError and passes any other error on. done when memory is used up.
func (v *Validator) lineFault(tag *tagFile, err error) (done bool, other error) {
	var le *LineError
	if !errors.As(err, &le) {
		return false, err
	}
	if !v.reserve(len(le.Reason) + len(le.Text) + 64) {
		return true, nil
	}
	tag.lines = append(tag.lines, le)
	return false, nil
}

func (v *Validator) reserve(n int) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return !v.over && v.hold(int64(n))
}
