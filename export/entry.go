package export

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/holdfast/holdfast/fixity"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/replica"
)

// Entry is one file of a package.
type Entry struct {
	Name    string            // in the package, slash-separated; the name of an empty folder ends in a slash
	Path    string            // in the object; "" for a generated file
	Size    int64             // bytes
	Digests map[string]string // expected digests of its bytes, in hex by algorithm
	// Modified is the producer's time; zero if unknown.
	Modified time.Time

	write func(ctx context.Context, w io.Writer, offset int64) error
	from  *replica.File // nil for a generated file
}

// Folder reports whether it is an empty folder. Do not copy one.
func (e Entry) Folder() bool { return strings.HasSuffix(e.Name, "/") }

// RewriteError says that a written file differs from the record (replica.ErrDamaged), but may be
// right if it is written again from the start: the existing part may be at fault, or the storage
// that was read. The number of such repeats is limited.
type RewriteError struct {
	Start int64 // offset of the file in the tar
	Err   error
}

// Error implements error.
func (e *RewriteError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *RewriteError) Unwrap() error { return e.Err }

// storedEntry returns the entry of a file of the object.
func (p *Package) storedEntry(name string, f registry.File) Entry {
	from := p.reader.File(f)
	return Entry{Name: name, Path: f.Path, Size: f.SizeBytes, Digests: f.Digests, Modified: f.Modified, from: from, write: from.Copy}
}

// Copy writes the file's bytes from offset on to w. It reads the earlier bytes, which already
// exist, from prior; prior may be nil if offset is 0.
//
// After replica.ErrDamaged the whole file differs from the record: discard what was written, and
// what prior returned. If the error is also a *RewriteError, write the file again from 0. After any
// other error, what w has received is still usable.
func (e Entry) Copy(ctx context.Context, w io.Writer, prior io.Reader, offset int64) error {
	digester, err := e.digester()
	if err != nil {
		return err
	}
	if offset > e.Size {
		return fmt.Errorf("%s: %w: it has %d bytes, %d are recorded", e.name(), replica.ErrDamaged, offset, e.Size)
	}
	if offset > 0 {
		if _, err := io.CopyN(&ctxWriter{ctx: ctx, w: digester}, prior, offset); err != nil {
			return fmt.Errorf("%s: read what is there: %w", e.name(), err)
		}
	}
	return e.rest(ctx, io.MultiWriter(w, digester), digester, offset)
}

// rest writes the bytes from offset on to w, which passes them to digester too, and judges the
// whole file.
func (e Entry) rest(ctx context.Context, w io.Writer, digester *fixity.Digester, offset int64) error {
	if err := e.write(ctx, &ctxWriter{ctx: ctx, w: w}, offset); err != nil {
		return fmt.Errorf("%s: %w", e.name(), err)
	}
	err := replica.Judge(digester, e.Size, e.Digests)
	if err == nil {
		return nil
	}
	again := offset > 0 || e.from != nil && e.from.Blame(err)
	err = fmt.Errorf("%s: %w", e.name(), err)
	if again {
		return &RewriteError{Err: err}
	}
	return err
}

// digester returns a digester for the recorded digests.
func (e Entry) digester() (*fixity.Digester, error) {
	d, err := replica.NewDigester(e.Digests)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.Name, err)
	}
	return d, nil
}

// Check reads an existing file. It returns replica.ErrDamaged if the file differs from the record.
func (e Entry) Check(ctx context.Context, r io.Reader) error {
	digester, err := e.digester()
	if err != nil {
		return err
	}
	if _, err := io.Copy(&ctxWriter{ctx: ctx, w: digester}, io.LimitReader(r, e.Size+1)); err != nil {
		return fmt.Errorf("%s: read what is there: %w", e.name(), err)
	}
	if err := replica.Judge(digester, e.Size, e.Digests); err != nil {
		return fmt.Errorf("%s: %w", e.name(), err)
	}
	return nil
}

// name returns the name by which people find the file.
func (e Entry) name() string {
	if e.Path != "" {
		return e.Path
	}
	return e.Name
}

// ctxWriter ends a copy when ctx ends.
type ctxWriter struct {
	ctx context.Context //nolint:containedctx // an io.Writer gets no context otherwise
	w   io.Writer
}

// Write implements io.Writer.
func (w *ctxWriter) Write(p []byte) (int, error) {
	if w.ctx.Err() != nil {
		return 0, context.Cause(w.ctx)
	}
	return w.w.Write(p)
}
