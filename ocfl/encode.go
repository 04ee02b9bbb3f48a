package ocfl

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"
	"unicode/utf8"
)

// encoding has the buffers of Encode.
var encoding = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 64<<10) }}

// Encode writes the inventory as JSON. The same inventory always gives the same bytes: keys,
// digests and paths are sorted. Each digest is on a line of its own, so that diff shows what
// changed between versions.
func (inv *Inventory) Encode(w io.Writer) error {
	e := newEncoder(w)
	defer e.close()
	e.head(inv.object(), inv.contentDeclared, inv.ContentDirectory)
	if len(inv.Fixity) > 0 {
		e.raw(",\n \"fixity\": {")
		for i, algorithm := range slices.Sorted(maps.Keys(inv.Fixity)) {
			e.separate(i, "\n  ").text(algorithm).raw(": ").entries(inv.Fixity[algorithm])
		}
		e.raw("\n }")
	}
	e.raw(",\n \"manifest\": ").entries(inv.Manifest)
	e.raw(",\n \"versions\": {")
	for i := range inv.Versions {
		v := &inv.Versions[i]
		_ = e.separate(i, "\n  ").text(inv.VersionName(i+1)).raw(": ").version(v, func(file func(digest, path string)) error {
			files := slices.Clone(v.State)
			slices.SortStableFunc(files, func(a, b StateFile) int { return cmp.Compare(a.Digest, b.Digest) })
			for _, f := range files {
				file(f.Digest, f.Path)
			}
			return nil
		})
	}
	e.raw("\n }\n}\n")
	return e.w.Flush()
}

// encoder writes JSON. The bufio.Writer keeps errors until Flush.
type encoder struct {
	w   *bufio.Writer
	buf []byte
}

func newEncoder(w io.Writer) *encoder {
	e := &encoder{w: encoding.Get().(*bufio.Writer)} //nolint:forcetypeassert // the pool has nothing else
	e.w.Reset(w)
	return e
}

// close gives the buffer back.
func (e *encoder) close() {
	e.w.Reset(nil)
	encoding.Put(e.w)
}

// head writes the beginning of an inventory.
func (e *encoder) head(o Object, declared bool, contentDirectory string) {
	e.raw("{\n \"id\": ").text(o.ID)
	e.raw(",\n \"type\": ").text(fmt.Sprintf(inventoryType, o.Spec))
	e.raw(",\n \"digestAlgorithm\": ").text(o.Algorithm)
	e.raw(",\n \"head\": ").text(versionName(o.Head, o.padding))
	if declared {
		e.raw(",\n \"contentDirectory\": ").text(contentDirectory)
	}
}

// raw writes text that is already JSON.
func (e *encoder) raw(text string) *encoder {
	_, _ = e.w.WriteString(text)
	return e
}

// separate writes a comma unless i is 0, then text.
func (e *encoder) separate(i int, text string) *encoder {
	if i > 0 {
		e.raw(",")
	}
	return e.raw(text)
}

// text writes a JSON string.
func (e *encoder) text(s string) *encoder {
	e.buf = appendQuoted(e.buf[:0], s)
	_, _ = e.w.Write(e.buf)
	return e
}

// entries writes a block of digests.
func (e *encoder) entries(entries []Entry) {
	e.raw("{")
	for i, entry := range entries {
		e.entry(i, entry.Digest, entry.Paths)
	}
	e.raw("\n }")
}

// entry writes entry i of a block of digests.
func (e *encoder) entry(i int, digest string, paths []string) {
	e.separate(i, "\n  ").text(digest).raw(": [")
	for j, path := range paths {
		e.separate(j, "").text(path)
	}
	e.raw("]")
}

// version writes a version block. state calls file for each file, in the order of digests and then
// of paths.
func (e *encoder) version(v *Version, state func(file func(digest, path string)) error) error {
	created := v.createdText
	if created == "" {
		created = v.Created.Format(time.RFC3339Nano)
	}
	e.raw("{\n   \"created\": ").text(created)
	if v.hasMessage || v.Message != "" {
		e.raw(",\n   \"message\": ").text(v.Message)
	}
	if v.User != nil {
		e.raw(",\n   \"user\": {\"name\": ").text(v.User.Name)
		if v.User.Address != "" {
			e.raw(", \"address\": ").text(v.User.Address)
		}
		e.raw("}")
	}
	e.raw(",\n   \"state\": {")
	last := ""
	err := state(func(digest, path string) {
		switch {
		case digest == last:
			e.raw(", ").text(path)
			return
		case last != "":
			e.raw("],")
		}
		e.raw("\n    ").text(digest).raw(": [").text(path)
		last = digest
	})
	if last != "" {
		e.raw("]")
	}
	e.raw("\n   }\n  }")
	return err
}

// appendQuoted appends s, which is valid UTF-8, as a JSON string. It escapes only what it must.
func appendQuoted(b []byte, s string) []byte {
	const digits = "0123456789abcdef"
	b = append(b, '"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, '\\', 'n')
		case c == '\t':
			b = append(b, '\\', 't')
		case c < 0x20 || c == 0x7f:
			b = append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// utf8Text reports whether s can be written as a JSON string without a change.
func utf8Text(s string) bool { return utf8.ValidString(s) }
