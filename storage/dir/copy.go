package dir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/holdfast/holdfast/storage"
)

// CopyFrom implements storage.Copier. Within one file system it makes a hard link, which is safe
// because committed objects never change; otherwise it returns errors.ErrUnsupported. It links a
// file only once. A file that already has a second name is copied, so that no two objects of a
// store share a file: one bad sector would damage both, and OCFL forbids it (E090).
func (s *Store) CopyFrom(ctx context.Context, dstKey string, src storage.Store, srcKey string) (_ storage.Info, err error) {
	defer measure("Link", time.Now(), &err)
	f, err := s.linkable(ctx, dstKey, src, srcKey)
	if err != nil {
		return storage.Info{}, err
	}
	defer f.Close() //nolint:errcheck // a read-only handle
	info, err := f.Stat()
	if err != nil {
		return storage.Info{}, wrap("copy", srcKey, err)
	}
	// Costs nothing for a committed object, and makes any other read-only file durable.
	if err := f.Sync(); err != nil {
		return storage.Info{}, wrap("copy", srcKey, err)
	}
	err = s.publish(dstKey, func(folder *os.File, base string) error { return linkOpen(f, folder, base) })
	if cannotLink(err) {
		return storage.Info{}, fmt.Errorf("link %q: %w: %w", dstKey, errors.ErrUnsupported, err)
	}
	if err != nil {
		return storage.Info{}, wrap("copy", dstKey, err)
	}
	return newInfo(dstKey, info), nil
}

// linkable opens the object srcKey of src, which can be linked to dstKey. It returns
// errors.ErrUnsupported if it must be copied.
func (s *Store) linkable(ctx context.Context, dstKey string, src storage.Store, srcKey string) (*os.File, error) {
	from, ok := src.(*Store)
	if !ok || !s.unnamed {
		return nil, fmt.Errorf("link %q: %w", dstKey, errors.ErrUnsupported)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("copy %q: %w", dstKey, err)
	}
	if err := s.check(dstKey); err != nil {
		return nil, fmt.Errorf("copy: %w", err)
	}
	f, info, err := from.open("copy", srcKey)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o222 != 0 {
		// This file was put here by hand and may still be written to.
		return nil, errors.Join(fmt.Errorf("link %q: writable: %w", srcKey, errors.ErrUnsupported), f.Close())
	}
	// The lock holds until the file is closed, after it was linked or not: of two that would link it
	// at the same time, one copies it.
	if err := tryLock(f); err != nil {
		return nil, errors.Join(fmt.Errorf("link %q: %w: %w", srcKey, errors.ErrUnsupported, err), f.Close())
	}
	if info, err = f.Stat(); err != nil {
		return nil, errors.Join(wrap("copy", srcKey, err), f.Close())
	}
	if names(info) > 1 {
		if _, err := s.lstat(dstKey); err != nil { // if dstKey exists, publish returns the error below without reading anything
			return nil, errors.Join(fmt.Errorf("link %q: it has another name: %w", srcKey, errors.ErrUnsupported), f.Close())
		}
	}
	return f, nil
}

// Links implements storage.Linker.
func (s *Store) Links() bool { return s.unnamed }
