// Package unpack walks the files in a container (zip, tar, tar.gz, tar.bz2, tar.xz, tar.zst) as a
// stream. Only regular files with safe and unambiguous names come out, within limits, and every
// byte was checked as far as the format allows. The package writes nothing.
//
// All entries that cannot be taken are reported at once: after the first of them the walk continues
// to look for others, and hands out nothing more. Damage and limits end it.
//
// A walk without an error has seen the container to its end: checksums were right, the end mark was
// there, nothing followed it. A walk with an error may have handed out files before; its caller
// must discard them. A zip is judged whole, by its directory, before its first file is handed out.
//
// Names are kept byte for byte where they are UTF-8, and refused otherwise, unless
// Limits.NameEncoding says how to read them. What tar itself ignores is left out ("./" in front,
// "/./", "//"). Names that differ only by case or by normal form are two names.
package unpack

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/holdfast/holdfast/pathset"
)

// UTF8 is the Entry.Encoding of nearly all names.
const UTF8 = "utf-8"

// Entry is one regular file in a container.
type Entry struct {
	// Name is a clean relative path with slashes, valid UTF-8, unique in its container, and never a
	// folder of another.
	Name string
	// Raw holds the bytes of the name as the container has them.
	Raw string
	// Encoding says how Raw was read: UTF8, or the encoding that Limits.NameEncoding names, by
	// which Raw can be had back.
	Encoding string
	// Size is the number of bytes that the container promises. The reader yields exactly as many,
	// or an error.
	Size int64
	// Modified is the file's time in UTC, or the zero time when the container does not tell it: 0
	// in a tar, 0 or the first moment of 1980 in a zip, or what no calendar has.
	Modified time.Time
	// NoZone says that Modified is what the clock of the packer showed, in a zone that the zip does
	// not tell, taken for UTC.
	NoZone bool
}

// Walk calls fn for each regular file in the container in, in the container's order. The reader is
// good until fn returns; what fn leaves unread is read, and checked, after it. Folders are skipped.
//
// It returns nil only when the whole container was sound. Otherwise it returns the error of fn as
// it is; or the error and cause of ctx, wrapped, once ctx has ended; or an *Error, which tells a
// container at fault (ContentFault) from one that could not be read; or, for a container with
// several faults, *Faults. An error met by the reader outranks whatever fn made of it. The caller
// must know that the container's bytes are those that were deposited before it blames the depositor
// (safety rule R6).
//
// Walk uses in, limits and fn from the calling goroutine only; concurrent walks do not touch each
// other.
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
	ceiling int64 // bytes that may come out in all
	out     int64 // bytes that came out
	entries int64 // entries met, folders and skipped ones included
	names   *pathset.Set
	decoder pathset.Encoding
	decoded int // bytes of names that were not UTF-8
	fn      func(Entry, io.Reader) error

	faults   Faults // of entries, met so far
	searched int64  // bytes that came out, to nowhere, since the first of them
}

// walk picks the format by content.
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
		return formatFault("it is no zip, tar, tar.gz, tar.bz2, tar.xz or tar.zst; submit it as a file, or pack it again")
	}
}

// meet counts one more entry of any type.
func (w *walker) meet() error {
	w.entries++
	if w.entries > w.limits.Entries {
		return &Error{
			Fault:  FaultLimit,
			Detail: fmt.Sprintf("it has more than %d entries; split it, or have the limit raised", w.limits.Entries),
		}
	}
	return nil
}

// spend counts n bytes of the named entry as come out.
func (w *walker) spend(entry string, n int64) error {
	if n > w.ceiling-w.out {
		return w.tooLarge(entry)
	}
	w.out += n
	return nil
}

// tooLarge says which of the two limits on bytes was passed.
func (w *walker) tooLarge(entry string) error {
	if w.ceiling < w.limits.Bytes {
		return &Error{Entry: entry, Fault: FaultLimit, Detail: fmt.Sprintf(
			"it unpacks to more than %d bytes, over %d times its own size: a decompression bomb, or a container that needs a higher limit",
			w.ceiling, w.limits.Ratio)}
	}
	return &Error{Entry: entry, Fault: FaultLimit, Detail: fmt.Sprintf(
		"it unpacks to more than %d bytes; split it, or have the limit raised", w.limits.Bytes)}
}

// hand gives one file to fn and reads to its end what fn has left.
func (w *walker) hand(e Entry, content io.Reader) error {
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

// entryReader hands out one file's bytes, counts them and gives errors their meaning.
type entryReader struct {
	walker *walker
	entry  string
	r      io.Reader
	left   int64 // bytes still promised
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
