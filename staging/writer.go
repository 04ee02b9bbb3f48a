package staging

import (
	"context"
	"fmt"

	"github.com/holdfast/holdfast/fixity"
	"github.com/holdfast/holdfast/format"
	"github.com/holdfast/holdfast/storage"
)

// Writer writes a generated file into staging. It computes its digests and identifies its format on
// the way.
type Writer struct {
	to   storage.Writer
	key  string
	d    *fixity.Digester
	head format.Head
}

// Create starts a file under a key of s, with digests by the algorithms. The caller must call
// Close.
func Create(ctx context.Context, s storage.Creator, key string, algorithms ...string) (*Writer, error) {
	d, err := fixity.NewDigester(algorithms...)
	if err != nil {
		return nil, err
	}
	to, err := s.Create(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("stage %s: %w", key, err)
	}
	return &Writer{to: to, key: key, d: d}, nil
}

// Write implements io.Writer. It digests and writes large pieces in parallel.
func (f *Writer) Write(p []byte) (int, error) {
	const worthwhile = 64 << 10
	if len(p) < worthwhile {
		f.d.Write(p)    //nolint:errcheck // it never fails
		f.head.Write(p) //nolint:errcheck // nor does this
		return f.to.Write(p)
	}
	digested := make(chan struct{})
	go func() {
		defer close(digested)
		f.d.Write(p) //nolint:errcheck // likewise
	}()
	f.head.Write(p) //nolint:errcheck // likewise
	n, err := f.to.Write(p)
	<-digested
	return n, err
}

// Commit makes the file durable and returns its description under this name.
func (f *Writer) Commit(ctx context.Context, name string) (File, error) {
	if _, err := f.to.Commit(ctx); err != nil {
		return File{}, fmt.Errorf("stage %s: %w", f.key, err)
	}
	return File{Name: name, Key: f.key, SizeBytes: f.d.Size(), Digests: f.d.Sums(), MIMEType: f.head.MIME(name, "")}, nil
}

// Close deletes the file unless it was committed.
func (f *Writer) Close() error { return f.to.Abort() }
