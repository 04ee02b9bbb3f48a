package dir

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/holdfast/holdfast/storage"
)

// CopyFrom implements storage.Copier. From another directory of the same file system the object is
// linked, which is safe because committed objects never change; from anywhere else it is not
// supported. It is linked once only: what has a second name already is copied, so that no two
// objects of a store are one file, which one bad sector would take (and which OCFL forbids, E090).
func (s *Store) CopyFrom(ctx context.Context, dstKey string, src storage.Store, srcKey string) (storage.Info, error) {
	from, ok := src.(*Store)
	if !ok || !s.unnamed {
		return storage.Info{}, fmt.Errorf("link %q: %w", dstKey, errors.ErrUnsupported)
	}
	if err := ctx.Err(); err != nil {
		return storage.Info{}, fmt.Errorf("copy %q: %w", dstKey, err)
	}
	if err := s.check(dstKey); err != nil {
		return storage.Info{}, fmt.Errorf("copy: %w", err)
	}
	f, info, err := from.open("copy", srcKey)
	if err != nil {
		return storage.Info{}, err
	}
	defer f.Close() //nolint:errcheck // a read-only handle
	if info.Mode().Perm()&0o222 != 0 {
		// Somebody put this file here by hand and may still write to it.
		return storage.Info{}, fmt.Errorf("link %q: writable: %w", srcKey, errors.ErrUnsupported)
	}
	if names(info) > 1 {
		if _, err := s.root.Lstat(dstKey); err != nil { // one that is there is told of below, without reading anything
			return storage.Info{}, fmt.Errorf("link %q: it has another name: %w", srcKey, errors.ErrUnsupported)
		}
	}
	// Costs nothing for a committed object, and makes a read-only file of any other origin as
	// durable as one.
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

// Links implements storage.Linker.
func (s *Store) Links() bool { return s.unnamed }
