package ocfl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

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

// exists says whether the version is committed with this inventory; with another one it is
// ErrVersionExists.
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

// finish makes everything that follows from the version's inventory: its sidecar, and the inventory
// and sidecar in the object's root, unless a later version is committed. It says whether it changed
// anything.
func (p published) finish(ctx context.Context) (changed bool, err error) {
	sidecar := "/" + inventoryName + "." + p.algorithm
	changed, err = p.ensure(ctx, p.base+"/"+p.version+sidecar, sidecarText(p.digest))
	if err != nil {
		return changed, fmt.Errorf("write sidecar: %w", err)
	}
	// A worker that was thought dead and wakes up here must not take the root back to its own
	// version.
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

// Heal makes the object's root show version head, which must be committed, and says whether it did
// not before. The head is the one that the Registry knows (R2); a later version that is committed
// but not known there stays what the root shows. ErrNotFound says that the version is not
// committed.
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

// trusted compares the version's inventory with its sidecar, where there is one, so that a damaged
// inventory is not spread by healing.
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

// ForeignError says that files lie in a version's folder that the version does not have. Nobody but
// their owner may remove them.
type ForeignError struct {
	Folder string   // of the version, in the store
	Files  []string // below it; the first twenty
}

// Error names them.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s holds files that are not of the planned version: %s", e.Folder, strings.Join(e.Files, ", "))
}

// ErrComplete says that a version is committed, with all its files.
var ErrComplete = errors.New("the version is complete")

// Shows says whether version n of the object id is committed here with an inventory of this digest,
// and has all its files.
func (r *Root) Shows(ctx context.Context, id string, n int, algorithm, digest string) (bool, error) {
	p, err := r.versionOf(ctx, id, n)
	if err != nil {
		return false, fmt.Errorf("look for version %d of %q: %w", n, id, err)
	}
	p.algorithm, p.digest = algorithm, strings.ToLower(digest)
	return p.shows(ctx)
}

func (p published) shows(ctx context.Context) (bool, error) {
	is, err := p.exists(ctx)
	if errors.Is(err, ErrVersionExists) {
		return false, nil // another one
	} else if !is || err != nil {
		return false, err
	}
	in, err := p.root.store.Open(ctx, p.inventoryKey(), 0, -1)
	if err != nil {
		return false, err
	}
	defer in.Close()
	inv, err := ReadInventory(in, p.inventoryKey())
	if err != nil {
		return false, err
	}
	for _, f := range inv.ContentFiles() {
		_, err := p.root.store.Stat(ctx, p.base+"/"+f.Path)
		if errors.Is(err, storage.ErrNotFound) {
			return false, nil // it was written when its files had been removed
		} else if err != nil {
			return false, err
		}
	}
	return true, nil
}

// Abandon removes what Commit has written of version n of the object id, which was announced with
// an inventory of this digest; when Shows is true of it, that is ErrComplete, and nothing is
// removed. Only files are removed that planned names, and that have the bytes it says; nil: what
// was planned is not known. Other files are foreign, any inventory among them: a *ForeignError, and
// nothing is removed. Another error says also that something was written meanwhile, which is left
// as it is. The caller holds the object's lock. It may be repeated at any point.
func (r *Root) Abandon(ctx context.Context, id string, n int, algorithm, digest string, planned *Inventory) error {
	p, err := r.versionOf(ctx, id, n)
	if err == nil {
		p.algorithm, p.digest = algorithm, strings.ToLower(digest)
		err = p.abandon(ctx, planned)
	}
	if err != nil {
		return fmt.Errorf("abandon version %d of %q: %w", n, id, err)
	}
	return nil
}

// versionOf is the place of a version that is not committed, or is; ErrIDTaken when the folder is
// another object's.
func (r *Root) versionOf(ctx context.Context, id string, n int) (p published, err error) {
	base, err := r.ObjectKey(id)
	if err != nil {
		return p, err
	}
	object, err := r.header(ctx, base)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return p, err
	}
	if err == nil && object.ID != id {
		return p, fmt.Errorf("%w: %q", ErrIDTaken, object.ID)
	}
	return published{root: r, base: base, version: versionName(n, object.padding)}, nil
}

func (p published) abandon(ctx context.Context, planned *Inventory) error {
	folder := p.base + "/" + p.version
	if is, err := p.shows(ctx); err != nil {
		return err
	} else if is {
		return ErrComplete
	}
	digests := map[string]string{}
	if planned != nil {
		p.algorithm = planned.Algorithm
		for _, f := range planned.ContentFiles() {
			digests[p.base+"/"+f.Path] = f.Digest
		}
	}
	var ours []string
	foreign := &ForeignError{Folder: folder}
	for info, err := range p.root.store.List(ctx, folder+"/") {
		if err != nil {
			return err
		}
		want, ok := digests[info.Key]
		if ok {
			got, err := p.digestOf(ctx, info.Key)
			if err != nil {
				return err
			}
			ok = strings.EqualFold(got, want)
		}
		if ok {
			ours = append(ours, info.Key)
		} else {
			foreign.add(info.Key)
		}
	}
	if len(foreign.Files) > 0 {
		return foreign
	}
	for _, key := range ours {
		if err := p.root.store.Delete(ctx, key); err != nil {
			return err
		}
	}
	if err := p.root.store.DeleteUnfinished(ctx, folder); err != nil {
		return err
	}
	// A worker that was thought dead may have gone on meanwhile, or another program have come: that
	// is looked at anew.
	for info, err := range p.root.store.List(ctx, folder+"/") {
		if err != nil {
			return err
		}
		return fmt.Errorf("%q was written while the version was removed", info.Key)
	}
	return p.undeclare(ctx)
}

// undeclare removes the declaration of an object that has nothing else.
func (p published) undeclare(ctx context.Context) error {
	name, content := declaration(Spec11) // as all that we make
	for info, err := range p.root.store.List(ctx, p.base+"/") {
		if err != nil {
			return err
		}
		if info.Key != p.base+"/"+name {
			return nil
		}
	}
	have, err := storage.ReadAll(ctx, p.root.store, p.base+"/"+name, maxSmall)
	if errors.Is(err, storage.ErrNotFound) || err == nil && !bytes.Equal(have, content) {
		return nil
	} else if err != nil {
		return err
	}
	return p.root.store.Delete(ctx, p.base+"/"+name)
}

// add notes one more foreign file.
func (e *ForeignError) add(key string) {
	const most = 20
	if len(e.Files) < most {
		e.Files = append(e.Files, strings.TrimPrefix(key, e.Folder+"/"))
	}
}

// Remove deletes the object id with all its versions; it is no error when there is none. The root
// inventory goes first, so that a removal that was cut off shows no object; calling it again goes
// on.
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
