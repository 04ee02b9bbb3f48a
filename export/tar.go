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

// TarEnd is the number of zeros that end a tar file: two blocks.
const TarEnd = 1024

// TarSize is the number of bytes of the tar.
func (p *Parcel) TarSize(ctx context.Context) (int64, error) {
	size := int64(TarEnd)
	for at, err := range p.places(ctx) {
		if err != nil {
			return 0, err
		}
		size = at.end() + TarEnd
	}
	return size, nil
}

// WriteTar writes the tar to w from the offset on; a bag lies in a folder of its own, Base. have
// gives the bytes before the offset, of which those of a file that the offset lies in are read; it
// may be nil when from is 0. replica.ErrDamaged says that a file is not what was recorded,
// *RewriteError that it may be right when the tar is written again from its Start on. The errors
// are those of the source and of w, and the cause of ctx, too; a tar is whole when there was none.
func (p *Parcel) WriteTar(ctx context.Context, w io.Writer, from int64, have io.ReaderAt) error {
	return p.writeTar(ctx, w, from, false, func(at place, offset int64) error {
		var prior io.Reader
		if offset > 0 {
			prior = io.NewSectionReader(have, at.content(), offset)
		}
		return at.Copy(ctx, w, prior, offset)
	})
}

// Point is where a tar stood. It is all that has to be known of bytes that cannot be read again, to
// go on behind them.
type Point struct {
	Offset int64 `json:"offset"` // bytes of the tar
	// Digests are those of the bytes before it of the file that it lies in; nil between two files,
	// and in their headers.
	Digests *fixity.State `json:"digests,omitempty"`
	// Start is where that file begins; Offset between two files.
	Start int64 `json:"start"`
}

// ContinueTar is WriteTar from a point on, the zero one being the beginning. reached is called
// after each write that w took whole, and its error ends the writing; between says that all files
// so far were compared with their digests, and nothing of the next one was written. point, which
// may be called until reached returns, says where the tar stands. A point whose digests cannot be
// read any more is ErrPoint: the caller continues at its Start instead, where none are needed.
func (p *Parcel) ContinueTar(ctx context.Context, w io.Writer, from Point, reached func(size int64, between bool, point func() (Point, error)) error) error {
	out := &marking{w: w, at: from.Offset, reached: reached}
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

// ErrPoint says that a tar cannot be gone on with in the middle of a file: what is needed of its
// beginning is not known.
var ErrPoint = errors.New("the digests of the file's beginning are not known")

// marking knows where a tar stands that is written through it.
type marking struct {
	w        io.Writer
	at       int64 // bytes of the tar
	start    int64
	digester *fixity.Digester // of the file that is being written; nil between two
	reached  func(size int64, between bool, point func() (Point, error)) error
}

func (m *marking) begin(at place, d *fixity.Digester) { m.start, m.digester = at.start, d }

func (m *marking) end() { m.digester = nil }

// Write implements io.Writer. Digests are taken here, so that they are those of what was written
// when reached is called.
func (m *marking) Write(p []byte) (int, error) {
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

func (m *marking) point() (Point, error) {
	if m.digester == nil {
		return Point{Offset: m.at, Start: m.at}, nil
	}
	state, err := m.digester.State()
	return Point{Offset: m.at, Digests: &state, Start: m.start}, err
}

// writeTar writes everything but the contents of files, which copyFile does, from an offset of
// theirs on. A file that ends at from is left alone, but for one that is unjudged.
func (p *Parcel) writeTar(ctx context.Context, w io.Writer, from int64, unjudged bool, copyFile func(at place, offset int64) error) error {
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

// CheckTar reads the beginning of a tar, have, that an earlier WriteTar of the same parcel was
// interrupted in after size bytes. It returns up to which byte that is right: everything, or the
// beginning of the first file that is not what it should be. Of a file that have ends in, the bytes
// that are there are left for WriteTar to judge, which has to read them anyway.
func (p *Parcel) CheckTar(ctx context.Context, have io.ReaderAt, size int64) (good int64, err error) {
	for at, err := range p.places(ctx) {
		if err != nil {
			return 0, err
		}
		if at.start >= size {
			return size, nil // in or at the end of the file before
		}
		ok, err := at.check(ctx, have, size)
		if err != nil {
			return 0, err
		} else if !ok {
			return at.start, nil
		}
		good = min(at.end(), size)
	}
	return good, nil // nothing is gained by looking at the zeros behind
}

// place is an entry where it lies in the tar.
type place struct {
	Entry
	start  int64
	header []byte
}

func (at place) content() int64 { return at.start + int64(len(at.header)) }
func (at place) end() int64     { return at.content() + at.Size + at.padding() }

func (at place) padding() int64 { return (512 - at.Size%512) % 512 }

// check says whether what there is of the entry in the first size bytes of have is right; the
// content only when all of it is there.
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

// places yields the entries where they lie.
func (p *Parcel) places(ctx context.Context) func(yield func(place, error) bool) {
	return func(yield func(place, error) bool) {
		start := int64(0)
		base := ""
		if p.bag != nil {
			base = p.Base() + "/"
		}
		for e, err := range p.Entries(ctx) {
			if err != nil {
				yield(place{}, err)
				return
			}
			header, err := tarHeader(base+e.Name, e.Size, e.Modified, p.opts.At)
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

// tarHeader is what stands before a file: the same bytes for the same name, size and times. A file
// whose own time is not known has that of the parcel, since a tar must tell one.
//
// Names stand in it as pax has them, in UTF-8, which all programs read. But bsdtar (libarchive)
// normalises these to NFC, so that of two names which differ in their normal form only one file
// would be left. What is not NFC, or not UTF-8, has a header of GNU's form: its names are bytes
// that both programs leave alone. Such a header tells no fractions of seconds.
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
