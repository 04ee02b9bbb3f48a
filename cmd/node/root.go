package node

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/storage"
)

// layoutParameter is what an address of preservation storage may have beside what open.URL takes:
// how its storage root lays out objects, as ocfl.ParseLayout reads it.
const layoutParameter = "layout"

// splitLayout takes the layout out of an address; it is nil where the address names none.
func splitLayout(address string) (rest string, layout ocfl.Layout, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return address, nil, nil //nolint:nilerr // open.URL says what is wrong, and does not quote it
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

// newRoot is a place that has no storage root yet, in the layout that it is to get (nil: the
// default).
type newRoot struct {
	store  storage.Store
	layout ocfl.Layout
}

// make makes the root.
func (r newRoot) make(ctx context.Context) (*ocfl.Root, error) {
	root, err := ocfl.OpenRoot(ctx, r.store, "", r.layout)
	if errors.Is(err, ocfl.ErrLayout) {
		err = fmt.Errorf("%w; a storage root keeps the layout that it was made in: leave %s out, or name another folder", err, layoutParameter)
	}
	return root, err
}

// findRoot opens the storage root at an address. One that exists keeps its layout: an address that
// names another is refused. Where there is none, root is nil and fresh is where one can be made.
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

// foundRoots are the storage roots that a process works on, some of which may have to be made
// first.
type foundRoots struct {
	storages []Storage
	roots    ocfl.Roots
	fresh    []newRoot // where a root can be made; of those that are there the zero value
}

// find is the needs of these storages: they are found, or it is found that there is no root yet.
func (f *foundRoots) find(n *Node, all []Storage) (needs []need) {
	f.storages, f.roots, f.fresh = all, make(ocfl.Roots, len(all)), make([]newRoot, len(all))
	for i, s := range all {
		root := &f.roots[i]
		root.Name, root.Address = s.Name, storageName(s.Address)
		needs = append(needs, need{settingStorage, s.Address, s.what(), fixStore, func(ctx context.Context) (err error) {
			root.Root, f.fresh[i], err = n.findRoot(ctx, s.Address)
			return err
		}})
	}
	return needs
}

var errEmptyStorage = errors.New("there is no storage root, and the Registry knows objects that lie in this storage")

const fixEmptyStorage = "mount its volume, or correct the address; if its bytes are lost, begin it anew by: holdfast storage init ADDRESS"

// complete makes the roots that are not there yet, and returns all. It refuses to where the
// Registry knows replicas: such a place is a folder on which no volume is mounted, or another
// bucket, and what is written there is lost from sight.
func (f *foundRoots) complete(ctx context.Context, n *Node, known func(ctx context.Context, storage string) (bool, error)) (ocfl.Roots, error) {
	var needs []need
	for i, s := range f.storages {
		if f.roots[i].Root != nil {
			continue
		}
		needs = append(needs, need{settingStorage, s.Address, s.what(), fixEmptyStorage, func(ctx context.Context) error {
			has, err := known(ctx, s.Name)
			if err == nil && has {
				err = errEmptyStorage
			}
			if err == nil {
				f.roots[i].Root, err = f.fresh[i].make(ctx)
			}
			return err
		}})
	}
	return f.roots, n.meet(ctx, needs)
}

// records is what the Registry's own database tells of storages.
type records interface {
	HadReplicas(ctx context.Context, storage string) (bool, error)
	HadObjects(ctx context.Context) (bool, error)
	KnowsObject(ctx context.Context, id string) (bool, error)
	Source(ctx context.Context) (string, error)
}

// errStrangeStorage says that a storage holds what a Registry does not know.
var errStrangeStorage = errors.New("it holds objects that the Registry does not know")

// What to do about a storage with strange objects; the command that accepts it follows.
const (
	fixEmptyDatabase = "restore the Registry's database from its backup, or correct the addresses; an empty database never learns of these objects: " +
		"to begin with one beside them all the same, run: "
	fixOlderDatabase = "this database knows objects, but none in this storage: is it another Registry's storage, then correct the address; was the database restored from a " +
		"backup that is older than the first object in this storage, then take a newer backup if there is one, and otherwise start with --paused after the command below, and " +
		"have two admins accept what is lost (docs/receipt.md, \"After a backup was restored\"): "
)

// judge refuses storages that hold objects of which this Registry, which never recorded anything
// there, knows nothing: its database is new, or another's, and what is preserved there would be
// unknown to it for ever.
//
// An object is announced in the database before its first byte is written. So the storage is looked
// at first and the database second, and the first object found decides: what another process is
// just storing is known by then, although it is not recorded.
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
		fix += "holdfast storage accept " + ShellWord(s.Address) + " --registry " + source
		needs = append(needs, need{settingStorage, s.Address, s.what(), fix, func(ctx context.Context) error {
			had, err := known.HadReplicas(ctx, s.Name)
			if had || err != nil {
				return err
			}
			strange, err := stranger(ctx, root, known)
			if strange == "" || err != nil {
				return err
			}
			accepted, err := root.Accepts(ctx, source)
			if err == nil && !accepted {
				err = fmt.Errorf("%w, such as %s", errStrangeStorage, strange)
			} else if err == nil {
				n.Log.WarnContext(ctx, "storage holds objects that this Registry does not know, and was accepted all the same", "storage", s.Name, "such_as", strange)
			}
			return err
		}})
	}
	return n.meet(ctx, needs)
}

// stranger names the first object of a root if it is not known; "" when it is, or there is none.
func stranger(ctx context.Context, root *ocfl.Root, known records) (string, error) {
	for object, err := range root.Objects(ctx) {
		switch {
		case err != nil && object.Key == "":
			return "", err
		case err != nil:
			return "what lies in " + object.Key, nil // it is an object, although its inventory is damaged
		}
		is, err := known.KnowsObject(ctx, object.ID)
		if is || err != nil {
			return "", err
		}
		return object.ID, nil
	}
	return "", nil
}

// AcceptStorage notes in the storage root at an address that the Registry of that name may work
// there, although it does not know the objects that are there.
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
		return fmt.Errorf("accept the storage at %s: %w", storageName(address), err)
	}
	return n.Close() //nolint:contextcheck // it closes although ctx may be over
}

var errNoRoot = errors.New("there is no storage root; an empty storage needs no consent")

// InitStorage makes a storage root at an address, in a folder or bucket that is there and empty,
// and says in which layout. A root that is there already stays as it is: made is false.
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
		return "", false, fmt.Errorf("make a storage root at %s: %w", storageName(address), err)
	}
	return root.Layout().Name(), made, n.Close() //nolint:contextcheck // it closes although ctx may be over
}
