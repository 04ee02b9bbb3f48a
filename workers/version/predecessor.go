package version

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
)

// firstStorage returns the storage that an item's version is written to first.
func (w *Maker) firstStorage(item *base.Item) (ocfl.Named, error) {
	return w.Objects.Of(item.Storages[0])
}

// ensurePredecessors copies the earlier versions to the first storage if they are missing there:
// the collection's first storage may have changed. It copies exactly the recorded bytes from a
// storage that has them, so this needs no announcement.
func (w *Maker) ensurePredecessors(ctx context.Context, home ocfl.Named, id registry.Identity) error {
	here, err := home.Head(ctx, id.Stored())
	if err == nil && here.Head >= id.Head {
		return nil
	} else if err != nil && !errors.Is(err, ocfl.ErrNotFound) {
		return err
	}
	var errs []error
	for _, other := range w.Objects {
		if other.Name == home.Name {
			continue
		}
		there, err := other.Head(ctx, id.Stored())
		switch {
		case err == nil && there.Head >= id.Head:
			return home.Replicate(ctx, other.Root, id.Stored(), id.Head, nil)
		case err != nil && !errors.Is(err, ocfl.ErrNotFound):
			errs = append(errs, fmt.Errorf("storage %q: %w", other.Name, err))
		}
	}
	return fmt.Errorf("version %d of %s is in none of the storages %s: %w",
		id.Head, id.ARK, strings.Join(w.Objects.Names(), ", "), errors.Join(append(errs, ocfl.ErrNotFound)...))
}
