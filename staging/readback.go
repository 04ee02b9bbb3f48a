package staging

import (
	"context"
	"fmt"
	"io"

	"github.com/holdfast/holdfast/fixity"
	"github.com/holdfast/holdfast/storage"
)

// Digest reads a staged file back and returns its digest, lower-case hex. read, which may be nil, is told how far it
// comes. The error wraps storage.ErrNotFound when there is no such file, fixity.ErrUnknown for the algorithm.
func Digest(ctx context.Context, s storage.Store, b *Buffers, key, algorithm string, read func(n int64)) (string, error) {
	d, err := fixity.NewDigester(algorithm)
	if err != nil {
		return "", err
	}
	if err := readBack(ctx, s, b, key, d, read); err != nil {
		return "", err
	}
	return d.Sums()[algorithm], nil
}

func readBack(ctx context.Context, s storage.Store, b *Buffers, key string, to io.Writer, read func(n int64)) error {
	r, err := s.Open(ctx, key, 0, -1)
	if err != nil {
		return fmt.Errorf("read %s back: %w", key, err)
	}
	defer r.Close()
	_, err = b.Copy(to, &watched{done: func() error { return context.Cause(ctx) }, r: r, seen: read})
	if err != nil {
		return fmt.Errorf("read %s back: %w", key, err)
	}
	return nil
}

// watched reads until done returns an error, and shows how far it came.
type watched struct {
	done func() error
	r    io.Reader
	seen func(n int64)
}

// Read implements io.Reader.
func (w *watched) Read(p []byte) (int, error) {
	if err := w.done(); err != nil {
		return 0, err
	}
	n, err := w.r.Read(p)
	if w.seen != nil {
		w.seen(int64(n))
	}
	return n, err
}
