package unpack

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
)

// Sizes and signatures of the records at the end of a zip (APPNOTE 4.3.14 to 4.3.16).
const (
	endRecord       = 22
	endSearch       = endRecord + 65535 // the record may be followed by a comment
	endEntriesAt    = 10
	endSizeAt       = 12
	endOffsetAt     = 16
	endCommentAt    = 20
	end64Locator    = 20
	end64OffsetAt   = 8
	end64Record     = 56
	end64EntriesAt  = 32
	end64SizeAt     = 40
	end64StartAt    = 48
	directoryHeader = "PK\x01\x02"
	endSignature    = "PK\x05\x06"
	end64Signature  = "PK\x06\x06"
	end64LocatorSig = "PK\x06\x07"
)

// zipEnd is the end record of a zip.
type zipEnd struct {
	entries     uint64
	start, size uint64 // of the directory
	at          uint64 // where the end records begin, and so the directory must end
}

// readZipEnd reads the end of a zip. It returns the zero value if there is none; archive/zip then
// reports what is wrong.
func readZipEnd(r io.ReaderAt, size int64) (zipEnd, error) {
	tail := make([]byte, min(size, endSearch))
	start := size - int64(len(tail))
	if _, err := r.ReadAt(tail, start); err != nil && !isEnd(err) {
		return zipEnd{}, err
	}
	at := bytes.LastIndex(tail, []byte(endSignature))
	if at < 0 || len(tail)-at < endRecord {
		return zipEnd{}, nil
	}
	record := tail[at:]
	if comment := int(binary.LittleEndian.Uint16(record[endCommentAt:])); endRecord+comment < len(record) {
		return zipEnd{}, &Error{Fault: FaultDamaged, Detail: "more data follow its end; send the zip alone"}
	}
	end := zipEnd{
		entries: uint64(binary.LittleEndian.Uint16(record[endEntriesAt:])),
		start:   uint64(binary.LittleEndian.Uint32(record[endOffsetAt:])),
		size:    uint64(binary.LittleEndian.Uint32(record[endSizeAt:])),
		at:      uint64(start) + uint64(at),
	}
	locator := at - end64Locator
	if locator < 0 || string(tail[locator:locator+4]) != end64LocatorSig {
		return end, nil
	}
	return end, end.readZip64(r, size, binary.LittleEndian.Uint64(tail[locator+end64OffsetAt:]))
}

// readZip64 reads the zip64 record at offset, which holds values too large for the end record.
func (e *zipEnd) readZip64(r io.ReaderAt, size int64, offset uint64) error {
	if offset > uint64(size) {
		return nil
	}
	record := make([]byte, end64Record)
	if n, err := r.ReadAt(record, int64(offset)); err != nil && !isEnd(err) {
		return err
	} else if n < end64Record || string(record[:4]) != end64Signature {
		return nil
	}
	e.at = offset
	e.entries = max(e.entries, binary.LittleEndian.Uint64(record[end64EntriesAt:]))
	if e.start == math.MaxUint32 {
		e.start = binary.LittleEndian.Uint64(record[end64StartAt:])
	}
	if e.size == math.MaxUint32 {
		e.size = binary.LittleEndian.Uint64(record[end64SizeAt:])
	}
	return nil
}

// judge refuses a directory that is not in its place. archive/zip looks for it in two places. Of
// two concatenated zips it would read the first, and other programs the second.
func (e zipEnd) judge() error {
	if addSaturating(e.start, e.size) == e.at {
		return nil
	}
	return &Error{Fault: FaultDamaged, Detail: "its directory is not where it should be; were two of them joined? Pack everything into one"}
}

// tapSlack allows for signatures that are counted twice, because the end of the directory is read
// repeatedly, and for those that are part of a name. The exact count follows later.
const tapSlack = 4096

// directoryTap stops the reading of a directory with many more entries than declared.
type directoryTap struct {
	r    io.ReaderAt
	left int64
	done bool // the directory was read
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
	if off == t.next { // a signature may span two reads
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

// errTooManyEntries never leaves this package; openZip returns the full message.
var errTooManyEntries = &Error{Fault: FaultLimit, Detail: "it has too many entries"}
