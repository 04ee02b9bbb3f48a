package identity

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
)

// unstorable says that a storage cannot keep an object under its identifier. It is a content fault
// where the deposit gave that.
type unstorable struct {
	ark, storage string
	supplied     bool
	why          error
}

// ContentFault marks the deposit as at fault.
func (e *unstorable) ContentFault() bool { return e.supplied }

// ErrorCode says so in one word, which failures are grouped by.
func (e *unstorable) ErrorCode() string { return "name-taken" }

// Error names the identifier and what is in its way.
func (e *unstorable) Error() string {
	return fmt.Sprintf("storage %q cannot keep %s: %v; nothing was written: give the object another ARK, or have one minted", e.storage, e.ark, e.why)
}

// Unwrap returns what is in its way.
func (e *unstorable) Unwrap() error { return e.why }

// ahead says that a storage has a later version of an object than the Registry.
type ahead struct {
	ark, storage string
	head         int
	why          error
}

// ErrorCode says so in one word, which failures are grouped by.
func (e *ahead) ErrorCode() string { return "storage-ahead" }

// Error says what is where.
func (e *ahead) Error() string {
	return fmt.Sprintf("storage %q has a later version of %s than the Registry, which knows %d (%v); nothing was written", e.storage, e.ark, e.head, e.why)
}

// Unwrap returns what was found there.
func (e *ahead) Unwrap() error { return e.why }

// Remedy says what to do.
func (e *ahead) Remedy() string {
	return "find out what wrote that version: a Registry of which this one is an older copy, or another program; bring the Registry up to it, or take the version out of the storage"
}

// admit refuses an object that a storage of the item's could not be given, before anything is
// announced: what was announced could not be carried out, and would keep the object from all
// others. head is the object's recorded version, below 0 before that is known.
func (w *Namer) admit(ctx context.Context, item *base.Item, ark string, head int, supplied bool) error {
	for i, name := range item.Storages {
		root, err := w.Objects.Of(name)
		if err != nil {
			return err
		}
		err = root.Admit(ctx, ark, head)
		path := (*ocfl.PathError)(nil)
		switch {
		case err == nil:
		case errors.Is(err, ocfl.ErrIDTaken), errors.As(err, &path):
			return base.Fatal(&unstorable{ark: ark, storage: name, supplied: supplied, why: err})
		case errors.Is(err, ocfl.ErrVersionExists):
			return base.Fatal(&ahead{ark: ark, storage: name, head: head, why: err})
		case i == 0 || ctx.Err() != nil:
			return fmt.Errorf("look at %s in storage %q: %w", ark, name, err)
		default:
			// A storage for copies is away: the object gets its first copy now, and the others when
			// their storages are back.
		}
	}
	return nil
}

// Folders returns the locks of the folders that an object has in the item's storages, where other
// objects could have the same. Without them two objects could be announced for one folder, and only
// one of them be stored.
func Folders(objects ocfl.Roots, item *base.Item, ark string) (keys []string) {
	for _, name := range item.Storages {
		root, err := objects.Of(name)
		if err != nil {
			continue // which admit says
		}
		if folder, shared := root.SharedFolder(ark); shared {
			keys = append(keys, "folder:"+name+":"+folder)
		}
	}
	return keys
}

// settled is what identify ends with: the object's name, with the locks of its folders.
func (w *Namer) settled(ctx context.Context, item *base.Item, ask registry.IdentifyRequest, id registry.Identity) (registry.Identity, error) {
	if ask.Folders = Folders(w.Objects, item, id.ARK); len(ask.Folders) > 0 {
		ask.Refused = ""
		var err error
		if id, err = w.Registry.Identify(ctx, item.Lease(), ask); err != nil {
			return id, err
		}
	}
	return id, w.admit(ctx, item, id.ARK, id.Head, !id.Minted)
}
