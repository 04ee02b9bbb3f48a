// Package unpack walks the files in a container (zip, tar, tar.gz, tar.bz2, tar.xz, tar.zst) as a
// stream. It delivers only regular files with safe and unambiguous names, within limits. It checks
// every byte as far as the format allows. It writes nothing.
//
// Walk reports all bad entries at once: after the first it delivers nothing more and only searches
// for others. Damage and limits end it.
//
// A walk without an error has read the container to its end: checksums were right, the end mark was
// there, and nothing followed it. A walk with an error may have delivered files before; the caller
// must discard them. The whole directory of a zip is checked before its first file is delivered.
//
// Names in UTF-8 are kept byte for byte. Others are refused, unless Limits.NameEncoding is set.
// Path parts that tar ignores are removed ("./" at the start, "/./", "//"). Names that differ only
// in case or normal form are different names.
package unpack

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/holdfast/holdfast/pathset"
)

// UTF8 is the usual Entry.Encoding.
const UTF8 = "utf-8"

// Entry is one regular file in a container.
type Entry struct {
	// Name is a clean relative path with slashes in UTF-8. It is unique in its container and never
	// the folder of another file.
	Name string
	// Raw is the name as in the container, byte for byte.
	Raw string
	// Encoding is the encoding of Raw: UTF8, or that of Limits.NameEncoding, which also restores
	// Raw from Name.
	Encoding string
	// Size is the number of bytes according to the container. The reader returns exactly as many,
	// or an error.
	Size int64
	// Modified is the file's time in UTC, or the zero time if unknown: 0 in a tar, 0 or the first
	// moment of 1980 in a zip, or an invalid date.
	Modified time.Time
	// NoZone says that Modified is a local time of the packing program, read as UTC, because the
	// zip has no zone.
	NoZone bool
}

// Walk calls fn for each regular file in the container, in the container's order. The reader is
// valid until fn returns; Walk then reads and checks the rest. Folders are skipped.
//
// Walk returns nil only if the whole container is sound. Otherwise it returns one of these:
//   - the error of fn, unchanged
//   - the wrapped error and cause of ctx, once ctx has ended
//   - an *Error, whose ContentFault separates a faulty container from one that could not be read
//   - *Faults, if the container has several faults
//
// An error of the reader takes precedence over what fn returns for it. Before it blames the
// depositor, the caller must know that the bytes are those that were deposited (safety rule R6).
//
// Walk uses in, limits and fn only from the calling goroutine. Concurrent walks are independent.
func Walk(ctx context.Context, in Input, limits Limits, fn func(Entry, io.Reader) error) error {
	c := newCursor(ctx, in)
	defer c.close()
	w := &walker{
		cursor: c,
		limits: limits.withDefaults(),
		names:  pathset.NewSet(),
		fn:     fn,
	}
	var err error
	if w.decoder, err = pathset.ParseEncoding(limits.NameEncoding); err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	w.ceiling = w.limits.ceiling(in.Size)
	return w.faults.with(w.walk())
}

// walker is the state of one walk.
type walker struct {
	cursor  *cursor
	limits  Limits
	ceiling int64 // greatest number of bytes that may be delivered
	out     int64 // bytes delivered so far
	entries int64 // all entries so far, including folders and skipped ones
	names   *pathset.Set
	decoder pathset.Encoding
	decoded int // bytes of names that were not UTF-8
	fn      func(Entry, io.Reader) error

	faults   Faults // of entries so far
	searched int64  // bytes discarded since the first fault
}

// walk recognizes the format by content.
func (w *walker) walk() error {
	head := make([]byte, min(tarBlock, w.cursor.size))
	if _, err := w.cursor.ReadAt(head, 0); err != nil && !isEnd(err) {
		return w.readFault("", err)
	}
	if isZip(head) {
		return w.walkZip()
	}
	if c, ok := compressionOf(head); ok {
		return w.walkCompressed(c)
	}
	switch {
	case isTar(head):
		return w.walkTar(w.cursor.stream(), "tar")
	case len(head) == 0:
		return formatFault("it is empty")
	default:
		return formatFault("it is not a zip, tar, tar.gz, tar.bz2, tar.xz or tar.zst; submit it as a file, or pack it again")
	}
}

// countEntry counts one more entry of any type.
func (w *walker) countEntry() error {
	w.entries++
	if w.entries > w.limits.Entries {
		return &Error{
			Fault:  FaultLimit,
			Detail: fmt.Sprintf("it has more than %d entries; split it, or ask an operator to raise the limit", w.limits.Entries),
		}
	}
	return nil
}

// spend counts n bytes of an entry as delivered.
func (w *walker) spend(entry string, n int64) error {
	if n > w.ceiling-w.out {
		return w.tooLarge(entry)
	}
	w.out += n
	return nil
}

// tooLarge returns the fault for the limit on bytes that was exceeded.
func (w *walker) tooLarge(entry string) error {
	if w.ceiling < w.limits.Bytes {
		return &Error{Entry: entry, Fault: FaultLimit, Detail: fmt.Sprintf(
			"it unpacks to more than %d bytes, over %d times its own size: a decompression bomb, or a container that needs a higher limit",
			w.ceiling, w.limits.Ratio)}
	}
	return &Error{Entry: entry, Fault: FaultLimit, Detail: fmt.Sprintf(
		"it unpacks to more than %d bytes; split it, or ask an operator to raise the limit", w.limits.Bytes)}
}

// deliver passes one file to fn and reads the rest that fn leaves.
func (w *walker) deliver(e Entry, content io.Reader) error {
	if err := w.cursor.ended(); err != nil {
		return w.readFault(e.Raw, err)
	}
	r := &entryReader{walker: w, entry: e.Raw, r: content, left: e.Size}
	err := w.fn(e, r)
	if r.err != nil && !isEnd(r.err) {
		return r.err
	}
	if err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		return err
	}
	return nil
}

// entryReader reads one file's bytes, counts them and classifies errors.
type entryReader struct {
	walker *walker
	entry  string
	r      io.Reader
	left   int64 // bytes still expected
	err    error // sticky
}

// Read implements io.Reader.
func (r *entryReader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	n, err := r.r.Read(p)
	r.left -= int64(n)
	switch {
	case r.left < 0 || isEnd(err) && r.left > 0:
		err = r.walker.readFault(r.entry, io.ErrUnexpectedEOF)
		n = 0
	case err != nil && !isEnd(err):
		err = r.walker.readFault(r.entry, err)
	}
	if spent := r.walker.spend(r.entry, int64(n)); spent != nil {
		n, err = 0, spent
	}
	r.err = err
	return n, err
}
