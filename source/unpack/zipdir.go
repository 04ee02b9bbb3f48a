package unpack

import (
	"bytes"
	"encoding/binary"
	"io"
)

// Sizes and signatures of the records at the end of a zip (APPNOTE 4.3.14 to 4.3.16).
const (
	endRecord       = 22
	endSearch       = endRecord + 65535 // the record may be followed by a comment
	end64Locator    = 20
	end64Record     = 56
	endEntriesAt    = 10
	end64EntriesAt  = 32
	end64OffsetAt   = 8
	directoryHeader = "PK\x01\x02"
	endSignature    = "PK\x05\x06"
	end64Signature  = "PK\x06\x06"
	end64LocatorSig = "PK\x06\x07"
)

// declaredEntries returns the number of entries that a zip claims to have, 0 where that cannot be told: archive/zip, which
// makes room for as many before it reads them, will say what is wrong.
func declaredEntries(r io.ReaderAt, size int64) (uint64, error) {
	tail := make([]byte, min(size, endSearch))
	start := size - int64(len(tail))
	if _, err := r.ReadAt(tail, start); err != nil && !isEnd(err) {
		return 0, err
	}
	at := bytes.LastIndex(tail, []byte(endSignature))
	if at < 0 || len(tail)-at < endRecord {
		return 0, nil
	}
	entries := uint64(binary.LittleEndian.Uint16(tail[at+endEntriesAt:]))
	locator := at - end64Locator
	if locator < 0 || string(tail[locator:locator+4]) != end64LocatorSig {
		return entries, nil
	}
	offset := binary.LittleEndian.Uint64(tail[locator+end64OffsetAt:])
	if offset > uint64(size) {
		return entries, nil
	}
	record := make([]byte, end64Record)
	if n, err := r.ReadAt(record, int64(offset)); err != nil && !isEnd(err) {
		return 0, err
	} else if n < end64Record || string(record[:4]) != end64Signature {
		return entries, nil
	}
	return max(entries, binary.LittleEndian.Uint64(record[end64EntriesAt:])), nil
}

// tapSlack allows for signatures that are seen twice, since the end of the directory is read more than once, or that are
// part of a name. The exact count follows.
const tapSlack = 4096

// directoryTap ends the reading of a directory that has many more entries than it declares.
type directoryTap struct {
	r    io.ReaderAt
	left int64
	done bool // the directory is read
	next int64
	tail [len(directoryHeader) - 1]byte // the bytes before next
}

// ReadAt implements io.ReaderAt.
func (t *directoryTap) ReadAt(p []byte, off int64) (int, error) {
	n, err := t.r.ReadAt(p, off)
	if t.done || n == 0 {
		return n, err
	}
	seen := p[:n]
	if off == t.next { // a signature may lie across two reads
		seen = append(t.tail[:len(t.tail):len(t.tail)], seen...)
	}
	t.left -= int64(bytes.Count(seen, []byte(directoryHeader)))
	t.next = off + int64(n)
	if len(seen) >= len(t.tail) {
		copy(t.tail[:], seen[len(seen)-len(t.tail):])
	}
	if t.left < 0 {
		return 0, errTooManyEntries
	}
	return n, err
}

// errTooManyEntries never leaves this package: openZip says it in full.
var errTooManyEntries = &Error{Fault: FaultLimit, Detail: "it has too many entries"}
