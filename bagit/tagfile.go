package bagit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/holdfast/holdfast/faults"
	"github.com/holdfast/holdfast/spill"
)

type tagKind uint8

const (
	kindDeclaration tagKind = iota + 1
	kindPayloadManifest
	kindTagManifest
	kindInfo
	kindFetch
)

// tagFile is the parsed content of a tag file. Its names and texts are not decoded yet, because the
// encoding is known only at the end.
type tagFile struct {
	kind    tagKind
	form    textForm
	decl    Declaration
	faults  []Fault // of the declaration
	alg     string  // of a manifest, as its name spells it
	known   bool    // alg is supported
	which   algorithm
	entries *spill.Log // of entryRecord, of a manifest
	md5sum  bool       // lines are escaped like those of md5sum
	info    []Tag
	fetch   *spill.Log // of FetchEntry
	lines   []*lineError
	bad     int64 // all malformed lines, kept in lines or not
	weight  int64 // of all records
}

// kindOf returns the kind of tag file that the name may belong to, 0 for none. In an archive the
// bag may begin one folder deep.
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

// addTag parses a tag file and takes its digests in one pass.
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

// readTag returns only errors of the system. It stops early when a limit is reached.
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
	tag.entries = v.records.NewLog()
	var record []byte
	for entry, err := range scanManifest(text) {
		if err := v.lineFault(tag, err); err != nil {
			return err
		} else if entry.Line == 0 {
			continue
		}
		if len(entry.Name) > maxName {
			if err := v.lineFault(tag, newLineError(entry.Line, tooLongName, []byte(entry.Name))); err != nil {
				return err
			}
			continue
		}
		tag.md5sum = tag.md5sum || entry.MD5Sum
		if tag.known && len(entry.Digest) != tag.which.size() {
			reason := fmt.Sprintf("checksum has %d octets, %s has %d", len(entry.Digest), tag.which, tag.which.size())
			if err := v.lineFault(tag, newLineError(entry.Line, reason, []byte(entry.Name))); err != nil {
				return err
			}
			entry.Digest = nil
		}
		if !tag.known {
			entry.Digest = nil
		}
		record = entryRecord{line: entry.Line, digest: entry.Digest, name: entry.Name}.append(record[:0])
		tag.weight += int64(len(record)) + recordWeight
		if full, err := v.kept(tag.entries.Append(record)); full || err != nil {
			return err
		}
	}
	return nil
}

func (v *Validator) readInfo(text io.Reader, tag *tagFile) error {
	for t, err := range scanBagInfo(text) {
		if err := v.lineFault(tag, err); err != nil {
			return err
		} else if t.line == 0 {
			continue
		}
		if v.tagBytes.Add(int64(len(t.Label)+len(t.Value))+96) > maxTags {
			v.limit("octets of tags", maxTags)
			return nil
		}
		tag.info = append(tag.info, t)
	}
	return nil
}

func (v *Validator) readFetch(text io.Reader, tag *tagFile) error {
	tag.fetch = v.records.NewLog()
	var record []byte
	for e, err := range scanFetch(text) {
		if err := v.lineFault(tag, err); err != nil {
			return err
		} else if e.line == 0 {
			continue
		}
		if v.fetchBytes.Add(int64(len(e.URL)+len(e.File))+96) > maxFetch {
			v.limit("octets of entries in "+FetchFile, maxFetch)
			return nil
		}
		record = e.append(record[:0])
		tag.weight += int64(len(record)) + recordWeight
		if full, err := v.kept(tag.fetch.Append(record)); full || err != nil {
			return err
		}
	}
	return nil
}

// lineFault counts a malformed line and keeps it if it is among the first. It returns any other
// error.
func (v *Validator) lineFault(tag *tagFile, err error) error {
	var le *lineError
	if !errors.As(err, &le) {
		return err
	}
	tag.bad++
	if len(tag.lines) < faults.Most && v.lines.Add(1) <= maxLines {
		tag.lines = append(tag.lines, le)
	}
	return nil
}
