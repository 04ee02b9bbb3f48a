package rebuild

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
)

// Options say what is rebuilt.
type Options struct {
	Roots ocfl.Roots
	To    registry.Rebuilding
	// Keys are the trusted keys of receipts. Without any, whoever signed them is trusted.
	Keys []receipt.PublicKey
	// AtOnce is how many objects are read at once; 0: 8.
	AtOnce int
	// DryRun reads everything and enters nothing.
	DryRun bool
	// Now is the clock.
	Now func() time.Time
	// Progress is called now and then, from one goroutine at a time, with what was done so far; nil: nobody
	// wants to know.
	Progress func(Report)
	// Fault is called for each object with faults, from one goroutine at a time.
	Fault func(Object) error
}

// Report says what a rebuild did, over all its runs.
type Report struct {
	Objects    int64 `json:"objects"`    // entered, or that would be
	Deleted    int64 `json:"deleted"`    // entered as deleted, of their tombstones
	Damaged    int64 `json:"damaged"`    // entered objects with faults in some storage
	Unreadable int64 `json:"unreadable"` // objects and tombstones that were not entered
}

// portion is how many objects are read between two notes of how far it is.
const portion = 256

// Run enters all objects of the storages into a Registry without objects: first the tombstones, then
// the objects of each storage in the order of their folders. After it was killed, a repeat goes on
// after the last portion that it had noted; it comes to the same. ErrRebuilt: the Registry has objects
// that are not of a rebuild of the same storages.
//
// The storages must not change meanwhile. It keeps a portion of objects in memory, each without its
// list of files.
func Run(ctx context.Context, o Options) (Report, error) {
	r := &run{Options: o}
	if r.AtOnce == 0 {
		r.AtOnce = 8
	}
	if err := r.begin(ctx); err != nil {
		return r.report, err
	}
	if r.state.Storage == "" { // otherwise the tombstones are entered
		for _, root := range o.Roots {
			if err := r.tombstones(ctx, root); err != nil {
				return r.report, err
			}
		}
	}
	for i, root := range o.Roots {
		if r.passed(i) {
			continue
		}
		if err := r.objects(ctx, i, root); err != nil {
			return r.report, err
		}
	}
	r.state.Ended = o.Now()
	return r.report, r.save(ctx)
}

// run is a Run.
type run struct {
	Options
	state       registry.RebuildState
	collections sync.Map // of which an object was entered

	mu     sync.Mutex
	report Report
}

// begin reads how far an earlier run was, or notes that one begins.
func (r *run) begin(ctx context.Context) error {
	r.state = registry.RebuildState{Begun: r.Now(), Storages: r.Roots.Names()}
	if r.DryRun {
		return nil
	}
	before, err := r.To.RebuildState(ctx)
	if err != nil {
		return err
	}
	if err := r.save(ctx); err != nil || !before.Open() {
		return err
	}
	r.state = before
	if len(before.Report) > 0 {
		if err := json.Unmarshal(before.Report, &r.report); err != nil {
			return fmt.Errorf("decode the report so far: %w", err)
		}
	}
	return r.save(ctx)
}

// save notes how far it is.
func (r *run) save(ctx context.Context) error {
	if r.Progress != nil {
		r.Progress(r.report)
	}
	if r.DryRun {
		return nil
	}
	text, err := json.Marshal(r.report)
	if err != nil {
		return fmt.Errorf("encode the report: %w", err)
	}
	r.state.Report = text
	return r.To.SaveRebuild(ctx, r.state)
}

// passed reports whether an earlier run had read a storage.
func (r *run) passed(i int) bool {
	for j, name := range r.state.Storages {
		if name == r.state.Storage {
			return i < j
		}
	}
	return false
}

// add counts an object, and tells of its faults.
func (r *run) add(o *Object, count func(*Report)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	count(&r.report)
	if r.Fault == nil || !o.faulty() {
		return nil
	}
	return r.Fault(*o)
}

// objects enters the objects of one storage that no storage before it has.
func (r *run) objects(ctx context.Context, i int, root ocfl.Named) error {
	if r.state.Storage != root.Name {
		r.state.Storage, r.state.After = root.Name, ""
	}
	group, inGroup := r.group(ctx)
	n, last := 0, r.state.After
	next := func() error {
		if err := group.Wait(); err != nil {
			return err
		}
		r.state.After = last
		group, inGroup = r.group(ctx)
		return r.save(ctx)
	}
	for found, err := range root.ObjectsAfter(ctx, r.state.After) {
		if err != nil && found.Key == "" {
			return errors.Join(err, group.Wait())
		}
		last = found.Key
		group.Go(func() error {
			if err != nil {
				return r.unreadable(root, found.Key, err)
			}
			return r.object(inGroup, i, found.ID)
		})
		if n++; n%portion == 0 {
			if err := next(); err != nil {
				return err
			}
		}
	}
	return next()
}

// group returns a group for a portion of objects.
func (r *run) group(ctx context.Context) (*errgroup.Group, context.Context) {
	group, inGroup := errgroup.WithContext(ctx)
	group.SetLimit(r.AtOnce)
	return group, inGroup
}

// unreadable tells of a folder whose inventory does not say which object it is.
func (r *run) unreadable(root ocfl.Named, folder string, err error) error {
	if !unreadable(err) {
		return err
	}
	o := &Object{Copies: []Copy{{Storage: root.Name, Faults: []string{fmt.Sprintf("folder %s: %v", folder, err)}}}}
	return r.add(o, func(p *Report) { p.Unreadable++ })
}

// object enters an object, unless a storage before this one has it, or it is entered already.
func (r *run) object(ctx context.Context, i int, id string) error {
	for _, earlier := range r.Roots[:i] {
		switch _, err := earlier.Head(ctx, id); {
		case err == nil:
			return nil
		case !errors.Is(err, ocfl.ErrNotFound) && !unreadable(err):
			return err
		}
	}
	head, gone, err := r.To.EnteredHead(ctx, id)
	if err != nil {
		return err
	}
	if head > 0 && gone == "" { // by a run that was killed before it noted so
		return r.add(&Object{ID: id}, func(p *Report) { p.Objects++ })
	}
	o, err := Find(ctx, r.Roots, r.Keys, id)
	if err != nil {
		return err
	}
	o.collections = &r.collections
	switch {
	case gone != "":
		o.fault("it was deleted, and files of it are left")
		return r.add(o, func(*Report) {})
	case r.DryRun:
		if o.Head == 0 {
			o.fault("no storage has a version whose inventory is right")
		}
	default:
		if err := o.Enter(ctx, r.To); err != nil {
			return err
		}
	}
	return r.add(o, func(p *Report) {
		if o.Head == 0 {
			p.Unreadable++
			return
		}
		p.Objects++
		if o.faulty() {
			p.Damaged++
		}
	})
}

// faulty reports whether anything is wrong with the object or a copy.
func (o *Object) faulty() bool {
	for _, c := range o.Copies {
		if len(c.Faults) > 0 {
			return true
		}
	}
	return len(o.Faults) > 0
}

// tombstones enters the deleted objects of one storage.
func (r *run) tombstones(ctx context.Context, root ocfl.Named) error {
	for text, err := range root.Tombstones(ctx) {
		if err != nil {
			return err
		}
		stone, trusted, err := receipt.ReadTombstone(text, r.Keys)
		o := &Object{ID: stone.Object, Copies: []Copy{{Storage: root.Name}}}
		if err != nil {
			o.Copies[0].fault("a tombstone of %q cannot be read: %v", stone.Object, err)
			if err := r.add(o, func(p *Report) { p.Unreadable++ }); err != nil {
				return err
			}
			continue
		}
		if !trusted && len(r.Keys) > 0 {
			o.Copies[0].fault("none of the keys signed its tombstone")
		}
		if err := r.tombstone(ctx, stone, o); err != nil {
			return err
		}
	}
	return nil
}

// tombstone enters a deleted object, unless another storage's tombstone of it was entered.
func (r *run) tombstone(ctx context.Context, stone receipt.Tombstone, report *Object) error {
	_, gone, err := r.To.EnteredHead(ctx, stone.Object)
	if err != nil || gone != "" {
		return err
	}
	d := registry.Deletion{
		ObjectID: stone.Object, Status: registry.DeletionDeleted, Reason: stone.Reason, AskedBy: stone.AskedBy, AskedAt: stone.AskedAt,
		ApprovedBy: stone.ApprovedBy, ApprovedAt: &stone.ApprovedAt, ItemID: stone.Item,
		Last: registry.Remains{Version: stone.Last.Version, Inventory: stone.Last.Inventory, Files: stone.Last.Files},
	}
	o := registry.EnteredObject{
		MintedFor: d.ItemID,
		Object: registry.Object{
			ID: d.ObjectID, Head: d.Last.Version, Gone: d.Status, Deletion: &d, CreatedAt: d.AskedAt, UpdatedAt: *d.ApprovedAt,
			Owner: stone.Owner, Collection: stone.Collection,
		},
	}
	for _, id := range stone.LocalIDs {
		o.IDs = append(o.IDs, registry.OwnedID{Owner: stone.Owner, LocalID: id})
	}
	if !r.DryRun {
		taken, err := r.To.EnterObject(ctx, o)
		if err != nil {
			return err
		}
		for _, id := range taken {
			report.fault("its local id %q of %s belongs to %s, too, which keeps it", id.LocalID, id.Owner, id.ObjectID)
		}
	}
	return r.add(report, func(p *Report) { p.Deleted++ })
}
