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

// Digest reads a staged file back and returns its digest, lower-case hex. read, which may be nil,
// is told how far it comes. The error wraps storage.ErrNotFound when there is no such file,
// fixity.ErrUnknown for the algorithm.
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

// ErrEnough is what a reader of Verified returns that has concluded nothing from what it read: the
// rest is not read, and nothing is compared. Verified then returns nil.
var ErrEnough = errors.New("enough")

// Verified has fn read a staged file and returns what fn does, unless the file's bytes are not
// those that the digest is of: then the error wraps ErrDamaged, and nothing that fn made of them
// counts. The staging area is not trusted to keep what it was given. A digest of "" is not
// compared: what was noted by earlier programs has none.
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
	if _, err := io.Copy(h, from); err != nil { // what fn has not asked for
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
