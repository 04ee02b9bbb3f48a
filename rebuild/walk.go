package rebuild

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast/holdfast/evidence"
	"github.com/holdfast/holdfast/noid"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
)

// portion is how many objects are read between two notes of how far it is.
const portion = 256

// walk reads what storages hold: first the tombstones, then the objects of each storage in the order of
// their folders. All its functions must be set.
type walk struct {
	roots  ocfl.Roots
	keys   []receipt.PublicKey // of tombstones that count; without any, all count
	atOnce int
	state  *registry.RebuildState // how far it is
	// tombstone is called once for each object that has a tombstone that counts, and for each that does not.
	tombstone func(ctx context.Context, b *buried) error
	// object is called once for each object, several at once.
	object func(ctx context.Context, id string, in registry.Place) error
	// unreadable is called for what does not say which object it is.
	unreadable func(o *Object) error
	save       func(ctx context.Context) error
	places     *sync.Map // as in signed; nil: nobody asks for them
}

// all goes on where state says.
func (w *walk) all(ctx context.Context) error {
	if w.state.Recorded {
		return nil
	}
	if w.state.Storage == "" { // otherwise the tombstones were read
		for i, root := range w.roots {
			if err := w.tombstones(ctx, i, root); err != nil {
				return err
			}
		}
	}
	for i, root := range w.roots {
		if w.passed(i) {
			continue
		}
		if err := w.objects(ctx, i, root); err != nil {
			return err
		}
	}
	return nil
}

// passed reports whether an earlier walk had read a storage.
func (w *walk) passed(i int) bool {
	for j, name := range w.state.Storages {
		if name == w.state.Storage {
			return i < j
		}
	}
	return false
}

// tombstones reads the tombstones of one storage that no storage before it has.
func (w *walk) tombstones(ctx context.Context, i int, root ocfl.Named) error {
	for text, err := range root.Tombstones(ctx) {
		if err != nil && !unreadable(err) {
			return err
		}
		b := &buried{Object: Object{Copies: []Copy{{Storage: root.Name}}}}
		if err != nil {
			b.Copies[0].fault("a tombstone cannot be read: %v", err)
		} else {
			b, err = buriedIn(root.Name, text, w.keys)
		}
		if err != nil {
			if err := w.unreadable(&b.Object); err != nil {
				return err
			}
			continue
		}
		had := false
		for _, earlier := range w.roots[:i] {
			is, err := isBuried(ctx, earlier, b.ID, w.keys)
			if err != nil {
				return err
			}
			had = had || is
		}
		if had {
			continue
		}
		if err := w.tombstone(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// objects reads the objects of one storage that no storage before it has.
func (w *walk) objects(ctx context.Context, i int, root ocfl.Named) error {
	if w.state.Storage != root.Name {
		w.state.Storage, w.state.After = root.Name, ""
		if err := w.save(ctx); err != nil {
			return err
		}
	}
	p := portions{atOnce: w.atOnce, done: func(last string) error {
		w.state.After = last
		return w.save(ctx)
	}}
	for folder, err := range root.Folders(ctx, w.state.After) {
		if err != nil {
			return errors.Join(err, p.wait())
		}
		err := p.run(ctx, folder, func(ctx context.Context) error {
			found, err := root.In(ctx, folder)
			if errors.Is(err, ocfl.ErrNotFound) {
				return nil // its first version was not committed
			}
			if unreadable(err) { // whoever reads the object says so
				found, err = insteadOf(ctx, root, found, err)
			}
			if unreadable(err) {
				return w.unreadable(&Object{Copies: []Copy{{Storage: root.Name, Faults: []string{fmt.Sprintf("folder %s: %v", found.Key, err)}}}})
			} else if err != nil {
				return err
			}
			if !root.InPlace(found) { // nothing looks for it there
				return w.unreadable(&Object{ID: found.ID, Copies: []Copy{{Storage: root.Name, Faults: []string{fmt.Sprintf("folder %s: %s", found.Key, misplaced)}}}})
			}
			if had, err := w.inEarlier(ctx, i, found.ID); had || err != nil {
				return err
			}
			id, in, err := nameOf(ctx, root, found)
			if err != nil {
				return err
			}
			if id == "" {
				return w.unreadable(&Object{ID: found.ID, Copies: []Copy{{Storage: root.Name, Faults: []string{fmt.Sprintf("folder %s: %s", found.Key, strange)}}}})
			}
			if w.places != nil && in.OCFLID != "" {
				w.places.Store(id, in)
			}
			return w.object(ctx, id, in)
		})
		if err != nil {
			return err
		}
	}
	return p.end()
}

// insteadOf returns what the versions of an object say whose root inventory cannot be read. If they say nothing,
// it returns what it got.
func insteadOf(ctx context.Context, root ocfl.Named, found ocfl.Object, damage error) (ocfl.Object, error) {
	of, err := root.HeadOfVersions(ctx, found.Key)
	if errors.Is(err, ocfl.ErrNotFound) {
		return found, damage
	}
	return of, err
}

// ARKOf returns the ARK of an object that has an ARK as its identifier in a storage, possibly in another
// form; "" if that is no ARK of an object.
func ARKOf(stored string) string {
	ark, err := noid.ParseARK(stored)
	if err != nil || ark != ark.Base() {
		return ""
	}
	return ark.ObjectID()
}

// strange is the fault of an object that nobody adopted.
const strange = "its identifier is no ARK, and no receipt beside it says which ARK it has: it is not Holdfast's (holdfast adopt takes such objects in)"

// misplaced is the fault of an object that lies in another folder than that of its identifier.
const misplaced = "it is not the folder of the object whose identifier it has: it is a copy, or was moved; move it away, or back to its place (docs/operating.md, Foreign files)"

// nameOf returns the ARK of an object of a storage, and how it lies there: its identifier there, if that is
// an ARK, or else the one that its receipts name. "": neither says.
func nameOf(ctx context.Context, root ocfl.Named, found ocfl.Object) (id string, in registry.Place, err error) {
	in.Padding = found.Padding()
	if id = ARKOf(found.ID); id == found.ID {
		return id, in, nil
	}
	in.OCFLID = found.ID
	if id != "" {
		return id, in, nil
	}
	id, err = evidence.Object{Store: root.Store(), Folder: found.Key}.ARK(ctx)
	return id, in, err
}

// inEarlier reports whether a storage before this one has an object.
func (w *walk) inEarlier(ctx context.Context, i int, id string) (bool, error) {
	for _, earlier := range w.roots[:i] {
		switch _, _, err := headOf(ctx, earlier, id); {
		case err == nil:
			return true, nil
		case !errors.Is(err, ocfl.ErrNotFound) && !unreadable(err):
			return false, err
		}
	}
	return false, nil
}

// portions does work for many names, several at once, and notes after each portion that it is done.
type portions struct {
	atOnce int
	done   func(last string) error
	group  *errgroup.Group // nil: no work has begun
	n      int
	last   string
}

// run does the work for the next name. Its error is that of any work of a portion, when that ends.
func (p *portions) run(ctx context.Context, name string, work func(context.Context) error) error {
	if p.group == nil {
		p.group = new(errgroup.Group)
		p.group.SetLimit(p.atOnce)
	}
	p.group.Go(func() error { return work(ctx) })
	p.last = name
	if p.n++; p.n%portion > 0 {
		return nil
	}
	return p.end()
}

// wait waits for all work that has begun.
func (p *portions) wait() error {
	if p.group == nil {
		return nil
	}
	err := p.group.Wait()
	p.group = nil
	return err
}

// end waits for all work, and notes that it is done.
func (p *portions) end() error {
	if p.group == nil {
		return nil
	}
	if err := p.wait(); err != nil {
		return err
	}
	return p.done(p.last)
}
