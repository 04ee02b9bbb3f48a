package staging

import (
	"context"
	"fmt"

	"github.com/holdfast/holdfast/storage"
)

// inPlace is a store whose object key is already what is to be staged there. Its writers count
// bytes, and write none. It deletes neither the object nor anything below its key.
type inPlace struct {
	storage.Store
	key string
}

// inPlaceToken is the token of its checkpoints.
const inPlaceToken = "in-place"

// Create implements storage.Store.
func (s inPlace) Create(context.Context, string) (storage.Writer, error) {
	return &inPlaceWriter{store: s}, nil
}

// Resume implements storage.Store.
func (s inPlace) Resume(_ context.Context, key string, cp storage.Checkpoint) (storage.Writer, error) {
	if cp.Token != inPlaceToken {
		return nil, fmt.Errorf("resume %q in place: %w", key, storage.ErrNotFound)
	}
	return &inPlaceWriter{store: s, size: cp.Size}, nil
}

// Delete implements storage.Store.
func (s inPlace) Delete(context.Context, string) error { return nil }

// DeletePrefix implements storage.Store.
func (s inPlace) DeletePrefix(ctx context.Context, prefix string) error {
	if prefix == s.key {
		return nil
	}
	return s.Store.DeletePrefix(ctx, prefix)
}

// inPlaceWriter is a storage.Writer for bytes that are in their place.
type inPlaceWriter struct {
	store inPlace
	size  int64
}

// Write implements io.Writer.
func (w *inPlaceWriter) Write(p []byte) (int, error) {
	w.size += int64(len(p))
	return len(p), nil
}

// Checkpoint implements storage.Writer.
func (w *inPlaceWriter) Checkpoint(context.Context) (storage.Checkpoint, error) {
	return storage.Checkpoint{Token: inPlaceToken, Size: w.size}, nil
}

// Commit implements storage.Writer.
func (w *inPlaceWriter) Commit(ctx context.Context) (storage.Info, error) {
	info, err := w.store.Stat(ctx, w.store.key)
	if err == nil && info.Size != w.size {
		err = fmt.Errorf("%s: %w: %d bytes were read, it has %d", w.store.key, ErrDamaged, w.size, info.Size)
	}
	return info, err
}

// Abort implements storage.Writer.
func (w *inPlaceWriter) Abort() error { return nil }

// Close implements storage.Writer.
func (w *inPlaceWriter) Close() error { return nil }
