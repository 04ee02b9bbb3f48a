package dir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/holdfast/holdfast/storage"
)

// Resume implements storage.Store. It copies the bytes inside the kernel.
func (s *Store) Resume(ctx context.Context, key string, cp storage.Checkpoint) (_ storage.Writer, err error) {
	defer measure("Resume", time.Now(), &err)
	from, err := s.openCheckpoint(cp)
	if err != nil {
		return nil, fmt.Errorf("resume %q: %w", key, err)
	}
	defer from.Close() //nolint:errcheck // a read-only handle
	w, err := s.create(ctx, key)
	if err != nil {
		return nil, err
	}
	if err := w.checkRoom(cp.Size); err != nil {
		return nil, errors.Join(wrap("resume", key, err), w.Abort())
	}
	for w.size < cp.Size {
		n, err := io.CopyN(w.f, from, min(cp.Size-w.size, writebackEvery))
		w.size += n
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, errors.Join(wrap("resume", key, err), w.Abort())
		}
		startWriteback(w.f, w.begun, w.size-w.begun)
		w.begun = w.size
	}
	return w, nil
}
