package node

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/storage"
)

// layoutParameter is the parameter of a storage address with the layout of its storage root, as
// ocfl.ParseLayout reads it.
const layoutParameter = "layout"

// splitLayout removes the layout from an address. It is nil if the address has none.
func splitLayout(address string) (rest string, layout ocfl.Layout, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return address, nil, nil //nolint:nilerr // open.URL reports it without secrets
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil || !query.Has(layoutParameter) {
		return address, nil, nil //nolint:nilerr // likewise
	}
	if layout, err = ocfl.ParseLayout(query.Get(layoutParameter)); err != nil {
		return "", nil, fmt.Errorf("parameter %s: %w", layoutParameter, err)
	}
	query.Del(layoutParameter)
	u.RawQuery = query.Encode()
	return u.String(), layout, nil
}

// newRoot is a place without a storage root, and the layout for it (nil: the default).
type newRoot struct {
	store  storage.Store
	layout ocfl.Layout
}

// make makes the root.
func (r newRoot) make(ctx context.Context) (*ocfl.Root, error) {
	root, err := ocfl.OpenRoot(ctx, r.store, "", r.layout)
	switch {
	case errors.Is(err, ocfl.ErrLayout) && r.layout == nil:
		err = fmt.Errorf("%w; name the layout by which the root was made in its address, such as ADDRESS?%s=0003 (docs/operating.md, Layout)", err, layoutParameter)
	case errors.Is(err, ocfl.ErrLayout):
		err = fmt.Errorf("%w; a storage root keeps its first layout: leave %s out, or name another folder", err, layoutParameter)
	}
	return root, err
}

// findRoot opens the storage root at an address. It refuses an existing root with another layout
// than the address names. If there is no root, root is nil and fresh can make one.
func (n *Node) findRoot(ctx context.Context, address string) (root *ocfl.Root, fresh newRoot, err error) {
	address, fresh.layout, err = splitLayout(address)
	if err != nil {
		return nil, fresh, err
	}
	if fresh.store, err = n.openStorage(ctx, address); err != nil {
		return nil, fresh, err
	}
	if has, err := ocfl.HasRoot(ctx, fresh.store, ""); !has {
		return nil, fresh, err
	}
	root, err = fresh.make(ctx)
	return root, fresh, err
}

// foundRoots are the storage roots of a process. Some may not exist yet.
type foundRoots struct {
	storages []Storage
	roots    ocfl.Roots
	fresh    []newRoot // where a root must be made; zero for existing roots
}

// find returns the needs of storages: each root is opened or known to be missing.
func (f *foundRoots) find(n *Node, all []Storage) (needs []need) {
	f.storages, f.roots, f.fresh = all, make(ocfl.Roots, len(all)), make([]newRoot, len(all))
	for i, s := range all {
		root := &f.roots[i]
		root.Name, root.Address = s.Name, StorageName(s.Address)
		needs = append(needs, need{settingStorage, s.Address, s.what(), fixStore, func(ctx context.Context) (err error) {
			root.Root, f.fresh[i], err = n.findRoot(ctx, s.Address)
			return err
		}})
	}
	return needs
}

const fixEmptyStorage = FixAbsent + "make a new root with: holdfast storage init ADDRESS"

// complete makes the missing roots and returns all, which have their temporary files in a folder.
// It refuses if the Registry knows replicas there: the place is then an unmounted folder or the
// wrong bucket.
func (f *foundRoots) complete(ctx context.Context, n *Node, temporary string, known func(ctx context.Context, storage string) (bool, error)) (ocfl.Roots, error) {
	var needs []need
	for i, s := range f.storages {
		if f.roots[i].Root != nil {
			continue
		}
		needs = append(needs, need{settingStorage, s.Address, s.what(), fixEmptyStorage, func(ctx context.Context) error {
			has, err := known(ctx, s.Name)
			if err == nil && has {
				err = ErrRootGone
			}
			if err == nil {
				f.roots[i].Root, err = f.fresh[i].make(ctx)
			}
			return err
		}})
	}
	err := n.meet(ctx, needs)
	for _, root := range f.roots {
		if root.Root != nil {
			root.TempDir = temporary
		}
	}
	return f.roots, err
}

// records is what the Registry's database knows about storages.
type records interface {
	HadReplicas(ctx context.Context, storage string) (bool, error)
	HadObjects(ctx context.Context) (bool, error)
	Inventory
	Source(ctx context.Context) (string, error)
}

// errUnknownObjects: a storage holds objects that the Registry does not know.
var errUnknownObjects = errors.New("it holds objects that the Registry does not know")

// Advice about a storage with unknown objects. The command that accepts it follows.
const (
	fixEmptyDatabase = "restore the Registry's database from its backup, make it again with holdfast rebuild, or correct the addresses; if another program made these objects, take " +
		"them in with holdfast adopt; an empty database never learns of them by itself; " +
		"to start with one nevertheless, run: "
	fixOlderDatabase = "this database knows objects, but none in this storage; if it is another Registry's storage, correct the address; if the database was restored from a " +
		"backup that is older than the first object in this storage, use a newer backup; if there is none, run the command below, start with --paused, and " +
		"let two admins accept the loss (docs/receipt.md, \"After a backup was restored\"): "
)

// judge refuses storages with objects that this Registry does not know, if it never recorded
// anything there: its database is new or another's, and would never learn of these objects. It also
// refuses them if nothing of what it recorded there is there: the storage is another one. A root
// without objects is not refused then, because an operator made it after a loss.
//
// An object is announced in the database before its first byte is written. So judge reads the
// storage first and the database second: an object that another process is just storing is known by
// then. The first object found decides.
func (f *foundRoots) judge(ctx context.Context, n *Node, known records) error {
	source, err := known.Source(ctx)
	if err != nil {
		return err
	}
	knowsAny, err := known.HadObjects(ctx)
	if err != nil {
		return err
	}
	var needs []need
	for i, s := range f.storages {
		root := f.roots[i].Root
		if root == nil {
			continue
		}
		fix := fixEmptyDatabase
		if knowsAny {
			fix = fixOlderDatabase
		}
		accept := "holdfast storage accept " + ShellWord(s.Address) + " --registry " + source
		fix += accept
		needs = append(needs, need{settingStorage, s.Address, s.what(), fix, func(ctx context.Context) error {
			b, err := Belongs(ctx, root, s.Name, known)
			if b.Strange == "" || err != nil {
				return err
			}
			had, err := known.HadReplicas(ctx, s.Name)
			if err != nil || had && !b.Absent() {
				return err
			}
			accepted, err := root.Accepts(ctx, source)
			switch {
			case err != nil:
				return err
			case accepted:
				n.Log.WarnContext(ctx, "storage holds objects that this Registry does not know; it was accepted by holdfast storage accept", "storage", s.Name, "such_as", b.Strange)
				return nil
			case had:
				return &NeedError{Setting: settingStorage, What: s.what(), Fix: FixAbsent + "run: " + accept, Err: b.Fault()}
			}
			return fmt.Errorf("%w, such as %s", errUnknownObjects, b.Strange)
		}})
	}
	return n.meet(ctx, needs)
}

// unknownObject returns the first object of a root if the Registry does not know it, else "".
func unknownObject(ctx context.Context, root *ocfl.Root, known Inventory) (string, error) {
	for object, err := range root.Objects(ctx) {
		switch {
		case err != nil && object.Key == "":
			return "", err
		case err != nil:
			return "the object in " + object.Key, nil // an object with a damaged inventory
		}
		is, err := known.KnowsObject(ctx, object.ID)
		if is || err != nil {
			return "", err
		}
		return object.ID, nil
	}
	return "", nil
}

// AcceptStorage records in the storage root at an address that the named Registry may use it,
// although it does not know its objects.
func AcceptStorage(ctx context.Context, c Common, address, registry string) error {
	n, err := start(ctx, c, func(n *Node) error {
		root, _, err := n.findRoot(ctx, address)
		if err == nil && root == nil {
			err = errNoRoot
		}
		if err == nil {
			err = root.Accept(ctx, registry)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("accept the storage at %s: %w", StorageName(address), err)
	}
	return n.Close() //nolint:contextcheck // Close must run even if ctx has ended
}

var errNoRoot = errors.New("there is no storage root; an empty storage need not be accepted")

// InitStorage makes a storage root at an address, in an existing, empty folder or bucket, and
// returns its layout. An existing root stays as it is: made is false.
func InitStorage(ctx context.Context, c Common, address string) (layout string, made bool, err error) {
	var root *ocfl.Root
	n, err := start(ctx, c, func(n *Node) (err error) {
		var fresh newRoot
		if root, fresh, err = n.findRoot(ctx, address); err == nil && root == nil {
			made = true
			root, err = fresh.make(ctx)
		}
		return err
	})
	if err != nil {
		return "", false, fmt.Errorf("make a storage root at %s: %w", StorageName(address), err)
	}
	return root.Layout().Name(), made, n.Close() //nolint:contextcheck // Close must run even if ctx has ended
}
