package rebuild

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast/holdfast/evidence"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
)

// ReconcileOptions say what is compared.
type ReconcileOptions struct {
	Roots ocfl.Roots
	To    registry.Reconciling
	Keys  []receipt.PublicKey // as in Options
	// AtOnce is how many objects are compared at once; 0: 8.
	AtOnce int
	// Apply enters what the Registry does not know. Otherwise nothing changes.
	Apply    bool
	Now      func() time.Time
	Progress func(Comparison)    // as in Options
	Found    func(Finding) error // called for each object with anything to say, from one goroutine at a time
}

// Comparison says what a comparison found, over all its runs, by objects. With Apply adopted and deleted
// ones were entered, otherwise they would be.
type Comparison struct {
	Objects    int64 `json:"objects"`    // compared
	Adopted    int64 `json:"adopted"`    // that the Registry did not know, or not all of it
	Versions   int64 `json:"versions"`   // of these
	Deleted    int64 `json:"deleted"`    // that the Registry believed to be alive, or did not know
	Open       int64 `json:"open"`       // with an announced version, whose job goes on
	Damaged    int64 `json:"damaged"`    // with faults in some storage, which the other storages mend
	Disagree   int64 `json:"disagree"`   // which a person must judge
	Unreadable int64 `json:"unreadable"` // objects and tombstones that nothing was learned of
	// Lost counts objects of whose events a signed checkpoint names some that neither the Registry nor a
	// storage has, for each storage with such a checkpoint.
	Lost     int64 `json:"lost"`
	Compared int64 `json:"-"` // as in Report
	Before   int64 `json:"-"` // how many of Objects killed runs before this one had compared
}

// Agree reports whether the Registry has, or with Apply would have, all that the storages hold, and
// nothing besides.
func (c Comparison) Agree() bool { return c.Disagree == 0 && c.Unreadable == 0 }

// Finding is what there is to say of an object.
type Finding struct {
	Object             // the faults of its copies are to be mended by fixity checks
	Recorded  int      `json:"recorded"`            // the newest version that the Registry had; 0: none
	Adopted   []string `json:"adopted,omitempty"`   // what was, or without Apply would be, entered
	Disagrees []string `json:"disagrees,omitempty"` // what a person must judge
}

func (f *Finding) adopt(format string, args ...any) {
	f.Adopted = append(f.Adopted, fmt.Sprintf(format, args...))
}

func (f *Finding) disagree(format string, args ...any) {
	f.Disagrees = append(f.Disagrees, fmt.Sprintf(format, args...))
}

// Reconcile compares a Registry, which was restored from an older backup, with its storages: first the
// tombstones, then the objects of each storage, then the recorded objects, at last the newest signed
// checkpoint of each storage. With Apply it enters what the
// Registry does not know, as Run does. An object that contradicts the record is named and stays as it is
// in both. After it was killed, a repeat with Apply goes on after the last portion that it had noted; it
// comes to the same. Without Apply each call begins anew.
//
// Nothing may write to the Registry and its storages meanwhile. It keeps a portion of objects in memory,
// each without its list of files.
func Reconcile(ctx context.Context, o ReconcileOptions) (Comparison, error) {
	c := &comparing{ReconcileOptions: o, to: dry{o.To}}
	if o.Apply {
		c.to = o.To
	}
	if c.AtOnce == 0 {
		c.AtOnce = 8
	}
	if err := c.begin(ctx); err != nil {
		return c.report, err
	}
	var err error
	if c.known, err = c.knownKeys(ctx); err != nil {
		return c.report, err
	}
	if c.forks, err = forks(ctx, c.Roots, c.Keys); err != nil {
		return c.report, err
	}
	w := walk{
		places: new(sync.Map),
		roots:  c.Roots, keys: c.known, atOnce: c.AtOnce, state: &c.state, tombstone: c.tombstone, object: c.object, save: c.save,
		unreadable: func(o *Object) error { return c.add(Finding{Object: *o}, func(r *Comparison) { r.Unreadable++ }) },
	}
	if err := w.all(ctx); err != nil {
		return c.report, err
	}
	if err := c.recorded(ctx); err != nil {
		return c.report, err
	}
	s := signed{
		roots: c.Roots, keys: c.Keys, stones: c.known, atOnce: c.AtOnce, to: c.to, look: true, places: w.places, forks: c.forks,
		unreadable: w.unreadable, contradicted: c.contradicted, lost: c.lost,
		progress: func(compared int64) { c.report.Compared = compared; c.progress() },
	}
	if err := s.all(ctx); err != nil {
		return c.report, err
	}
	c.report.Compared = 0
	c.state.Ended = o.Now()
	return c.report, c.save(ctx)
}

// comparing is a Reconcile.
type comparing struct {
	ReconcileOptions
	to    registry.Reconciling
	state registry.RebuildState
	known []receipt.PublicKey      // the trusted keys, and those of the record; none: all count
	forks map[string]evidence.Fork // as in signed
	met   met

	mu     sync.Mutex
	report Comparison
}

// begin reads how far an earlier run was, or notes that one begins.
func (c *comparing) begin(ctx context.Context) error {
	c.state = registry.RebuildState{Begun: c.Now(), Storages: c.Roots.Names()}
	if !c.Apply {
		return nil
	}
	before, err := c.to.ReconcileState(ctx)
	if err != nil {
		return err
	}
	if before.Open() && slices.Equal(before.Storages, c.state.Storages) {
		if err := goOn(&c.state, before, &c.report); err != nil {
			return err
		}
		c.report.Before = c.report.Objects
	}
	return c.save(ctx)
}

// knownKeys returns the keys of tombstones, receipts and events that count: those that are trusted, and those that
// the record knows. For what changes a record it does not suffice that anybody signed.
func (c *comparing) knownKeys(ctx context.Context) ([]receipt.PublicKey, error) {
	rows, err := c.to.ReceiptKeys(ctx)
	if err != nil {
		return nil, err
	}
	recorded, err := receipt.RecordedKeys(rows)
	return slices.Concat(c.Keys, recorded), err
}

// progress tells what was compared so far.
func (c *comparing) progress() {
	if c.Progress != nil {
		c.Progress(c.report)
	}
}

// save notes how far it is.
func (c *comparing) save(ctx context.Context) error {
	c.progress()
	state, err := noted(c.state, c.report)
	if err != nil {
		return err
	}
	return c.to.SaveReconcile(ctx, state)
}

// add counts an object, and tells of it if there is anything to say.
func (c *comparing) add(f Finding, count func(*Comparison)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	count(&c.report)
	if f.faulty() {
		c.report.Damaged++
	}
	if len(f.Disagrees) > 0 {
		c.report.Disagree++
	}
	c.progress()
	if c.Found == nil || !f.faulty() && len(f.Adopted) == 0 && len(f.Disagrees) == 0 {
		return nil
	}
	return c.Found(f)
}

// tombstone compares a tombstone with the record of its object.
func (c *comparing) tombstone(ctx context.Context, b *buried) error {
	k, err := c.to.Recorded(ctx, b.ID)
	if err != nil || k.Gone != "" {
		return err // it was entered before, or was known
	}
	f, d := Finding{Object: b.Object, Recorded: k.Head}, b.deletion
	if !b.trusted {
		f.disagree("storage %s has a tombstone of it that none of the known keys signed, which does not count: if a key of yours signed it, repeat with --key FILE", f.Copies[0].Storage)
		return c.add(f, func(*Comparison) {})
	}
	by := fmt.Sprintf("it was deleted: asked for by %s, approved by %s: %s", d.AskedBy, d.ApprovedBy, d.Reason)
	if k.Head > 0 {
		f.adopt("%s; its deletion goes on with item %s", by, d.ItemID)
		err = c.to.EnterDeletion(ctx, d)
	} else {
		f.adopt("%s", by)
		var taken []registry.TakenID
		taken, err = c.to.Enter(ctx, b.entered())
		for _, id := range taken {
			f.disagree("%s: two objects for one local id", takenText(id))
		}
	}
	if err != nil {
		return err
	}
	return c.add(f, func(r *Comparison) { r.Deleted++ })
}

// object compares an object with its record.
func (c *comparing) object(ctx context.Context, id string, in registry.Place) error {
	k, err := c.to.Recorded(ctx, id)
	if err != nil {
		return err
	}
	fork := c.forks[id]
	if k.LastEvent > fork.End.Seq { // the record knows how the chain went on
		fork.End = receipt.ChainEnd{Object: id, Seq: k.LastEvent, Hash: k.LastHash}
	}
	o, err := Find(ctx, c.Roots, c.Keys, fork, id, in)
	if err != nil {
		return err
	}
	o.met, o.recorded = &c.met, &k
	f := &Finding{Object: *o, Recorded: k.Head}
	count := func(r *Comparison) { r.Objects++ }
	switch gone, err := c.gone(ctx, f, k); {
	case err != nil:
		return err
	case gone:
		return c.add(*f, count)
	case o.Head == 0 && k.Head == 0:
		f.Faults = append(f.Faults, "no storage has a version whose inventory is right")
		return c.add(*f, func(r *Comparison) { r.Unreadable++ })
	}
	f.compare(k, c.Roots)
	if len(c.known) > 0 {
		if file, there := f.evidence.Strange(c.known, k.Head, k.LastEvent); there {
			f.disagree("%s says more than the Registry has, and none of the known keys signed it, so nothing of the object was adopted: if a key of yours signed it, repeat with --key FILE", file)
		}
	}
	if len(f.Disagrees) == 0 {
		if err := c.adopt(ctx, f, k); err != nil {
			return err
		}
	}
	return c.add(*f, func(r *Comparison) {
		r.Objects++
		if len(f.Adopted) > 0 {
			r.Adopted++
			r.Versions += int64(max(0, f.Head-k.Head))
		}
		if k.Announced > 0 && len(f.Adopted) == 0 {
			r.Open++
		}
	})
}

// gone reports whether the object is deleted, or will be.
func (c *comparing) gone(ctx context.Context, f *Finding, k registry.RecordedObject) (bool, error) {
	if k.Gone == registry.DeletionDeleting {
		return true, nil // its deletion goes on
	}
	buried := false
	if k.Gone == "" && c.Apply {
		return false, nil // of a tombstone it would be gone
	}
	for _, root := range c.Roots {
		is, err := isBuried(ctx, root, f.ID, c.known)
		if err != nil {
			return false, err
		}
		buried = buried || is
	}
	if k.Gone == "" && !buried {
		return false, nil
	}
	f.forget()
	switch {
	case k.Gone == "": // without Apply the tombstone was not entered
	case buried:
		f.disagree("it was deleted, and files of it are left: remove them as its two people decided")
	default:
		f.disagree("it is deleted in the Registry, and no storage has its tombstone: these storages are older than the Registry")
	}
	return true, nil
}

// forget drops the faults of an object that does not count.
func (f *Finding) forget() {
	f.Faults = nil
	for i := range f.Copies {
		f.Copies[i].Faults = nil
	}
}

// compare compares what both have of an object.
func (f *Finding) compare(k registry.RecordedObject, roots ocfl.Roots) {
	for _, v := range k.Versions {
		stored := f.inventory(v.Version)
		if stored == "" {
			f.disagree("version %d is recorded, and no storage has its inventory right", v.Version)
			continue
		}
		if v.Inventory != "" && v.Inventory != stored {
			f.disagree("version %d has the inventory %s, and the Registry recorded %s", v.Version, stored, v.Inventory)
		}
	}
	if len(k.Versions) == 0 {
		return
	}
	for _, r := range k.Versions[len(k.Versions)-1].Replicas {
		known := slices.ContainsFunc(roots, func(root ocfl.Named) bool { return root.Name == r.Storage })
		there := slices.ContainsFunc(f.Copies, func(c Copy) bool { return c.Storage == r.Storage })
		if known && !there {
			f.fault("storage %s has nothing of it, and had version %d", r.Storage, k.Head)
		}
	}
}

// adopt enters what the Registry does not know of an object that does not contradict it.
func (c *comparing) adopt(ctx context.Context, f *Finding, k registry.RecordedObject) error {
	goesOn, err := f.goesOn(ctx, k)
	if err != nil {
		return err
	}
	if goesOn {
		f.until(k.Head)
	} else {
		f.interrupted()
		for _, c := range f.Copies {
			if c.left != "" {
				f.disagree("storage %s: %s", c.Storage, leftText(&c))
			}
		}
	}
	newer := f.Head > k.Head
	replicas := f.newReplicas(k)
	longer := f.evidence.Ends() > k.LastEvent
	switch {
	case newer && k.Head == 0:
		f.adopt("%s, which the Registry did not know", versionsText(1, f.Head))
	case newer:
		f.adopt("%s, which the Registry did not know: it had version %d", versionsText(k.Head+1, f.Head), k.Head)
	}
	if forked, err := c.forked(ctx, f, k, newer || longer); err != nil || forked {
		return err
	}
	ids, err := f.localIDs(ctx)
	if err != nil {
		return err
	}
	if f.taken, err = c.to.TakenIDs(ctx, f.ID, ids); err != nil {
		return err
	}
	for _, v := range replicas {
		for _, r := range v.Replicas {
			f.adopt("version %d in storage %s, where the Registry did not know it", v.Version, r.Storage)
		}
	}
	if len(replicas) > 0 {
		if _, err := c.to.Enter(ctx, registry.Entered{ObjectID: f.ID, Versions: replicas}); err != nil {
			return err
		}
	}
	if newer || longer {
		if newer && k.Announced > 0 {
			if err := c.to.WithdrawVersion(ctx, f.ID); err != nil {
				return err
			}
		}
		if err := f.Enter(ctx, c.to, k.Head); err != nil {
			return err
		}
	}
	for _, id := range f.taken {
		f.disagree("%s: two objects for one local id", takenText(id))
	}
	return nil
}

// goesOn reports whether the job that announced a version writes it to its end: no storage has another
// one in its place.
func (f *Finding) goesOn(ctx context.Context, k registry.RecordedObject) (bool, error) {
	switch {
	case k.Announced == 0 || k.Announced < f.Head:
		return false, nil
	case k.Announced > f.Head:
		return true, nil
	}
	if f.evidence.Right(f.Head) {
		return false, nil // it was recorded
	}
	c := f.with(f.Head)
	inv, err := c.root.Committed(ctx, f.Stored(), f.Head)
	if err != nil {
		return false, err
	}
	e := &entering{Object: &Object{ID: f.ID, Place: f.Place}, ctx: ctx}
	said, err := e.described(c, inv, f.Head)
	return err == nil && said.Item == k.AnnouncedBy, err
}

// until forgets the versions after one.
func (f *Finding) until(version int) {
	f.Head = min(f.Head, version)
	for i := range f.Copies {
		c := &f.Copies[i]
		for v := range c.inventories {
			if v > version {
				delete(c.inventories, v)
			}
		}
		c.Head = min(c.Head, version)
	}
}

func versionsText(first, last int) string {
	if first == last {
		return fmt.Sprintf("version %d", first)
	}
	return fmt.Sprintf("versions %d to %d", first, last)
}

// newReplicas returns recorded versions that are in storages of which the Registry does not know it.
func (f *Finding) newReplicas(k registry.RecordedObject) (out []registry.EnteredVersion) {
	for _, v := range k.Versions {
		e := registry.EnteredVersion{Padding: f.Padding, ObjectVersion: v}
		e.Replicas, e.Inventory = nil, ""
		for _, c := range f.Copies {
			known := slices.ContainsFunc(v.Replicas, func(r registry.Replica) bool { return r.Storage == c.Storage })
			if !known && c.inventories[v.Version] != "" {
				e.Replicas = append(e.Replicas, registry.Replica{Storage: c.Storage})
			}
		}
		if len(e.Replicas) > 0 {
			out = append(out, e)
		}
	}
	return out
}

// forked reports whether the chain of events in the storages is another one than the recorded one. It
// happens when something was done to the object between the restore and the comparison. If not, and enters
// is set, it says which events will be entered.
func (c *comparing) forked(ctx context.Context, f *Finding, k registry.RecordedObject, enters bool) (bool, error) {
	if !enters || k.LastEvent == 0 {
		return false, nil
	}
	var at int64 // of the newest event that both may have
	var hash string
	report, err := f.evidence.Read(ctx, evidence.Reader{Event: func(e receipt.Event, of string) error {
		if e.Seq <= k.LastEvent {
			at, hash = e.Seq, of
		}
		return nil
	}})
	if err != nil || at == 0 {
		return false, err
	}
	recorded := k.LastHash
	if at < k.LastEvent {
		if recorded, err = c.to.EventHash(ctx, f.ID, at); err != nil {
			return false, err
		}
	}
	if recorded != hash {
		f.Adopted = nil
		f.disagree("event %d of its chain is another one in the storages than in the Registry: something was done to it after the restore and before this comparison, so nothing of it was adopted", at)
		return true, nil
	}
	if report.Last > k.LastEvent {
		f.adopt("events %d to %d of its chain", k.LastEvent+1, report.Last)
	}
	return false, nil
}

// localIDs returns the local ids of an object, as the receipt of its newest version says.
func (f *Finding) localIDs(ctx context.Context) (ids []registry.OwnedID, err error) {
	for _, c := range f.Copies {
		place, err := evidence.In(c.root.Root, f.ID, f.Place)
		if err != nil {
			return nil, err
		}
		h, there, err := place.Header(ctx, f.Head)
		if err != nil {
			return nil, err
		} else if !there {
			continue
		}
		for _, id := range h.LocalIDs {
			ids = append(ids, registry.OwnedID{Owner: h.Owner, LocalID: id})
		}
		return ids, nil
	}
	return nil, nil
}

// recorded looks for the recorded objects that no storage has.
func (c *comparing) recorded(ctx context.Context) error {
	if !c.state.Recorded {
		c.state.Recorded, c.state.Storage, c.state.After = true, "", ""
		if err := c.save(ctx); err != nil {
			return err
		}
	}
	for {
		ids, err := c.to.RecordedAfter(ctx, c.state.After, portion)
		if err != nil || len(ids) == 0 {
			return err
		}
		p := portions{atOnce: c.AtOnce, done: func(last string) error {
			c.state.After = last
			return c.save(ctx)
		}}
		for _, id := range ids {
			if err := p.run(ctx, id, func(ctx context.Context) error { return c.looked(ctx, id) }); err != nil {
				return err
			}
		}
		if err := p.end(); err != nil {
			return err
		}
	}
}

// lost counts an object of whose events some are lost.
func (c *comparing) lost() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Lost++
}

// contradicted tells of an object that a checkpoint contradicts.
func (c *comparing) contradicted(o *Object) error {
	f := Finding{Object: Object{ID: o.ID}}
	for _, copied := range o.Copies {
		for _, fault := range copied.Faults {
			f.disagree("in storage %s: %s", copied.Storage, fault)
		}
	}
	return c.add(f, func(*Comparison) {})
}

// looked looks for a recorded object in all storages.
func (c *comparing) looked(ctx context.Context, id string) error {
	k, err := c.to.Recorded(ctx, id)
	if err != nil {
		return err
	}
	for _, root := range c.Roots {
		switch _, err := root.Head(ctx, k.Stored()); {
		case err == nil || unreadable(err):
			return nil // it was compared
		case !errors.Is(err, ocfl.ErrNotFound):
			return err
		}
	}
	for _, root := range c.Roots {
		is, err := isBuried(ctx, root, id, c.known)
		if err != nil || is { // without Apply the deletion was not entered
			return err
		}
	}
	f := Finding{Object: Object{ID: id}, Recorded: k.Head}
	f.disagree("version %d is recorded, and no storage has the object", k.Head)
	return c.add(f, func(r *Comparison) { r.Objects++ })
}

// dry is a Registry that is read, and not changed.
type dry struct{ registry.Reconciling }

// SaveReconcile implements registry.Reconciling.
func (dry) SaveReconcile(context.Context, registry.RebuildState) error { return nil }

// EnterKeys implements registry.Rebuilding.
func (dry) EnterKeys(context.Context, []registry.ReceiptKey) error { return nil }

// Enter implements registry.Rebuilding.
func (d dry) Enter(ctx context.Context, e registry.Entered) ([]registry.TakenID, error) {
	if e.Object == nil {
		return nil, nil
	}
	return d.TakenIDs(ctx, e.ObjectID, e.Object.IDs)
}

// WithdrawVersion implements registry.Reconciling.
func (dry) WithdrawVersion(context.Context, string) error { return nil }

// EnterDeletion implements registry.Reconciling.
func (dry) EnterDeletion(context.Context, registry.Deletion) error { return nil }
