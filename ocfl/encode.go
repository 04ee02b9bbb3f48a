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
	e := &encoder{w: encoding.Get().(*bufio.Writer)} //nolint:forcetypeassert // the pool has nothing else
	e.w.Reset(w)
	defer func() {
		e.w.Reset(nil)
		encoding.Put(e.w)
	}()
	e.raw("{\n \"id\": ").text(inv.ID)
	e.raw(",\n \"type\": ").text(fmt.Sprintf(inventoryType, inv.Spec))
	e.raw(",\n \"digestAlgorithm\": ").text(inv.Algorithm)
	e.raw(",\n \"head\": ").text(inv.VersionName(inv.Head()))
	if inv.contentDeclared {
		e.raw(",\n \"contentDirectory\": ").text(inv.ContentDirectory)
	}
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
		e.separate(i, "\n  ").text(inv.VersionName(i + 1)).raw(": ").version(&inv.Versions[i])
	}
	e.raw("\n }\n}\n")
	return e.w.Flush()
}

// encoder writes JSON. The bufio.Writer keeps errors until Flush.
type encoder struct {
	w   *bufio.Writer
	buf []byte
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
		e.separate(i, "\n  ").text(entry.Digest).raw(": [")
		for j, path := range entry.Paths {
			e.separate(j, "").text(path)
		}
		e.raw("]")
	}
	e.raw("\n }")
}

// version writes a version block.
func (e *encoder) version(v *Version) {
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
	files := slices.Clone(v.State)
	slices.SortStableFunc(files, func(a, b StateFile) int { return cmp.Compare(a.Digest, b.Digest) })
	for i, f := range files {
		switch {
		case i > 0 && f.Digest == files[i-1].Digest:
			e.raw(", ").text(f.Path)
			continue
		case i > 0:
			e.raw("],")
		}
		e.raw("\n    ").text(f.Digest).raw(": [").text(f.Path)
	}
	if len(files) > 0 {
		e.raw("]")
	}
	e.raw("\n   }\n  }")
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
