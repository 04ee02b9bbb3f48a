package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
)

// Copier is implemented by a Store that can copy an object of another Store without passing its
// bytes through this process (a hard link, a server-side copy).
type Copier interface {
	// CopyFrom copies the object srcKey of src to the key dstKey of this store. Like Writer.Commit
	// it creates only, and the copy becomes durable and visible in one step. It returns
	// errors.ErrUnsupported, and has done nothing, if it can only read and write.
	CopyFrom(ctx context.Context, dstKey string, src Store, srcKey string) (Info, error)
}

// copyBuffer is large enough that a call costs little beside moving the bytes.
const copyBuffer = 1 << 20

// Copy copies the object srcKey of src to the key dstKey of dst. It returns ErrExists if dstKey is
// taken, and ErrNotFound if srcKey is missing. If dst is a Copier, Copy uses that; otherwise it
// reads the bytes, compares their number with the source's size, and writes them.
func Copy(ctx context.Context, dst Store, dstKey string, src Store, srcKey string) (Info, error) {
	if c, ok := dst.(Copier); ok {
		info, err := c.CopyFrom(ctx, dstKey, src, srcKey)
		if !errors.Is(err, errors.ErrUnsupported) {
			return info, err
		}
	}
	return copyBytes(ctx, dst.Create, dstKey, src, srcKey)
}

// copyBytes is Copy without a Copier.
func copyBytes(ctx context.Context, create func(context.Context, string) (Writer, error), dstKey string, src Store, srcKey string) (Info, error) {
	want, err := src.Stat(ctx, srcKey)
	if err != nil {
		return Info{}, fmt.Errorf("copy to %q: %w", dstKey, err)
	}
	r, err := src.Open(ctx, srcKey, 0, -1)
	if err != nil {
		return Info{}, fmt.Errorf("copy to %q: %w", dstKey, err)
	}
	defer r.Close()
	w, err := create(ctx, dstKey)
	if err != nil {
		return Info{}, fmt.Errorf("copy from %q: %w", srcKey, err)
	}
	defer w.Abort() //nolint:errcheck // an aborted writer leaves nothing that matters
	n, err := io.CopyBuffer(w, Interruptible(ctx, r), make([]byte, copyBuffer))
	if err != nil {
		return Info{}, fmt.Errorf("copy %q to %q: %w", srcKey, dstKey, err)
	}
	if n != want.Size {
		return Info{}, fmt.Errorf("copy %q to %q: read %d of %d bytes: %w", srcKey, dstKey, n, want.Size, io.ErrUnexpectedEOF)
	}
	return w.Commit(ctx)
}

// Replacer is implemented by a Store that can replace one of its objects by a copy of another
// without passing the bytes through this process.
type Replacer interface {
	// ReplaceFrom is Replace with the content of the object srcKey; ErrNotFound if that is missing.
	// The copy shares no bytes with srcKey.
	ReplaceFrom(ctx context.Context, key, srcKey string) error
}

// maxReplace limits the memory of ReplaceFrom for a store that is no Replacer.
const maxReplace = 512 << 20

// ReplaceFrom replaces the object key of s by a copy of its object srcKey, with the guarantees of
// Store.Replace.
func ReplaceFrom(ctx context.Context, s Store, key, srcKey string) error {
	if r, ok := s.(Replacer); ok {
		return r.ReplaceFrom(ctx, key, srcKey)
	}
	data, err := ReadAll(ctx, s, srcKey, maxReplace)
	if err != nil {
		return fmt.Errorf("replace %q: %w", key, err)
	}
	return s.Replace(ctx, key, data)
}

// Put creates the object key with the content data. It returns ErrExists if the key is taken.
func Put(ctx context.Context, s Store, key string, data []byte) (Info, error) {
	w, err := s.Create(ctx, key)
	if err != nil {
		return Info{}, err
	}
	defer w.Abort() //nolint:errcheck // an aborted writer leaves nothing that matters
	if _, err := io.Copy(w, bytes.NewReader(data)); err != nil {
		return Info{}, fmt.Errorf("write %q: %w", key, err)
	}
	return w.Commit(ctx)
}

// ReadAll returns the content of an object. It returns an error if the object is larger than limit
// bytes.
func ReadAll(ctx context.Context, s Store, key string, limit int64) ([]byte, error) {
	r, err := s.Open(ctx, key, 0, limit+1)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", key, err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("read %q: %w: it has more than %d bytes", key, ErrTooLarge, limit)
	}
	return data, nil
}
