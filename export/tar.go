package export

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/holdfast/holdfast/fixity"
	"github.com/holdfast/holdfast/replica"
)

// TarEnd is the number of zero bytes at the end of a tar: two blocks.
const TarEnd = 1024

// TarSize returns the size of the tar in bytes.
func (p *Package) TarSize(ctx context.Context) (int64, error) {
	size := int64(TarEnd)
	for at, err := range p.places(ctx) {
		if err != nil {
			return 0, err
		}
		size = at.end() + TarEnd
	}
	return size, nil
}

// WriteTar writes the tar to w from an offset on. A bag is in a folder of its own, Base. have has
// the bytes before the offset; WriteTar reads those of the file that the offset is in. have may be
// nil if from is 0.
//
// replica.ErrDamaged says that a file differs from the record. *RewriteError says that it may be
// right if the tar is written again from its Start. Other errors are those of the source and of w,
// and the cause of ctx. Without an error the tar is complete.
func (p *Package) WriteTar(ctx context.Context, w io.Writer, from int64, have io.ReaderAt) error {
	return p.writeTar(ctx, w, from, false, func(at place, offset int64) error {
		var prior io.Reader
		if offset > 0 {
			prior = io.NewSectionReader(have, at.content(), offset)
		}
		return at.Copy(ctx, w, prior, offset)
	})
}

// Point is a position in a tar from which writing can continue without reading the earlier bytes.
type Point struct {
	Offset int64 `json:"offset"` // bytes of the tar
	// Digests are those of the present file's bytes before the position; nil between two files, and
	// in headers.
	Digests *fixity.State `json:"digests,omitempty"`
	// Start is the offset of the present file; Offset between two files.
	Start int64 `json:"start"`
}

// ContinueTar is WriteTar from a point on; the zero point is the beginning. It calls reached after
// each complete write to w, and an error of reached ends the writing. between says that all files
// so far matched their digests, and nothing of the next one was written. point returns the present
// position; it may be called until reached returns. If a point's digests cannot be restored, the
// error is ErrPoint: continue at its Start instead, which needs no digests.
func (p *Package) ContinueTar(ctx context.Context, w io.Writer, from Point, reached func(size int64, between bool, point func() (Point, error)) error) error {
	out := &markingWriter{w: w, at: from.Offset, reached: reached}
	return p.writeTar(ctx, out, from.Offset, from.Digests != nil, func(at place, offset int64) error {
		digester, err := at.digester()
		if err != nil {
			return err
		}
		if offset > 0 && (from.Digests == nil || from.Digests.Size != offset || !digester.Restore(*from.Digests)) {
			return fmt.Errorf("go on in %s at byte %d: %w", at.name(), offset, ErrPoint)
		}
		out.begin(at, digester)
		defer out.end()
		return at.rest(ctx, out, digester, offset)
	})
}

// ErrPoint says that a tar cannot be continued in the middle of a file: the digests of the file's
// beginning are unknown.
var ErrPoint = errors.New("the digests of the file's beginning are unknown")

// markingWriter tracks the position of the tar that is written through it.
type markingWriter struct {
	w        io.Writer
	at       int64 // bytes of the tar
	start    int64
	digester *fixity.Digester // of the present file; nil between two files
	reached  func(size int64, between bool, point func() (Point, error)) error
}

func (m *markingWriter) begin(at place, d *fixity.Digester) { m.start, m.digester = at.start, d }

func (m *markingWriter) end() { m.digester = nil }

// Write implements io.Writer. It computes digests here, so that they cover what was written when
// reached is called.
func (m *markingWriter) Write(p []byte) (int, error) {
	n, err := m.w.Write(p)
	m.at += int64(n)
	if m.digester != nil {
		if _, err := m.digester.Write(p[:n]); err != nil {
			return n, err
		}
	}
	if err != nil {
		return n, err
	}
	return n, m.reached(m.at, m.digester == nil, m.point)
}

func (m *markingWriter) point() (Point, error) {
	if m.digester == nil {
		return Point{Offset: m.at, Start: m.at}, nil
	}
	state, err := m.digester.State()
	return Point{Offset: m.at, Digests: &state, Start: m.start}, err
}

// writeTar writes everything except file contents, which copyFile writes from an offset on. It
// skips a file that ends at from, unless that file is unjudged.
func (p *Package) writeTar(ctx context.Context, w io.Writer, from int64, unjudged bool, copyFile func(at place, offset int64) error) error {
	end := int64(0)
	for at, err := range p.places(ctx) {
		if err != nil {
			return err
		}
		end = at.end()
		ends := unjudged && from == at.content()+at.Size
		if end <= from && !ends {
			continue
		}
		if rest := from - at.start; rest < int64(len(at.header)) {
			if _, err := w.Write(at.header[max(rest, 0):]); err != nil {
				return err
			}
		}
		offset := max(from-at.content(), 0)
		if offset < at.Size || at.Size == 0 && !at.Folder() || ends {
			err := copyFile(at, offset)
			if again := new(RewriteError); errors.As(err, &again) {
				return &RewriteError{Start: at.start, Err: again.Err}
			} else if err != nil {
				return err
			}
		}
		if _, err := w.Write(make([]byte, at.padding()-max(from-at.content()-at.Size, 0))); err != nil {
			return err
		}
	}
	if from > end+TarEnd {
		return fmt.Errorf("write tar from byte %d: it has %d: %w", from, end+TarEnd, replica.ErrDamaged)
	}
	_, err := w.Write(make([]byte, TarEnd-max(from-end, 0)))
	return err
}

// CheckTar checks the beginning of a tar, have, which has size bytes of an interrupted WriteTar of
// the same package. It returns the number of right bytes: all, or those before the first wrong
// file. It does not judge an incomplete last file: WriteTar reads it anyway and judges it.
func (p *Package) CheckTar(ctx context.Context, have io.ReaderAt, size int64) (good int64, err error) {
	for at, err := range p.places(ctx) {
		if err != nil {
			return 0, err
		}
		if at.start >= size {
			return size, nil // in or at the end of the previous file
		}
		ok, err := at.check(ctx, have, size)
		if err != nil {
			return 0, err
		} else if !ok {
			return at.start, nil
		}
		good = min(at.end(), size)
	}
	return good, nil // checking the zeros at the end gains nothing
}

// place is an entry with its position in the tar.
type place struct {
	Entry
	start  int64
	header []byte
}

func (at place) content() int64 { return at.start + int64(len(at.header)) }
func (at place) end() int64     { return at.content() + at.Size + at.padding() }

func (at place) padding() int64 { return (512 - at.Size%512) % 512 }

// check reports whether the entry's bytes within the first size bytes of have are right. It judges
// the content only if that is complete.
func (at place) check(ctx context.Context, have io.ReaderAt, size int64) (bool, error) {
	same := func(want []byte, start int64) (bool, error) {
		got := make([]byte, min(int64(len(want)), max(size-start, 0)))
		_, err := have.ReadAt(got, start)
		if err != nil && (!errors.Is(err, io.EOF) || len(got) > 0 && start+int64(len(got)) > size) {
			return false, fmt.Errorf("read what is there: %w", err)
		}
		return bytes.Equal(got, want[:len(got)]), nil
	}
	if ok, err := same(at.header, at.start); !ok || err != nil {
		return false, err
	}
	if at.content()+at.Size > size || at.Folder() {
		return true, nil
	}
	err := at.Check(ctx, io.NewSectionReader(have, at.content(), at.Size))
	if errors.Is(err, replica.ErrDamaged) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	return same(make([]byte, at.padding()), at.content()+at.Size)
}

// places yields the entries with their positions.
func (p *Package) places(ctx context.Context) func(yield func(place, error) bool) {
	return func(yield func(place, error) bool) {
		start := int64(0)
		for e, err := range p.Entries(ctx) {
			if err != nil {
				yield(place{}, err)
				return
			}
			header, err := tarHeader(p.archiveName(e), e.Size, e.Modified, p.opts.At)
			if err != nil {
				yield(place{}, fmt.Errorf("%s: %w: %w", e.name(), ErrName, err))
				return
			}
			at := place{Entry: e, start: start, header: header}
			start = at.end()
			if !yield(at, nil) {
				return
			}
		}
	}
}

// tarHeader returns the header of a file: the same bytes for the same name, size and times. A file
// without a known time gets the package's date, since a tar needs one.
//
// Headers are in pax format, whose UTF-8 names all programs read. However, bsdtar (libarchive)
// normalises such names to NFC, and of two names that differ only in normal form it would keep one
// file. A name that is not NFC, or not UTF-8, therefore gets a GNU header: its names are bytes,
// which both programs leave unchanged. Such a header has no fractions of seconds.
func tarHeader(name string, size int64, modified, otherwise time.Time) ([]byte, error) {
	if modified.IsZero() {
		modified = otherwise.Truncate(time.Second)
	}
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: size, ModTime: modified, Format: tar.FormatPAX}
	if !utf8.ValidString(name) || !norm.NFC.IsNormalString(name) {
		h.Format, h.ModTime = tar.FormatGNU, modified.Truncate(time.Second)
	}
	if strings.HasSuffix(name, "/") {
		h.Typeflag, h.Mode = tar.TypeDir, 0o755
	}
	var out bytes.Buffer
	err := tar.NewWriter(&out).WriteHeader(h)
	return out.Bytes(), err
}
