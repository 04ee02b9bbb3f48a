package storagetest

import (
	"context"
	"fmt"
	"io"

	"github.com/holdfast/holdfast/storage"
)

// faultyWriter is a Writer of a Faulty store.
type faultyWriter struct {
	store *Faulty
	key   string
	inner storage.Writer
}

// Write implements io.Writer. It writes bytes up to the quota.
func (w *faultyWriter) Write(p []byte) (n int, err error) {
	err = w.store.do(Write, w.key, func() error {
		room := w.store.take(int64(len(p)))
		n, err = w.inner.Write(p[:room])
		if err == nil && room < int64(len(p)) {
			err = fmt.Errorf("write %q: %w", w.key, storage.ErrNoSpace)
		}
		return err
	})
	return n, err
}

// Checkpoint implements storage.Writer.
func (w *faultyWriter) Checkpoint(ctx context.Context) (cp storage.Checkpoint, err error) {
	err = w.store.do(Checkpoint, w.key, func() error { cp, err = w.inner.Checkpoint(ctx); return err })
	return cp, err
}

// Commit implements storage.Writer.
func (w *faultyWriter) Commit(ctx context.Context) (info storage.Info, err error) {
	err = w.store.do(Commit, w.key, func() error { info, err = w.inner.Commit(ctx); return err })
	return info, err
}

// Abort implements storage.Writer. After the store's death it only closes the writer: checkpoints
// stay, as after a kill.
func (w *faultyWriter) Abort() error {
	w.store.mu.Lock()
	dead := w.store.dead
	w.store.mu.Unlock()
	if dead {
		return w.inner.Close()
	}
	return w.inner.Abort()
}

// Close implements storage.Writer.
func (w *faultyWriter) Close() error { return w.inner.Close() }

// faultyReader reads an object of a Faulty store.
type faultyReader struct {
	store *Faulty
	key   string
	inner io.ReadCloser
	at    int64 // offset in the object
	flip  int64 // offset of the byte to change, or negative
	cut   int64 // offset at which to end, or negative
	half  bool  // end in the middle of the first read
}

// Read implements io.Reader.
func (r *faultyReader) Read(p []byte) (n int, err error) {
	if before, _ := r.store.strike(Read); before != nil {
		return 0, fmt.Errorf("read %q: %w", r.key, before)
	}
	if r.cut >= 0 {
		if r.at >= r.cut {
			return 0, io.EOF
		}
		p = p[:min(int64(len(p)), r.cut-r.at)]
	}
	n, err = r.inner.Read(p)
	if r.half && n > 0 {
		n, err = n/2, nil
		r.half, r.cut = false, r.at+int64(n)
	}
	if i := r.flip - r.at; r.flip >= 0 && i >= 0 && i < int64(n) {
		p[i] ^= 1
	}
	r.at += int64(n)
	return n, err
}

// Close implements io.Closer.
func (r *faultyReader) Close() error { return r.inner.Close() }
