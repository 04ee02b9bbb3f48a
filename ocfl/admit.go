package ocfl

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/storage"
)

// SharedFolder returns the folder of the object id in the store, and whether the layout may map
// other identifiers to the same folder. If so, the caller must make sure that nobody writes another
// object there at the same time.
func (r *Root) SharedFolder(id string) (folder string, shared bool) {
	folder, err := r.ObjectKey(id)
	return folder, err == nil && r.layout.shares()
}

// Admit checks whether the version after head of the object id can be committed here. It writes
// nothing. It returns a *PathError if the layout has no folder for the object, ErrIDTaken if its
// folder holds another object, and ErrVersionExists if a later version than head is here. Versions
// up to head may be missing. A negative head skips the last check.
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
	// The root inventory may be out of date.
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
