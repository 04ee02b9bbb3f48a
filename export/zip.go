package export

import (
	"archive/zip"
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
)

// MostZipped is the largest number of files in a zip: its table of contents is held in memory.
const MostZipped = 100_000

// Errors for errors.Is.
var (
	// ErrTooMany says that a zip cannot have so many files.
	ErrTooMany = fmt.Errorf("a zip made here has at most %d files", MostZipped)
	errUnsafe  = errors.New("programs for Windows would read the backslash as the end of a folder's name")
	errTooLong = fmt.Errorf("a zip's names have at most %d bytes", math.MaxUint16)
)

// CheckZip returns ErrTooMany, ErrName or ErrTwice if the package cannot be a zip. It reads the
// inventory, but no file.
func (p *Package) CheckZip(ctx context.Context) error {
	n := 0
	for e, err := range p.zipped(ctx) {
		if err != nil {
			return err
		}
		if n++; n > MostZipped {
			return ErrTooMany
		}
		switch {
		case strings.ContainsRune(e.Name, '\\'):
			return fmt.Errorf("%q: %w: %w", e.name(), ErrName, errUnsafe)
		case len(e.Name) > math.MaxUint16:
			return fmt.Errorf("%q: %w: %w", e.name(), ErrName, errTooLong)
		}
	}
	return nil
}

// WriteZip writes the package as a zip to w, which need not be a file. Memory holds a line for each
// file. Errors are those of WriteTar and CheckZip; a zip with an error has no table of contents, so
// that no program takes it for a whole one.
func (p *Package) WriteZip(ctx context.Context, w io.Writer) error {
	out := zip.NewWriter(w)
	// Stored bytes without a length before them, which is what a stream would have, are not read by
	// all programs. Most content is compressed already: little is tried.
	out.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestSpeed) })
	for e, err := range p.zipped(ctx) {
		if err != nil {
			return err
		}
		h := &zip.FileHeader{Name: e.Name, Method: zip.Deflate, Modified: e.Modified.UTC()}
		if e.Modified.IsZero() {
			h.Modified = p.opts.At.UTC()
		}
		file, err := out.CreateHeader(h)
		if err != nil {
			return fmt.Errorf("%s: %w", e.name(), err)
		}
		if e.Folder() {
			continue
		}
		if err := e.Copy(ctx, file, nil, 0); err != nil {
			return err
		}
	}
	return out.Close()
}

// zipped yields the entries under their names in a zip, which are those in a tar.
func (p *Package) zipped(ctx context.Context) func(yield func(Entry, error) bool) {
	return func(yield func(Entry, error) bool) {
		for e, err := range p.Entries(ctx) {
			e.Name = p.archiveName(e)
			if !yield(e, err) {
				return
			}
		}
	}
}

// archiveName returns an entry's name in an archive: a bag is in a folder of its own.
func (p *Package) archiveName(e Entry) string {
	if p.bag == nil {
		return e.Name
	}
	return p.Base() + "/" + e.Name
}
