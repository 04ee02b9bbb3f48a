// Package identity determines the names of objects.
//
// A deposit supplies an ARK, or local identifiers that lead to one, or gets one minted. A name
// belongs to an object from the moment the Registry has it, so that a kill never mints twice (R8).
// Namer.Identify refuses a name under which a storage could not store the object, before anything
// is announced. Names reserves, publishes and withdraws names at EZID, for collections that use it;
// while EZID does not answer, items wait uncounted. The package does not know what the versions of
// an object contain.
package identity

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/ezid"
	"github.com/holdfast/holdfast/noid"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
)

// Namer determines the names of objects. Its methods may be called concurrently.
type Namer struct {
	Registry interface {
		registry.Preserving
		Object(ctx context.Context, id string) (registry.Object, error)
	}
	Objects  ocfl.Roots
	Template noid.Template // for collections without their own
	Names    Names
	Random   io.Reader // for minting

	minting sync.Mutex // guards Random
}

// Identify determines the object's name: the supplied one, or the one that its local identifiers
// lead to, or a minted one. A minted name belongs to the item from the moment the Registry has it,
// so that a kill never mints twice (R8). For a collection that uses EZID, it reserves the name
// there.
func (w *Namer) Identify(ctx context.Context, item *base.Item, supplied string, localIDs []string) (registry.Identity, error) {
	spec := item.Spec()
	if spec.Mode == registry.Update && supplied == "" && len(localIDs) == 0 {
		return registry.Identity{}, base.Content(registry.ErrUpdatesNothing)
	}
	ask := registry.IdentifyRequest{
		Owner: spec.Profile.Owner, Supplied: supplied, LocalIDs: localIDs,
		Existing: spec.Mode == registry.Update, EZID: spec.Profile.Minting == registry.MintEZID,
	}
	if ask.Supplied != "" {
		// Before the name is bound to anything.
		err := w.admit(ctx, item, registry.Identity{ARK: ask.Supplied, Head: -1}, true)
		if err != nil {
			// An adopted object has another place.
			o, unknown := w.Registry.Object(ctx, ask.Supplied)
			if unknown != nil || o.OCFLID == "" {
				return registry.Identity{}, err
			}
		}
	}
	const tries = 10
	for range tries {
		var err error
		if ask.Proposed, err = w.mint(item); err != nil {
			return registry.Identity{}, err
		}
		id, err := w.Registry.Identify(ctx, item.Lease(), ask)
		if errors.Is(err, registry.ErrTaken) {
			continue
		} else if err != nil {
			return id, err
		}
		if id, err = w.finish(ctx, item, ask, id); err != nil || id.EZIDItem == "" || id.Head > 0 {
			return id, err
		}
		// Reserve the name before the version is planned, so that nothing is written under a name
		// that EZID refuses.
		err = w.Names.reserve(ctx, item, id)
		if !ezid.Taken.Is(err) {
			return id, err
		}
		ask.Refused = id.ARK
	}
	return registry.Identity{}, fmt.Errorf("minted %d names that were all taken; give the collection a longer NOID template", tries)
}

func (w *Namer) mint(item *base.Item) (string, error) {
	t, err := w.Template.Of(item.Spec().Profile.NOIDTemplate)
	if err != nil {
		return "", base.Fatal(fmt.Errorf("collection's NOID template: %w", err))
	}
	w.minting.Lock()
	defer w.minting.Unlock()
	ark, err := t.Mint(w.Random)
	if err != nil {
		return "", fmt.Errorf("mint: %w", err)
	}
	return ark.String(), nil
}
