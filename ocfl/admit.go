package ocfl

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/storage"
)

// SharedFolder returns the folder of the object id in the store, if the layout may map other
// identifiers to it, too. Whoever writes to it must see to it that nobody writes another object
// there at the same time.
func (r *Root) SharedFolder(id string) (folder string, shared bool) {
	folder, err := r.ObjectKey(id)
	return folder, err == nil && r.layout.shares()
}

// Admit says, without writing anything, whether the version after head of the object id can be
// committed here, as far as it depends on what is here: a *PathError when the layout has no folder
// for it, ErrIDTaken when its folder is another object's, and ErrVersionExists when a later version
// than head is here. That the versions up to head are missing is no reason against it. A head below
// 0 is any.
func (r *Root) Admit(ctx context.Context, id string, head int) error {
	base, err := r.ObjectKey(id)
	if err != nil {
		return err
	}
	object, err := r.header(ctx, base)
	switch {
	case errors.Is(err, ErrNotFound):
		object = Object{ID: id}
	case err != nil:
		return err
	case object.ID != id:
		return fmt.Errorf("%w: %q holds %q", ErrIDTaken, base, object.ID)
	}
	if head < 0 {
		return nil
	}
	if object.Head > head {
		return fmt.Errorf("%w: %q is at version %d", ErrVersionExists, base, object.Head)
	}
	// The root's inventory may lag behind.
	next := versionName(head+1, object.padding)
	_, err = r.store.Stat(ctx, base+"/"+next+"/"+inventoryName)
	if err == nil {
		return fmt.Errorf("%w: %q has %s", ErrVersionExists, base, next)
	}
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	return err
}
