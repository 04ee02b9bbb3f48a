package staging

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/holdfast/holdfast/fixity"
	"github.com/holdfast/holdfast/storage"
)

// ErrEnough is returned by a function given to Verified that needs no more bytes and has concluded
// nothing from those it read. Verified then reads and compares nothing more, and returns nil.
var ErrEnough = errors.New("enough")

// Verified calls fn with a reader of a staged file and returns fn's error. If the file's bytes do
// not match the digest, the error wraps ErrDamaged, and everything that fn derived from them must
// be discarded: the staging area is not trusted. A digest of "" is not compared, since records of
// earlier programs have none.
func Verified(ctx context.Context, s storage.Store, key, algorithm, digest string, fn func(io.Reader) error) error {
	r, err := s.Open(ctx, key, 0, -1)
	if err != nil {
		return fmt.Errorf("read %s: %w", key, err)
	}
	defer r.Close()
	from := storage.Interruptible(ctx, r)
	if digest == "" {
		if err := fn(from); !errors.Is(err, ErrEnough) {
			return err
		}
		return nil
	}
	h, err := fixity.New(algorithm)
	if err != nil {
		return fmt.Errorf("read %s: %w", key, err)
	}
	told := fn(io.TeeReader(from, h))
	if errors.Is(told, ErrEnough) {
		return nil
	}
	if _, err := io.Copy(h, from); err != nil { // the bytes that fn did not read
		return errors.Join(told, fmt.Errorf("read %s: %w", key, err))
	}
	if got := hex.EncodeToString(h.Sum(nil)); !strings.EqualFold(got, digest) {
		return fmt.Errorf("%s: %w: %s %s, not %s", key, ErrDamaged, algorithm, got, digest)
	}
	return told
}

func readBack(ctx context.Context, s storage.Store, b *Buffers, key string, to io.Writer, read func(n int64)) error {
	r, err := s.Open(ctx, key, 0, -1)
	if err != nil {
		return fmt.Errorf("read %s back: %w", key, err)
	}
	defer r.Close()
	_, err = b.Copy(to, &observedReader{done: func() error { return context.Cause(ctx) }, r: r, seen: read})
	if err != nil {
		return fmt.Errorf("read %s back: %w", key, err)
	}
	return nil
}

// observedReader reads until done returns an error, and reports how many bytes it read.
type observedReader struct {
	done func() error
	r    io.Reader
	seen func(n int64)
}

// Read implements io.Reader.
func (w *observedReader) Read(p []byte) (int, error) {
	if err := w.done(); err != nil {
		return 0, err
	}
	n, err := w.r.Read(p)
	if w.seen != nil {
		w.seen(int64(n))
	}
	return n, err
}
