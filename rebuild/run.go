package rebuild

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast/holdfast/evidence"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/storage"
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
	// Progress is called after each object, and now and then, from one goroutine at a time, with what was
	// done so far; nil: nobody wants to know.
	Progress func(Report)
	// Fault is called for each object with faults, from one goroutine at a time.
	Fault func(Object) error
}

// Report says what a rebuild did, over all its runs.
type Report struct {
	Objects    int64 `json:"objects"`    // entered, or that would be
	Deleted    int64 `json:"deleted"`    // entered as deleted, of their tombstones
	Damaged    int64 `json:"damaged"`    // entered objects with faults in some storage
	Unreadable int64 `json:"unreadable"` // objects and tombstones that were not entered, and checkpoints
	// Contradicted counts objects that a signed checkpoint contradicts, for each storage that has one:
	// they are missing, or their chain of events was cut off or rewritten.
	Contradicted int64 `json:"contradicted"`
	// Compared is how many objects of signed checkpoints were compared so far, while they are; otherwise 0.
	Compared int64 `json:"-"`
	// Before is how many of Objects runs before this one had entered, which were killed.
	Before int64 `json:"-"`
}

// Run enters all objects of the storages into a Registry without objects: first the tombstones, then
// the objects of each storage in the order of their folders. At last it compares the Registry with the
// newest signed checkpoint of each storage. After it was killed, a repeat goes on
// after the last portion that it had noted; it comes to the same. ErrRebuilt: the Registry has objects
// that are not of a rebuild of the same storages.
//
// The storages must not change meanwhile. It keeps a portion of objects in memory, each without its
// list of files, and what the checkpoints say of events whose loss was accepted.
func Run(ctx context.Context, o Options) (Report, error) {
	r := &run{Options: o}
	if r.AtOnce == 0 {
		r.AtOnce = 8
	}
	if err := r.begin(ctx); err != nil {
		return r.report, err
	}
	if err := r.trust(ctx); err != nil {
		return r.report, err
	}
	var err error
	if r.forks, err = forks(ctx, r.Roots, r.Keys); err != nil {
		return r.report, err
	}
	w := walk{roots: r.Roots, keys: r.Keys, atOnce: r.AtOnce, state: &r.state, tombstone: r.tombstone, object: r.object, unreadable: r.unreadable, save: r.save}
	if r.DryRun {
		w.places = new(sync.Map)
	}
	if err := w.all(ctx); err != nil {
		return r.report, err
	}
	s := signed{
		roots: r.Roots, keys: r.Keys, stones: r.Keys, atOnce: r.AtOnce, to: r.To, look: r.DryRun, places: w.places, forks: r.forks,
		unreadable: r.unreadable, contradicted: r.contradicted,
		progress: func(compared int64) { r.report.Compared = compared; r.progress() },
	}
	if !r.DryRun {
		s.key = func(ctx context.Context, k registry.ReceiptKey) error { return r.met.enterKey(ctx, r.To, k) }
	}
	if err := s.all(ctx); err != nil {
		return r.report, err
	}
	r.report.Compared = 0
	r.state.Ended = o.Now()
	return r.report, r.save(ctx)
}

// run is a Run.
type run struct {
	Options
	state registry.RebuildState
	forks map[string]evidence.Fork // as in signed
	met   met

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
	if err := goOn(&r.state, before, &r.report); err != nil {
		return err
	}
	r.report.Before = r.report.Objects
	return r.save(ctx)
}

// trust enters the trusted keys, some of which may have signed nothing that is left.
func (r *run) trust(ctx context.Context) error {
	if r.DryRun {
		return nil
	}
	for _, k := range r.Keys {
		if err := r.met.enterKey(ctx, r.To, registry.ReceiptKey{ID: k.ID(), PublicKey: k.String(), FirstUsedAt: r.Now()}); err != nil {
			return err
		}
	}
	return nil
}

// goOn takes over the state and the report of an earlier run, which was killed.
func goOn(state *registry.RebuildState, before registry.RebuildState, report any) error {
	*state = before
	if len(before.Report) == 0 {
		return nil
	}
	if err := json.Unmarshal(before.Report, report); err != nil {
		return fmt.Errorf("decode the report so far: %w", err)
	}
	return nil
}

// noted returns the state with the report so far.
func noted(state registry.RebuildState, report any) (registry.RebuildState, error) {
	text, err := json.Marshal(report)
	if err != nil {
		return state, fmt.Errorf("encode the report: %w", err)
	}
	state.Report = text
	return state, nil
}

// progress tells what was done so far.
func (r *run) progress() {
	if r.Progress != nil {
		r.Progress(r.report)
	}
}

// save notes how far it is.
func (r *run) save(ctx context.Context) error {
	r.progress()
	if r.DryRun {
		return nil
	}
	state, err := noted(r.state, r.report)
	if err != nil {
		return err
	}
	return r.To.SaveRebuild(ctx, state)
}

// add counts an object, and tells of its faults.
func (r *run) add(o *Object, count func(*Report)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	count(&r.report)
	r.progress()
	if r.Fault == nil || !o.faulty() {
		return nil
	}
	return r.Fault(*o)
}

// unreadable tells of something that does not say which object it is.
func (r *run) unreadable(o *Object) error {
	return r.add(o, func(p *Report) { p.Unreadable++ })
}

// contradicted tells of an object that a checkpoint contradicts. It was counted before, if it is there.
func (r *run) contradicted(o *Object) error {
	return r.add(o, func(p *Report) { p.Contradicted++ })
}

// object enters an object. One that a run had entered which was killed before it noted so is entered
// again, which changes nothing, and so is counted with its faults.
func (r *run) object(ctx context.Context, id string, in registry.Place) error {
	head, gone, err := r.To.EnteredHead(ctx, id)
	if err != nil {
		return err
	}
	o, err := Find(ctx, r.Roots, r.Keys, r.forks[id], id, in)
	if err != nil {
		return err
	}
	o.met = &r.met
	o.interrupted()
	for i := range o.Copies {
		if c := &o.Copies[i]; c.left != "" {
			c.fault("%s", leftText(c))
		}
	}
	switch {
	case gone != "":
		o.fault("it was deleted, and files of it are left")
		return r.add(o, func(*Report) {})
	case r.DryRun:
		if o.Head == 0 {
			o.fault("no storage has a version whose inventory is right")
		}
	default:
		if err := o.Enter(ctx, r.To, head); err != nil {
			return err
		}
		for _, id := range o.taken {
			o.fault("%s", takenText(id))
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

// tombstone enters a deleted object. One that is entered already, as in object, is counted again.
func (r *run) tombstone(ctx context.Context, b *buried) error {
	if !b.trusted {
		b.Copies[0].fault("none of the keys signed its tombstone, which does not count")
		return r.unreadable(&b.Object)
	}
	_, gone, err := r.To.EnteredHead(ctx, b.ID)
	if err != nil {
		return err
	}
	if gone == "" && !r.DryRun {
		if err := r.met.enterKey(ctx, r.To, b.key()); err != nil {
			return err
		}
		taken, err := r.To.Enter(ctx, b.entered())
		if err != nil {
			return err
		}
		for _, id := range taken {
			b.fault("%s", takenText(id))
		}
	}
	return r.add(&b.Object, func(p *Report) { p.Deleted++ })
}

// buried is a deleted object: its tombstone, and the faults of it.
type buried struct {
	Object
	deletion registry.Deletion
	stone    receipt.Tombstone
	trusted  bool // a trusted key signed it, or any is trusted: only then the object counts as deleted
}

// key returns the key that signed the tombstone; no ID: nobody who is trusted did.
func (b *buried) key() (k registry.ReceiptKey) {
	if b.trusted {
		k = registry.ReceiptKey{ID: b.stone.Key, PublicKey: b.stone.PublicKey, FirstUsedAt: b.stone.ApprovedAt}
	}
	return k
}

// isBuried reports whether a storage has a tombstone of an object that can be read and that a trusted key signed.
func isBuried(ctx context.Context, root ocfl.Named, id string, keys []receipt.PublicKey) (bool, error) {
	text, err := root.Tombstone(ctx, id)
	if errors.Is(err, storage.ErrNotFound) || unreadable(err) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("look for the tombstone of %s in storage %s: %w", id, root.Name, err)
	}
	b, err := buriedIn(root.Name, text, keys)
	return err == nil && b.trusted && b.ID == id, nil
}

// entered returns the deleted object to be entered.
func (b *buried) entered() registry.Entered {
	d := b.deletion
	o := registry.EnteredObject{
		MintedFor: d.ItemID,
		Object: registry.Object{
			ID: d.ObjectID, Head: d.Last.Version, Gone: d.Status, Deletion: &d, CreatedAt: d.AskedAt, UpdatedAt: *d.ApprovedAt,
			Owner: b.stone.Owner, Collection: b.stone.Collection,
		},
	}
	for _, id := range b.stone.LocalIDs {
		o.IDs = append(o.IDs, registry.OwnedID{Owner: b.stone.Owner, LocalID: id})
	}
	return registry.Entered{ObjectID: o.ID, Object: &o}
}

// buriedIn reads a tombstone in a storage. keys are those that are trusted. Its error says that it cannot
// be read.
func buriedIn(storage string, text []byte, keys []receipt.PublicKey) (*buried, error) {
	stone, trusted, err := receipt.ReadTombstone(text, keys)
	b := &buried{Object: Object{ID: stone.Object, Copies: []Copy{{Storage: storage}}}, stone: stone, trusted: trusted || len(keys) == 0}
	if err != nil {
		b.Copies[0].fault("a tombstone of %q cannot be read: %v", stone.Object, err)
		return b, err
	}
	b.deletion = registry.Deletion{
		ObjectID: stone.Object, Status: registry.DeletionDeleted, Reason: stone.Reason, AskedBy: stone.AskedBy, AskedAt: stone.AskedAt,
		ApprovedBy: stone.ApprovedBy, ApprovedAt: &stone.ApprovedAt, ItemID: stone.Item, Tombstone: string(text),
		Last: registry.Remains{Version: stone.Last.Version, Inventory: stone.Last.Inventory, Files: stone.Last.Files},
	}
	return b, nil
}
