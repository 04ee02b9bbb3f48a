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

// Entry is one file of a parcel.
type Entry struct {
	Name    string            // in the parcel, slash-separated; of an empty folder it ends in a slash
	Path    string            // in the object; "" for what the parcel adds
	Size    int64             // bytes
	Digests map[string]string // that its bytes have, in hex by algorithm
	// Modified is the producer's time; zero when it is not known.
	Modified time.Time

	write func(ctx context.Context, w io.Writer, offset int64) error
	from  *replica.File // nil of what the parcel adds
}

// Folder says that it is an empty folder, which nothing is copied to.
func (e Entry) Folder() bool { return strings.HasSuffix(e.Name, "/") }

// RewriteError says that a file which was written is not what was recorded, replica.ErrDamaged, and
// may be right when all of it is written again: the part that was there already may be at fault, or
// the storage that it was read in, and there may be another one. Written again and again it comes
// to an end.
type RewriteError struct {
	Start int64 // where the file begins in the tar
	Err   error
}

// Error implements error.
func (e *RewriteError) Error() string { return e.Err.Error() }

// Unwrap returns what happened.
func (e *RewriteError) Unwrap() error { return e.Err }

// stored is a file of the object.
func (p *Parcel) stored(name string, f registry.File) Entry {
	from := p.reader.File(f)
	return Entry{Name: name, Path: f.Path, Size: f.SizeBytes, Digests: f.Digests, Modified: f.Modified, from: from, write: from.Copy}
}

// Copy writes the file's bytes to w from offset on; those before, which are there already, are read
// from prior, and may be nil when offset is 0. replica.ErrDamaged says that the whole is not what
// was recorded: what was written is worth nothing then, and neither is what prior gave; with
// *RewriteError it is worth while to write it again from 0. Any other error leaves what w has taken
// as good as it was.
func (e Entry) Copy(ctx context.Context, w io.Writer, prior io.Reader, offset int64) error {
	digester, err := e.digester()
	if err != nil {
		return err
	}
	if offset > e.Size {
		return fmt.Errorf("%s: %w: there are %d bytes, %d are recorded", e.name(), replica.ErrDamaged, offset, e.Size)
	}
	if offset > 0 {
		if _, err := io.CopyN(&watched{ctx: ctx, w: digester}, prior, offset); err != nil {
			return fmt.Errorf("%s: read what is there: %w", e.name(), err)
		}
	}
	return e.rest(ctx, io.MultiWriter(w, digester), digester, offset)
}

// rest writes the bytes from offset on, to w, which digester gets them from, too, and judges the
// whole.
func (e Entry) rest(ctx context.Context, w io.Writer, digester *fixity.Digester, offset int64) error {
	if err := e.write(ctx, &watched{ctx: ctx, w: w}, offset); err != nil {
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

// digester takes the digests that are recorded of the file.
func (e Entry) digester() (*fixity.Digester, error) {
	d, err := replica.NewDigester(e.Digests)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.Name, err)
	}
	return d, nil
}

// Check reads a file that is there, and returns replica.ErrDamaged when it is not the recorded one.
func (e Entry) Check(ctx context.Context, r io.Reader) error {
	digester, err := e.digester()
	if err != nil {
		return err
	}
	if _, err := io.Copy(&watched{ctx: ctx, w: digester}, io.LimitReader(r, e.Size+1)); err != nil {
		return fmt.Errorf("%s: read what is there: %w", e.name(), err)
	}
	if err := replica.Judge(digester, e.Size, e.Digests); err != nil {
		return fmt.Errorf("%s: %w", e.name(), err)
	}
	return nil
}

// name is how people find the file.
func (e Entry) name() string {
	if e.Path != "" {
		return e.Path
	}
	return e.Name
}

// watched stops a copy when ctx ends.
type watched struct {
	ctx context.Context //nolint:containedctx // an io.Writer has no other way to hear of it
	w   io.Writer
}

// Write implements io.Writer.
func (w *watched) Write(p []byte) (int, error) {
	if w.ctx.Err() != nil {
		return 0, context.Cause(w.ctx)
	}
	return w.w.Write(p)
}
