package unpack

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
)

// The header before each file of a zip (APPNOTE 4.3.7).
const (
	localHeader        = 30
	localNameLengthAt  = 26
	localExtraLengthAt = 28
)

// localTap watches the headers that archive/zip reads, of which it uses only the length. Other
// programs follow these headers instead of the directory, and might see other files in the same
// zip.
type localTap struct {
	r    io.ReaderAt
	at   int64 // start of the last header
	body int64 // start of the content after it
	name string
}

// ReadAt implements io.ReaderAt.
func (t *localTap) ReadAt(p []byte, off int64) (int, error) {
	n, err := t.r.ReadAt(p, off)
	if n != localHeader || len(p) != localHeader || !bytes.HasPrefix(p, zipMagic) {
		return n, err
	}
	name := make([]byte, binary.LittleEndian.Uint16(p[localNameLengthAt:]))
	t.at, t.body = off, off+localHeader+int64(len(name))+int64(binary.LittleEndian.Uint16(p[localExtraLengthAt:]))
	m, _ := t.r.ReadAt(name, off+localHeader) // a truncated name does not match the directory
	t.name = string(name[:m])
	return n, err
}

// span is the range of an entry in a zip, including its header.
type span struct{ from, to int64 }

// spans are the ranges of all entries of a zip.
type spans []span

// add adds the entry whose header was read last. Consecutive entries are merged into one span,
// unless another entry fits between them.
func (s *spans) add(t *localTap, packed uint64) {
	next := span{t.at, t.body + int64(packed)}
	if n := len(*s); n > 0 {
		if last := &(*s)[n-1]; next.from >= last.to && next.from-last.to < localHeader && next.to >= next.from {
			last.to = next.to
			return
		}
	}
	*s = append(*s, next)
}

// judge checks that no byte belongs to two entries, and that the zip begins with an entry.
func (s spans) judge() error {
	slices.SortFunc(s, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	end := int64(0)
	for i, entry := range s {
		if i == 0 && entry.from > 0 {
			return &Error{Fault: FaultDamaged, Detail: fmt.Sprintf(
				"its directory does not list its first %d bytes; were two of them joined? Pack everything into one", entry.from)}
		}
		if entry.from < end {
			return errOverlap
		}
		end = entry.to
	}
	return nil
}

var errOverlap = &Error{Fault: FaultDamaged, Detail: "its entries overlap, as in a decompression bomb; pack it again"}
