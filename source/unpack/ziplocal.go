package unpack

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
)

// The header that stands before each file of a zip (APPNOTE 4.3.7).
const (
	localHeader        = 30
	localNameLengthAt  = 26
	localExtraLengthAt = 28
)

// localTap looks at the headers as archive/zip reads them, since it takes no more of them than
// their length: another reader goes by them and not by the directory, and would see other files in
// the same zip.
type localTap struct {
	r    io.ReaderAt
	at   int64 // where the last header begins
	body int64 // where what it is the header of begins
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
	m, _ := t.r.ReadAt(name, off+localHeader) // a name that is cut off is not the directory's
	t.name = string(name[:m])
	return n, err
}

// span is where an entry lies in a zip, its header included.
type span struct{ from, to int64 }

// spans are where all entries of a zip lie.
type spans []span

// add takes the entry whose header was read last. Entries that follow one another, as nearly all
// do, are one span, unless there is room for another between them.
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

// judge says whether each byte belongs to one entry at most, and whether the zip begins with one of
// them.
func (s spans) judge() error {
	slices.SortFunc(s, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	end := int64(0)
	for i, entry := range s {
		if i == 0 && entry.from > 0 {
			return &Error{Fault: FaultDamaged, Detail: fmt.Sprintf(
				"its directory does not name what is in its first %d bytes; were two of them joined? Pack everything into one", entry.from)}
		}
		if entry.from < end {
			return errOverlap
		}
		end = entry.to
	}
	return nil
}

var errOverlap = &Error{Fault: FaultDamaged, Detail: "its entries overlap, as in a decompression bomb; pack it again"}
