package ocfl

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/storage"
)

// ErrLeft says that files of a removed object are there still, or again.
var ErrLeft = errors.New("files of the object are left")

// tombstones is the folder of the storage root with a file for every object that was deleted on
// purpose.
const tombstones = extensionsFolder + "/holdfast-tombstones"

// TombstoneKey is where the tombstone of an object lies in the store: under the SHA-256 of its id,
// whatever that is spelt with.
func (r *Root) TombstoneKey(id string) string {
	sum := sha256.Sum256([]byte(id))
	return r.prefix + tombstones + "/" + hex.EncodeToString(sum[:]) + ".json"
}

// Bury deletes the object id with all its versions and leaves the tombstone, which must be the same
// bytes in every call for one object: ErrLayout says that another one is there, ErrLeft that
// something was written after the removal. It may be repeated at any point.
//
// The tombstone comes first: from then on whoever reads the root alone, to make a Registry anew,
// knows that what may still lie in the object's folder is to be deleted, and never an object that
// lost files. Then the root inventory goes, without which no validator takes the folder for an
// object that is whole, then everything else.
func (r *Root) Bury(ctx context.Context, id string, tombstone []byte) error {
	if err := putSame(ctx, r.store, r.TombstoneKey(id), tombstone); err != nil {
		return fmt.Errorf("write tombstone of %q: %w", id, err)
	}
	if err := r.Remove(ctx, id); err != nil {
		return err
	}
	base, err := r.ObjectKey(id)
	if err != nil {
		return fmt.Errorf("bury %q: %w", id, err)
	}
	for info, err := range r.store.List(ctx, base+"/") {
		if err != nil {
			return fmt.Errorf("bury %q: %w", id, err)
		}
		return fmt.Errorf("bury %q: %w: %s", id, ErrLeft, info.Key)
	}
	return nil
}

// Tombstone reads the tombstone of an object; storage.ErrNotFound when there is none.
func (r *Root) Tombstone(ctx context.Context, id string) ([]byte, error) {
	return storage.ReadAll(ctx, r.store, r.TombstoneKey(id), maxSmall)
}
