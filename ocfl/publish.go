package ocfl

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/storage"
)

// published is a version at or beyond its commit point.
type published struct {
	root      *Root
	base      string // folder of the object
	version   string // name of the version's folder
	next      string // name of the folder of the version after it
	algorithm string
	digest    string // of the version's inventory
	look      bool   // write nothing, and report what would be changed
	older     bool   // a later version is committed, whatever the storage shows
}

// inventoryKey returns the key whose existence makes the version exist.
func (p published) inventoryKey() string { return p.base + "/" + p.version + "/" + inventoryName }

// sidecarKey returns the key of the sidecar of the version's inventory.
func (p published) sidecarKey() string { return p.inventoryKey() + "." + p.algorithm }

// rootKey returns the key of the inventory in the object's root.
func (p published) rootKey() string { return p.base + "/" + inventoryName }

// exists reports whether the version is committed with this inventory. It returns ErrVersionExists
// if it has another one.
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

// digestOf returns the digest of a stored file.
func (p published) digestOf(ctx context.Context, key string) (string, error) {
	h := newHash(p.algorithm)
	if h == nil {
		return "", &InventoryError{Key: key}
	}
	_, err := hashObject(ctx, p.root.store, key, h)
	return hexSum(h), err
}

// finish writes what is derived from the version's inventory: its sidecar, and, unless a later
// version is committed, the inventory and sidecar in the object's root. It reports whether it
// changed anything.
func (p published) finish(ctx context.Context) (changed bool, err error) {
	b := storage.NewBatch(p.root.store)
	defer b.Close() //nolint:errcheck // it drops what was not published
	if err := p.rely(ctx, b, p.inventoryKey()); err != nil {
		return false, err
	}
	if changed, err = p.ensureSidecar(ctx, b, p.sidecarKey()); err != nil {
		return changed, fmt.Errorf("write sidecar: %w", err)
	}
	// A worker that lost its lease and continues here must not set the root back to its version.
	last, err := p.last(ctx)
	if err != nil {
		return changed, err
	}
	if !last {
		_, err = b.Publish(ctx)
		return changed, err
	}
	root, err := p.finishRoot(ctx, b)
	if err != nil {
		return changed, err
	}
	_, err = p.publishRoot(ctx, b)
	return changed || root, err
}

// publishRoot publishes a batch that sets the object's root to this version. If later versions were
// committed meanwhile, because this process stood still for long, it sets the root to the last one.
func (p published) publishRoot(ctx context.Context, b storage.Batch) (taken []string, err error) {
	if taken, err = b.Publish(ctx); err != nil || len(taken) > 0 {
		return taken, err
	}
	later, err := p.newest(ctx)
	if err != nil || later == p {
		return nil, err
	}
	later.digest, later.algorithm, err = p.root.sealOf(ctx, p.base+"/"+later.version)
	if errors.Is(err, ErrNotFound) {
		return nil, nil // whoever commits it writes its sidecar, and then the root
	} else if err != nil {
		return nil, err
	}
	_, err = later.finish(ctx)
	return nil, err
}

// finishRoot adds to a batch what is missing or different in the object's root. It reports whether
// anything is.
func (p published) finishRoot(ctx context.Context, b storage.Batch) (changed bool, err error) {
	key := p.rootKey()
	have, err := p.digestOf(ctx, key)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return false, err
	}
	if changed = err != nil || have != p.digest; !changed {
		err = p.rely(ctx, b, key)
	} else if err = nil; !p.look {
		err = b.ReplaceFrom(ctx, key, p.inventoryKey())
	}
	if err != nil {
		return changed, fmt.Errorf("write root inventory: %w", err)
	}
	sidecar, err := p.ensureSidecar(ctx, b, key+"."+p.algorithm)
	if err != nil {
		return changed, fmt.Errorf("write root sidecar: %w", err)
	}
	return changed || sidecar, nil
}

// newest returns the last committed version from p on; its digest is unknown if it is not p.
func (p published) newest(ctx context.Context) (published, error) {
	for {
		if last, err := p.last(ctx); last || err != nil {
			return p, err
		}
		n, padding, _ := parseVersionName(p.next)
		p.version, p.next = p.next, versionName(n+1, padding)
	}
}

// last reports whether no later version is committed.
func (p published) last(ctx context.Context) (bool, error) {
	if p.older {
		return false, nil
	}
	_, err := p.root.store.Stat(ctx, p.base+"/"+p.next+"/"+inventoryName)
	if errors.Is(err, storage.ErrNotFound) {
		return true, nil
	}
	return false, err
}

// ensureSidecar is ensure for a sidecar of the version's inventory. One that other programs have written
// may have the digest in capitals, and other white space.
func (p published) ensureSidecar(ctx context.Context, b storage.Batch, key string) (bool, error) {
	return p.ensureLike(ctx, b, key, sidecarText(p.digest), func(have []byte) bool {
		digest, ok := parseSidecar(string(have))
		return ok && strings.EqualFold(digest, p.digest)
	})
}

// ensure adds want at key to a batch unless it is already there. It reports whether it was missing
// or different.
func (p published) ensure(ctx context.Context, b storage.Batch, key string, want []byte) (bool, error) {
	return p.ensureLike(ctx, b, key, want, func(have []byte) bool { return bytes.Equal(have, want) })
}

// ensureLike is ensure, with a function that says what may stay.
func (p published) ensureLike(ctx context.Context, b storage.Batch, key string, want []byte, right func(have []byte) bool) (bool, error) {
	have, err := storage.ReadAll(ctx, p.root.store, key, maxSmall)
	if err == nil && right(have) {
		return false, p.rely(ctx, b, key)
	}
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return false, err
	}
	if p.look {
		return true, nil
	}
	return true, b.Replace(ctx, key, want)
}

// rely makes an object durable with a batch.
func (p published) rely(ctx context.Context, b storage.Batch, key string) error {
	if p.look {
		return nil
	}
	return b.Rely(ctx, key)
}

// ForeignError says that a version's folder holds files that the version does not have. Only their
// owner may remove them.
type ForeignError struct {
	Folder string   // of the version, in the store
	Files  []string // paths in the folder; the first twenty
}

// Error lists the files.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s holds files that do not belong to the planned version: %s", e.Folder, strings.Join(e.Files, ", "))
}

// ErrComplete says that a version is committed and has all its files.
var ErrComplete = errors.New("the version is complete")

// Shows reports whether version n of the object id is committed here with an inventory of this
// digest and has all its files.
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
		return false, nil // with another inventory
	} else if !is || err != nil {
		return false, err
	}
	space := p.root.Spill()
	defer space.Close() //nolint:errcheck // only read from
	n, _, _ := parseVersionName(p.version)
	a, err := ReadAddition(ctx, p.root.store, p.inventoryKey(), n, p.algorithm, p.digest, space)
	if err != nil {
		return false, err
	}
	for f, err := range a.content {
		if err != nil {
			return false, err
		}
		_, err := p.root.store.Stat(ctx, p.base+"/"+f.Path)
		if errors.Is(err, storage.ErrNotFound) {
			return false, nil // the inventory was written after its files were removed
		} else if err != nil {
			return false, err
		}
	}
	return true, nil
}

// Abandon removes what Commit wrote of version n of the object id. digest is that of its announced
// inventory. planned is its plan, or nil if unknown.
//
// Abandon removes only files of the plan that have the planned bytes. If there are other files,
// including any inventory, it removes nothing and returns a *ForeignError. If the version is
// complete (see Shows), it returns ErrComplete. It returns an error if files were written
// meanwhile, and leaves these. The caller holds the object's lock. It may be repeated at any point.
func (r *Root) Abandon(ctx context.Context, id string, n int, algorithm, digest string, planned *Addition) error {
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

// versionOf returns the place of a version, committed or not. It returns ErrIDTaken if the folder
// holds another object.
func (r *Root) versionOf(ctx context.Context, id string, n int) (p published, err error) {
	base, err := r.ObjectKey(id)
	if err != nil {
		return p, err
	}
	object, err := r.header(ctx, base)
	if isDamage(err) {
		object, err = r.HeadOfVersions(ctx, base)
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		return p, err
	}
	if err == nil && object.ID != id {
		return p, fmt.Errorf("%w: %q", ErrIDTaken, object.ID)
	}
	return published{root: r, base: base, version: versionName(n, object.padding)}, nil
}

// DropUnfinished deletes what killed processes left unfinished in the folder of version n of the
// object id, such as uploads in parts. Call it when the version is complete: nobody can use that any
// more. It is no error if there is nothing.
func (r *Root) DropUnfinished(ctx context.Context, id string, n int) error {
	p, err := r.versionOf(ctx, id, n)
	if err == nil {
		err = r.store.DeleteUnfinished(ctx, p.base+"/"+p.version)
	}
	if err != nil {
		return fmt.Errorf("tidy up version %d of %q: %w", n, id, err)
	}
	return nil
}

func (p published) abandon(ctx context.Context, planned *Addition) error {
	folder := p.base + "/" + p.version
	if is, err := p.shows(ctx); err != nil {
		return err
	} else if is {
		return ErrComplete
	}
	space := p.root.Spill()
	defer space.Close() //nolint:errcheck // only read from
	if planned == nil {
		planned = &Addition{content: func(func(ContentFile, error) bool) {}}
	} else {
		p.algorithm = planned.object.Algorithm
	}
	ours := space.NewLog()
	foreign := &ForeignError{Folder: folder}
	for f, err := range planned.matching(ctx, p.root.store, p.base, folder+"/") {
		if err != nil {
			return err
		}
		if f.planned {
			got, err := p.digestOf(ctx, f.Key)
			if err != nil {
				return err
			}
			f.planned = strings.EqualFold(got, f.digest)
		}
		switch {
		case !f.planned:
			foreign.add(f.Key)
		case !ours.Append([]byte(f.Key)):
			return space.Err()
		}
	}
	if len(foreign.Files) > 0 {
		return foreign
	}
	for key := range ours.Records() {
		if err := p.root.store.Delete(ctx, string(key)); err != nil {
			return err
		}
	}
	if err := space.Err(); err != nil {
		return err
	}
	if err := p.root.store.DeleteUnfinished(ctx, folder); err != nil {
		return err
	}
	// A worker that lost its lease, or another program, may have written meanwhile: look again.
	for info, err := range p.root.store.List(ctx, folder+"/") {
		if err != nil {
			return err
		}
		return fmt.Errorf("%q was written while the version was removed", info.Key)
	}
	return p.undeclare(ctx, cmp.Or(planned.object.Spec, Spec11))
}

// undeclare removes the declaration of an object that has no other files.
func (p published) undeclare(ctx context.Context, spec string) error {
	name, content := declaration(spec)
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

// add adds a foreign file.
func (e *ForeignError) add(key string) {
	const most = 20
	if len(e.Files) < most {
		e.Files = append(e.Files, strings.TrimPrefix(key, e.Folder+"/"))
	}
}

// Remove deletes the object id with all its versions. It is no error if there is none. It removes
// the root inventory first, so that after an interruption no object is visible. A second call
// continues.
func (r *Root) Remove(ctx context.Context, id string) error {
	_, err := r.remove(ctx, id)
	return err
}

// remove is Remove. It returns the folder of the object; "" if it cannot be here, because the layout has no
// folder for it, or that is another object's.
func (r *Root) remove(ctx context.Context, id string) (folder string, err error) {
	object, err := r.Head(ctx, id)
	if errors.As(err, new(*PathError)) || errors.Is(err, ErrIDTaken) && r.InPlace(object) {
		return "", nil
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		return "", fmt.Errorf("remove %q: %w", id, err)
	}
	folder, errKey := r.ObjectKey(id)
	if errKey != nil {
		return "", fmt.Errorf("remove %q: %w", id, errKey)
	}
	if err == nil {
		if err := r.store.Delete(ctx, object.Key+"/"+inventoryName); err != nil {
			return "", fmt.Errorf("remove %q: %w", id, err)
		}
	}
	if err := r.store.DeletePrefix(ctx, folder); err != nil {
		return "", fmt.Errorf("remove %q: %w", id, err)
	}
	return folder, nil
}
