package workers

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/fixity"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
)

// digested writes a staged file and takes its digests on the way.
type digested struct {
	storage.Writer
	key string
	d   *fixity.Digester
}

func newDigested(ctx context.Context, s storage.Store, key string, algorithms ...string) (*digested, error) {
	d, err := fixity.NewDigester(algorithms...)
	if err != nil {
		return nil, err
	}
	w, err := s.Create(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("stage %s: %w", key, err)
	}
	return &digested{Writer: w, key: key, d: d}, nil
}

// Write implements io.Writer.
func (f *digested) Write(p []byte) (int, error) {
	n, err := f.Writer.Write(p)
	f.d.Write(p[:n]) //nolint:errcheck // it never fails
	return n, err
}

// Commit makes the file durable and returns what it is. One that is there was written by this very attempt.
func (f *digested) Commit(ctx context.Context) (staging.File, error) {
	if _, err := f.Writer.Commit(ctx); err != nil && !errors.Is(err, storage.ErrExists) {
		return staging.File{}, fmt.Errorf("stage %s: %w", f.key, err)
	}
	return staging.File{Key: f.key, SizeBytes: f.d.Size(), Digests: f.d.Sums()}, nil
}

// Close drops the file unless it was committed.
func (f *digested) Close() error { return f.Writer.Abort() }
