package ocfl

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"

	"github.com/holdfast/holdfast/storage"
)

// ErrLeft is returned when files of a removed object still exist or were written again.
var ErrLeft = errors.New("files of the removed object remain")

// tombstones is the folder of the storage root with one file for each deleted object.
const tombstones = extensionsFolder + "/holdfast-tombstones"

// maxTombstone bounds the tombstones that are read, in bytes: a signed line of at most 1 MiB, and its
// signature.
const maxTombstone = 1<<20 + 1<<12

// TombstoneKey returns the key of an object's tombstone in the store: the SHA-256 of its id,
// because an id may contain any characters.
func (r *Root) TombstoneKey(id string) string {
	sum := sha256.Sum256([]byte(id))
	return r.prefix + tombstones + "/" + hex.EncodeToString(sum[:]) + ".json"
}

// Bury deletes the object id with all its versions and leaves the tombstone under another name of the
// object, which is id but for an object of others. Calls for the same object must pass the same bytes;
// otherwise Bury returns ErrLayout. It returns ErrLeft if files were written after the removal. It may be
// repeated at any point.
//
// Bury writes the tombstone first. Whoever rebuilds a Registry from the root then knows that the
// remaining files are to be deleted, and does not take them for a damaged object. Then it removes
// the root inventory, so that no validator takes the folder for a complete object, then everything
// else.
func (r *Root) Bury(ctx context.Context, id, name string, tombstone []byte) error {
	if err := putSame(ctx, r.store, r.TombstoneKey(name), tombstone); err != nil {
		return fmt.Errorf("write tombstone of %q: %w", id, err)
	}
	folder, err := r.remove(ctx, id)
	if err != nil || folder == "" {
		return err
	}
	for info, err := range r.store.List(ctx, folder+"/") {
		if err != nil {
			return fmt.Errorf("bury %q: %w", id, err)
		}
		return fmt.Errorf("bury %q: %w: %s", id, ErrLeft, info.Key)
	}
	return nil
}

// Tombstone returns the tombstone of an object, or storage.ErrNotFound.
func (r *Root) Tombstone(ctx context.Context, id string) ([]byte, error) {
	return storage.ReadAll(ctx, r.store, r.TombstoneKey(id), maxTombstone)
}

// Tombstones yields the tombstones of the root, in no order that means anything. With an error of
// one tombstone it goes on with the next.
func (r *Root) Tombstones(ctx context.Context) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for info, err := range r.store.List(ctx, r.prefix+tombstones+"/") {
			if err != nil {
				yield(nil, fmt.Errorf("list tombstones: %w", err))
				return
			}
			text, err := storage.ReadAll(ctx, r.store, info.Key, maxTombstone)
			if err != nil {
				err = fmt.Errorf("read tombstone %q: %w", info.Key, err)
			}
			if !yield(text, err) {
				return
			}
		}
	}
}
