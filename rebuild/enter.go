package rebuild

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/holdfast/holdfast/evidence"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
)

// Enter enters the object's versions after those that the Registry has, with their files, events and
// receipts, and makes them visible together. entered is the newest version that it has. A repeat goes on
// with what is missing. What it cannot enter becomes a fault of the object. An object without a right
// version is not entered.
func (o *Object) Enter(ctx context.Context, to registry.Rebuilding, entered int) error {
	if o.Head == 0 {
		o.fault("no storage has a version whose inventory is right")
		return nil
	}
	e := &entering{
		Object: o, ctx: ctx, to: to, entered: entered, skipped: true, ids: map[registry.OwnedID]bool{},
		part: part{to: to, next: registry.Entered{ObjectID: o.ID}},
	}
	if err := e.all(); err != nil {
		return fmt.Errorf("enter %s: %w", o.ID, err)
	}
	return nil
}

// entering is an Enter that runs.
type entering struct {
	*Object
	ctx     context.Context //nolint:containedctx // it lives for one call
	to      registry.Rebuilding
	part    part
	entered int // the newest version that the Registry had before

	// Of the version that is read.
	header    receipt.Header
	head      string
	signature []byte
	// Of the receipt that is read next.
	nextHead      string
	nextSignature []byte

	skipped bool
	files   *fileRows

	done   int // the newest version that was entered
	object registry.EnteredObject
	ids    map[registry.OwnedID]bool
	last   int64 // the newest event that the newest receipt has

	terms    registry.Terms // that an admin assigned last
	assigned int64          // the event of it; 0: nobody did
	storages []string       // of the newest version, as its receipt orders them
}

func (e *entering) all() error {
	report, err := e.evidence.Read(e.ctx, evidence.Reader{
		Head: func(_ int, head string, signature []byte) error {
			e.nextHead, e.nextSignature = head, signature
			return nil
		},
		Receipt: e.receipt,
		File: func(_ int, f receipt.File) error {
			if e.skipped {
				return nil
			}
			return e.files.add(e.ctx, fileOf(f))
		},
		Event: e.event,
	})
	if err != nil {
		return err
	}
	if err := e.endVersion(); err != nil {
		return err
	}
	for _, f := range report.Faults {
		if f.File == "" {
			e.fault("%v", f)
		}
	}
	if report.Unsigned > 0 {
		e.fault("nobody signed %d files of its evidence", report.Unsigned)
	}
	if err := e.withoutReceipt(e.Head + 1); err != nil {
		return err
	}
	e.object.IDs = slices.SortedFunc(maps.Keys(e.ids), func(a, b registry.OwnedID) int {
		return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.LocalID, b.LocalID))
	})
	switch {
	case e.assigned > e.last:
		e.object.Terms = e.terms
	case e.recorded != nil && e.recorded.Head == e.Head: // who set them since may have an event that the storages lack
		e.object.Terms = e.recorded.Terms
	}
	e.object.ID, e.object.Head, e.object.Place = e.ID, e.Head, e.Place
	e.object.Evidence = e.places()
	if e.object.Profile, err = e.profile(); err != nil {
		return err
	}
	for _, key := range e.evidence.Keys {
		if err := e.met.enterKey(e.ctx, e.to, key); err != nil {
			return err
		}
	}
	e.part.next.Object = &e.object
	if e.taken, err = e.part.end(e.ctx); err != nil {
		return err
	}
	e.met.collections.Store(e.object.Collection, true) // not earlier: until then another object must bring the profile, too
	return nil
}

// places returns how far the chain lies in each storage, where segments have more of it than receipts.
func (e *entering) places() (out []registry.EvidencePlace) {
	for i := range e.evidence.Copies {
		if c := &e.evidence.Copies[i]; c.Segments > 0 {
			out = append(out, registry.EvidencePlace{Storage: e.Copies[i].Storage, Seq: c.Last(), Segments: c.Segments})
		}
	}
	return out
}

// receipt begins a version with the header of its receipt.
func (e *entering) receipt(h receipt.Header) error {
	if err := e.endVersion(); err != nil {
		return err
	}
	if h.Version <= e.done { // its place was taken from the inventory, or it came twice
		e.skipped = true
		return nil
	}
	e.skipped = !e.evidence.Right(h.Version) || h.Version > e.Head || e.inventory(h.Version) == ""
	switch {
	case h.Version > e.Head:
		e.fault("there is a receipt of version %d, but no storage has its inventory right", h.Version)
	case !e.evidence.Right(h.Version):
		e.fault("the receipt of version %d is damaged", h.Version)
	}
	e.header, e.head, e.signature = h, e.nextHead, e.nextSignature
	if e.skipped {
		return nil
	}
	if err := e.withoutReceipt(h.Version); err != nil {
		return err
	}
	if h.Format < 3 { // it does not say these
		c := e.with(h.Version)
		inv, err := c.root.Committed(e.ctx, e.Stored(), h.Version)
		if err != nil {
			return err
		}
		said, err := e.described(c, inv, h.Version)
		if err != nil {
			return err
		}
		e.header.Collection, e.header.Item, e.header.Named = said.Collection, said.Item, said.Named
	}
	e.files = e.rows(h.Version, e.checked(h))
	return nil
}

// checked returns when the files of a version had been verified in every storage that has it; zero:
// that is not known.
func (e *entering) checked(h receipt.Header) (at time.Time) {
	for i, r := range e.replicas(h.Version, h.Replicas) {
		if i == 0 || r.VerifiedAt.Before(at) {
			at = r.VerifiedAt
		}
	}
	return at
}

// replicas returns the storages that have a version right, with the times at which its receipt says
// that they were verified.
func (e *entering) replicas(version int, said []receipt.Replica) (out []registry.Replica) {
	for _, c := range e.Copies {
		if c.inventories[version] == "" {
			continue
		}
		r := registry.Replica{Storage: c.Storage}
		for _, s := range said {
			if s.Storage == c.Storage {
				r.VerifiedAt = s.Verified
			}
		}
		out = append(out, r)
	}
	return out
}

// endVersion enters the version whose receipt was read.
func (e *entering) endVersion() error {
	h := e.header
	if e.header.Version == 0 || e.skipped {
		return nil
	}
	e.header = receipt.Header{}
	if err := e.files.end(e.ctx); err != nil {
		return err
	}
	v := registry.EnteredVersion{
		Padding: e.Padding, LastHash: h.Events.After,
		ObjectVersion: registry.ObjectVersion{
			Version: h.Version, ItemID: h.Item, Files: h.Files, SizeBytes: h.Bytes, CreatedAt: h.Created, RecordedAt: h.Recorded,
			Inventory: e.inventory(h.Version), Replicas: e.replicas(h.Version, h.Replicas),
		},
		Receipt: &registry.DepositReceipt{
			ObjectID: e.ID, Version: h.Version, KeyID: h.Key, Head: e.head, Signature: e.signature,
			FirstEvent: h.Events.First, LastEvent: h.Events.Last(),
		},
	}
	if h.Format >= 3 && h.Item == "" { // no job made it
		e.Adopted = h.Version
	}
	e.storages = nil
	for _, r := range h.Replicas {
		e.storages = append(e.storages, r.Storage)
	}
	for _, r := range h.Replicas {
		if r.Inventory != v.Inventory {
			e.fault("version %d has the inventory %s, and its receipt says %s", h.Version, v.Inventory, r.Inventory)
			break
		}
	}
	e.version(v, registry.EnteredObject{
		MintedFor: h.Item, EZIDItem: h.EZIDItem, ProfileVersion: h.ProfileVersion,
		Object: registry.Object{
			Collection: h.Collection, Owner: h.Owner, LocalIDs: h.LocalIDs, Title: h.Title, Creator: h.Creator, Date: h.Date,
			Terms: termsOf(h.Terms), CreatedAt: h.Named,
		},
	})
	return nil
}

// version enters a version, unless the Registry had it, and notes what the object is with it.
func (e *entering) version(v registry.EnteredVersion, o registry.EnteredObject) {
	if v.Version > e.entered {
		e.part.next.Versions = append(e.part.next.Versions, v)
	}
	if e.object.MintedFor != "" {
		o.MintedFor = e.object.MintedFor
	}
	if !e.object.CreatedAt.IsZero() {
		o.CreatedAt = e.object.CreatedAt
	}
	for _, id := range o.LocalIDs {
		e.ids[registry.OwnedID{Owner: o.Owner, LocalID: id}] = true
	}
	o.Files, o.SizeBytes, o.UpdatedAt = v.Files, v.SizeBytes, v.RecordedAt
	e.object, e.done = o, v.Version
	if v.Receipt != nil {
		e.last = v.Receipt.LastEvent
	}
}

// event enters an event of the chain. Terms that an admin assigned after the newest version count.
func (e *entering) event(ev receipt.Event, hash string) error {
	p := registry.Premis{
		ID: ev.ID, ObjectID: e.ID, Version: ev.Version, Type: ev.Type, At: ev.At, Agent: ev.Agent, Outcome: ev.Outcome, Detail: ev.Detail,
		Seq: ev.Seq, Hash: hash,
	}
	if ev.Version == e.header.Version && ev.Seq <= e.header.Events.Last() && !e.skipped {
		p.ItemID = e.header.Item // an event of the version that is in its own receipt
	}
	if terms, ok := registry.TermsIn(ev.Detail); ok && ev.Type == registry.PolicyAssignment {
		e.terms, e.assigned = terms, ev.Seq
	}
	if e.recorded != nil && ev.Seq <= e.recorded.LastEvent {
		return nil
	}
	return e.part.event(e.ctx, p)
}

// fileOf converts a file of a receipt. Its version is that from which on the path has this content.
func fileOf(f receipt.File) registry.File {
	out := registry.File{
		Path: f.Path, Version: f.Since, ContentPath: f.Content, SizeBytes: f.Size, Digests: f.Digests, MIMEType: f.MIMEType, Modified: f.Modified,
	}
	if f.Format != nil {
		out.Format = &registry.Format{PUID: f.Format.PUID, Name: f.Format.Name, Version: f.Format.Version, Registry: f.Format.Registry, Warning: f.Format.Warning}
	}
	return out
}

// termsOf is the inverse of receipt.TermsOf.
func termsOf(t receipt.Terms) registry.Terms {
	out := registry.Terms{PreservationLevel: t.PreservationLevel, EmbargoUntil: t.EmbargoUntil, EmbargoReason: t.EmbargoReason}
	if t.Basis != "" {
		out.Rights = &registry.Rights{Basis: registry.RightsBasis(t.Basis), Status: t.Status, Jurisdiction: t.Jurisdiction, Statement: t.Statement, URI: t.URI}
	}
	return out
}
