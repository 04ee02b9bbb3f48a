package ocfl

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/storage"
)

// published is a version at its commit point, or beyond.
type published struct {
	root      *Root
	base      string // folder of the object
	version   string // name of the version's folder
	next      string // name of the folder of the version after it
	algorithm string
	digest    string // of the inventory
	look      bool   // only look: nothing is written, and what would be is said to be changed
}

// inventoryKey is the object whose existence is the version's.
func (p published) inventoryKey() string { return p.base + "/" + p.version + "/" + inventoryName }

// exists says whether the version is committed with this inventory; with another one it is ErrVersionExists.
func (p published) exists(ctx context.Context) (bool, error) {
	got, err := p.digestOf(ctx, p.inventoryKey())
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return false, nil
	case err != nil:
		return false, err
	case got != p.digest:
		return false, fmt.Errorf("%w: %q has another inventory", ErrVersionExists, p.inventoryKey())
	}
	return true, nil
}

// digestOf reads an inventory.
func (p published) digestOf(ctx context.Context, key string) (string, error) {
	h := newHash(p.algorithm)
	if h == nil {
		return "", &InventoryError{Key: key}
	}
	_, err := hashObject(ctx, p.root.store, key, h, make([]byte, 64<<10))
	return hexSum(h), err
}

// finish makes everything that follows from the version's inventory: its sidecar, and the inventory and sidecar in the
// object's root, unless a later version is committed. It says whether it changed anything.
func (p published) finish(ctx context.Context) (changed bool, err error) {
	sidecar := "/" + inventoryName + "." + p.algorithm
	changed, err = p.ensure(ctx, p.base+"/"+p.version+sidecar, sidecarText(p.digest))
	if err != nil {
		return changed, fmt.Errorf("write sidecar: %w", err)
	}
	// A worker that was thought dead and wakes up here must not take the root back to its own version.
	if last, err := p.last(ctx); !last {
		return changed, err
	}
	rootKey := p.base + "/" + inventoryName
	have, err := p.digestOf(ctx, rootKey)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return changed, err
	}
	if err != nil || have != p.digest {
		if p.look {
			return true, nil
		}
		if err := storage.ReplaceFrom(ctx, p.root.store, rootKey, p.inventoryKey()); err != nil {
			return changed, fmt.Errorf("write root inventory: %w", err)
		}
		changed = true
	}
	replaced, err := p.ensure(ctx, p.base+sidecar, sidecarText(p.digest))
	if err != nil {
		return changed, fmt.Errorf("write root sidecar: %w", err)
	}
	return changed || replaced, nil
}

// last says whether no later version is committed.
func (p published) last(ctx context.Context) (bool, error) {
	_, err := p.root.store.Stat(ctx, p.base+"/"+p.next+"/"+inventoryName)
	if errors.Is(err, storage.ErrNotFound) {
		return true, nil
	}
	return false, err
}

// ensure makes want what is at key, and says whether it was not.
func (p published) ensure(ctx context.Context, key string, want []byte) (bool, error) {
	have, err := storage.ReadAll(ctx, p.root.store, key, maxSmall)
	if err == nil && bytes.Equal(have, want) {
		return false, nil
	}
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return false, err
	}
	if p.look {
		return true, nil
	}
	return true, p.root.store.Replace(ctx, key, want)
}

// Heal makes the object's root show version head, which must be committed, and says whether it did not before. The head
// is the one that the Registry knows (R2); a later version that is committed but not known there stays what the root shows.
// ErrNotFound says that the version is not committed.
func (r *Root) Heal(ctx context.Context, id string, head int) (bool, error) {
	base, err := r.ObjectKey(id)
	if err != nil {
		return false, fmt.Errorf("heal %q: %w", id, err)
	}
	padding := 0
	if object, err := r.header(ctx, base); err == nil {
		// A damaged one is what is to be healed; only foreign objects are padded.
		padding = object.padding
	}
	p := published{root: r, base: base, version: versionName(head, padding), next: versionName(head+1, padding)}
	object, err := r.readHeader(ctx, base, p.inventoryKey())
	if err != nil {
		return false, fmt.Errorf("heal %q: %w", id, err)
	}
	if object.ID != id || object.Head != head {
		return false, fmt.Errorf("heal %q: %w: %q is version %d of %q", id, ErrIDTaken, p.inventoryKey(), object.Head, object.ID)
	}
	p.algorithm = object.Algorithm
	if p.digest, err = p.digestOf(ctx, p.inventoryKey()); err != nil {
		return false, fmt.Errorf("heal %q: %w", id, err)
	}
	if err := p.trusted(ctx); err != nil {
		return false, fmt.Errorf("heal %q: %w", id, err)
	}
	changed, err := p.finish(ctx)
	if err != nil {
		return changed, fmt.Errorf("heal %q: %w", id, err)
	}
	return changed, nil
}

// trusted compares the version's inventory with its sidecar, where there is one, so that a damaged inventory is not
// spread by healing.
func (p published) trusted(ctx context.Context) error {
	key := p.inventoryKey()
	sidecar, err := storage.ReadAll(ctx, p.root.store, key+"."+p.algorithm, maxSmall)
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if want, ok := parseSidecar(string(sidecar)); ok && want != p.digest {
		return &DigestError{Key: key, Algorithm: p.algorithm, Want: want, Got: p.digest, Existing: true}
	}
	return nil
}

// Sweep removes what an abandoned Commit left of version n, which must not be committed: ErrVersionExists. The caller
// holds the object's lock and knows that nobody is going to complete the version (R2).
func (r *Root) Sweep(ctx context.Context, id string, n int) error {
	base, err := r.ObjectKey(id)
	if err != nil {
		return fmt.Errorf("sweep %q: %w", id, err)
	}
	object, err := r.header(ctx, base)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("sweep %q: %w", id, err)
	}
	if err == nil && object.ID != id {
		return fmt.Errorf("sweep %q: %w: %q", id, ErrIDTaken, object.ID)
	}
	folder := base + "/" + versionName(n, object.padding)
	_, errStat := r.store.Stat(ctx, folder+"/"+inventoryName)
	if errStat == nil || object.Head >= n {
		return fmt.Errorf("sweep %q: %w: %d", id, ErrVersionExists, n)
	}
	if !errors.Is(errStat, storage.ErrNotFound) {
		return fmt.Errorf("sweep %q: %w", id, errStat)
	}
	if object.Head == 0 && n == 1 {
		folder = base
	}
	if err := r.store.DeletePrefix(ctx, folder); err != nil {
		return fmt.Errorf("sweep %q: %w", id, err)
	}
	return nil
}

// Remove deletes the object id with all its versions; it is no error when there is none. The root inventory goes first,
// so that a removal that was cut off shows no object; calling it again goes on.
func (r *Root) Remove(ctx context.Context, id string) error {
	object, err := r.Head(ctx, id)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("remove %q: %w", id, err)
	}
	base, errKey := r.ObjectKey(id)
	if errKey != nil {
		return fmt.Errorf("remove %q: %w", id, errKey)
	}
	if err == nil {
		if err := r.store.Delete(ctx, object.Key+"/"+inventoryName); err != nil {
			return fmt.Errorf("remove %q: %w", id, err)
		}
	}
	if err := r.store.DeletePrefix(ctx, base); err != nil {
		return fmt.Errorf("remove %q: %w", id, err)
	}
	return nil
}
