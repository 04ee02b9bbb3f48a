package unpack

import (
	"archive/zip"
	"bufio"
	"compress/bzip2"
	"encoding/binary"
	"errors"
	"io"
	"math"
)

// portionSize is the greatest size in bytes of a directory that is read as a whole, and about the
// size of the portions of a larger one. archive/zip keeps about 400 bytes for each entry, so a
// million entries at a time would need too much memory.
const portionSize = 256 << 10

// Offsets in a line of the directory (APPNOTE 4.3.12).
const (
	directoryLine      = 46
	directoryNameAt    = 28
	directoryExtraAt   = 30
	directoryCommentAt = 32
)

// directory yields the entries of a zip in portions, as often as needed.
type directory struct {
	local *localTap
	end   zipEnd
	whole *zip.Reader // a small directory; nil for one that is read in portions
}

// portions calls fn for each portion. Any error that is not fn's is one of the zip.
func (d *directory) portions(fn func([]*zip.File) error) error {
	if d.whole != nil {
		return fn(d.whole.File)
	}
	lines := bufio.NewReaderSize(io.NewSectionReader(d.local, int64(d.end.start), int64(d.end.size)), 64<<10)
	total := uint64(0)
	for {
		portion, n, err := nextPortion(lines)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		total += uint64(n)
		files, err := d.open(portion, n)
		if err != nil {
			return err
		}
		if err := fn(files); err != nil {
			return err
		}
	}
	if uint16(total) != uint16(d.end.entries) { // archive/zip also compares only 16 bits, the size of the field
		return zip.ErrFormat
	}
	return nil
}

// nextPortion reads some lines of the directory; none at its end.
func nextPortion(r *bufio.Reader) (portion []byte, lines int, err error) {
	for len(portion) < portionSize {
		head, err := r.Peek(directoryLine)
		if len(head) == 0 && isEnd(err) {
			break
		}
		if err != nil && !isEnd(err) {
			return nil, 0, err
		}
		if len(head) < directoryLine || string(head[:4]) != directoryHeader {
			return nil, 0, zip.ErrFormat
		}
		length := directoryLine
		for _, at := range []int{directoryNameAt, directoryExtraAt, directoryCommentAt} {
			length += int(binary.LittleEndian.Uint16(head[at:]))
		}
		from := len(portion)
		portion = append(portion, make([]byte, length)...)
		if _, err := io.ReadFull(r, portion[from:]); err != nil {
			if isEnd(err) || errors.Is(err, io.ErrUnexpectedEOF) {
				err = zip.ErrFormat
			}
			return nil, 0, err
		}
		lines++
	}
	return portion, lines, nil
}

// open reads a portion with archive/zip, as if it were the zip's whole directory.
func (d *directory) open(portion []byte, lines int) ([]*zip.File, error) {
	tail := append([]byte(nil), portion...)
	record := make([]byte, end64Record)
	copy(record, end64Signature)
	binary.LittleEndian.PutUint64(record[4:], end64Record-12)
	binary.LittleEndian.PutUint64(record[end64EntriesAt-8:], uint64(lines))
	binary.LittleEndian.PutUint64(record[end64EntriesAt:], uint64(lines))
	binary.LittleEndian.PutUint64(record[end64SizeAt:], uint64(len(portion)))
	binary.LittleEndian.PutUint64(record[end64StartAt:], d.end.start)
	locator := make([]byte, end64Locator)
	copy(locator, end64LocatorSig)
	binary.LittleEndian.PutUint64(locator[end64OffsetAt:], d.end.start+uint64(len(portion)))
	binary.LittleEndian.PutUint32(locator[end64OffsetAt+8:], 1) // disks
	last := make([]byte, endRecord)
	copy(last, endSignature)
	binary.LittleEndian.PutUint16(last[endEntriesAt-2:], math.MaxUint16)
	binary.LittleEndian.PutUint16(last[endEntriesAt:], math.MaxUint16)
	binary.LittleEndian.PutUint32(last[endSizeAt:], math.MaxUint32)
	binary.LittleEndian.PutUint32(last[endOffsetAt:], math.MaxUint32)
	tail = append(append(append(tail, record...), locator...), last...)

	zr, err := zip.NewReader(&spliced{d.local, int64(d.end.start), tail}, int64(d.end.start)+int64(len(tail)))
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // names are checked by judgeZip
		return nil, err
	}
	if len(zr.File) != lines {
		return nil, zip.ErrFormat
	}
	registerBzip2(zr)
	return zr.File, nil
}

// registerBzip2 adds bzip2, which archive/zip does not know.
func registerBzip2(zr *zip.Reader) {
	zr.RegisterDecompressor(zipMethodBzip2, func(r io.Reader) io.ReadCloser { return io.NopCloser(bzip2.NewReader(r)) })
}

// spliced is the beginning of a reader followed by another end.
type spliced struct {
	r    io.ReaderAt
	at   int64 // where tail begins
	tail []byte
}

// ReadAt implements io.ReaderAt.
func (s *spliced) ReadAt(p []byte, off int64) (n int, err error) {
	if off < s.at {
		n, err = s.r.ReadAt(p[:min(int64(len(p)), s.at-off)], off)
		if err != nil || n == len(p) {
			return n, err
		}
		off = s.at
	}
	if off-s.at < int64(len(s.tail)) {
		n += copy(p[n:], s.tail[off-s.at:])
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
