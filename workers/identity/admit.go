package identity

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
)

// unstorableError says that a storage cannot store an object under its identifier. It is a content
// fault if the deposit supplied that identifier.
type unstorableError struct {
	ark, storage string
	supplied     bool
	why          error
}

// ContentFault blames the deposit.
func (e *unstorableError) ContentFault() bool { return e.supplied }

// ErrorCode returns the code by which failures are grouped.
func (e *unstorableError) ErrorCode() string { return "name-taken" }

// Error names the identifier and the obstacle.
func (e *unstorableError) Error() string {
	return fmt.Sprintf("storage %q cannot store %s: %v; nothing was written: give the object another ARK, or have one minted", e.storage, e.ark, e.why)
}

// Unwrap returns the obstacle.
func (e *unstorableError) Unwrap() error { return e.why }

// aheadError says that a storage has a later version of an object than the Registry.
type aheadError struct {
	ark, storage string
	head         int
	why          error
}

// ErrorCode returns the code by which failures are grouped.
func (e *aheadError) ErrorCode() string { return "storage-ahead" }

// Error names the storage and both versions.
func (e *aheadError) Error() string {
	return fmt.Sprintf("storage %q has a later version of %s than the Registry, which knows %d (%v); nothing was written", e.storage, e.ark, e.head, e.why)
}

// Unwrap returns the storage's error.
func (e *aheadError) Unwrap() error { return e.why }

// Remedy says what to do.
func (e *aheadError) Remedy() string {
	return "find out what wrote that version: another program, or a Registry of which this one is an older copy; then update the Registry, or remove the version from the storage"
}

// admit refuses an object that one of the item's storages could not store, before anything is
// announced: such an announcement could not be carried out, and would block the object. A head below 0
// is not known yet.
func (w *Namer) admit(ctx context.Context, item *base.Item, id registry.Identity, supplied bool) error {
	for i, name := range item.Storages {
		root, err := w.Objects.Of(name)
		if err != nil {
			return err
		}
		err = root.Admit(ctx, id.Stored(), id.Head)
		path := (*ocfl.PathError)(nil)
		switch {
		case err == nil:
		case errors.Is(err, ocfl.ErrIDTaken), errors.As(err, &path):
			return base.Fatal(&unstorableError{ark: id.ARK, storage: name, supplied: supplied, why: err})
		case errors.Is(err, ocfl.ErrVersionExists):
			return base.Fatal(&aheadError{ark: id.ARK, storage: name, head: id.Head, why: err})
		case i == 0 || ctx.Err() != nil:
			return fmt.Errorf("check %s in storage %q: %w", id.ARK, name, err)
		default:
			// A storage for copies is unavailable: the object gets its first copy now, and the
			// others when their storages are back.
		}
	}
	return nil
}

// Folders returns the locks of the folders that an object has in some storages by its identifier there, for
// folders that another object could share. Without these locks, two objects could be announced for one
// folder, and only one of them stored, or one be stored while the other one is deleted.
func Folders(objects ocfl.Roots, names []string, stored string) (keys []string) {
	for _, name := range names {
		root, err := objects.Of(name)
		if err != nil {
			continue // admit reports that
		}
		if folder, shared := root.SharedFolder(stored); shared {
			keys = append(keys, "folder:"+name+":"+folder)
		}
	}
	return keys
}

// finish locks the object's folders and admits the object, and returns its identity.
func (w *Namer) finish(ctx context.Context, item *base.Item, ask registry.IdentifyRequest, id registry.Identity) (registry.Identity, error) {
	if ask.Folders = Folders(w.Objects, item.Storages, id.Stored()); len(ask.Folders) > 0 {
		ask.Refused = ""
		var err error
		if id, err = w.Registry.Identify(ctx, item.Lease(), ask); err != nil {
			return id, err
		}
	}
	return id, w.admit(ctx, item, id, !id.Minted)
}
