package workers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/ezid"
	"github.com/holdfast/holdfast/format"
	"github.com/holdfast/holdfast/gate"
	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/mint"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source/unpack"
)

// Names of durable results that Process leaves.
const (
	resultPlan    = "plan"    // everything that a repeat needs to write the same bytes (R2)
	resultVersion = "version" // the version that this item stored
	resultChanges = "changes" // key of the list of its changes, where that is not the plan's own
	// resultChangesDigest is the digest of that list.
	resultChangesDigest = "changes-digest"
)

// intentWait is how long a job waits while another one's version of its object is open.
const intentWait = time.Minute

// Process turns staged files into a version of an object: it unpacks and validates, finds or mints the identifier,
// plans the version with Merritt's system files, announces the plan in the Registry, and only then writes it, verified
// at the destination. From the announcement on a repeat writes the same bytes.
type Process struct {
	base.Worker
	Registry registry.ForWorkers
	Objects  ocfl.Roots
	Template mint.Template
	ARKs     intake.ARKs // judges supplied names
	Names    names
	Random   io.Reader
	Version  string // of the program
	// Identifier finds the formats of files; nil: their media type is all that is known.
	Identifier format.Identifier
	Unpack     unpack.Limits
	Gate       *gate.Gate // for memory to decompress containers in; nil: as much as they take
	TempDir    string     // of temporary files, which large bags need
	payloads   payloads
	volume     volume
	scanner    scanner

	minting sync.Mutex // guards Random
}

// Stage implements base.Handler.
func (w *Process) Stage() registry.Stage { return registry.Process }

// Work implements base.Handler.
func (w *Process) Work(ctx context.Context, item *base.Item) error {
	if who, ok := item.Abandonment(); ok && who.ApprovedBy != "" {
		return w.abandon(ctx, item, who)
	}
	var p plan
	err := item.Once(ctx, resultPlan, &p, func(ctx context.Context) (any, error) { return w.plan(ctx, item) })
	if errors.Is(err, registry.ErrIntentOpen) {
		return base.Snooze(intentWait, registry.ReasonLocked, err.Error())
	} else if err != nil {
		return waitForRoom(w.mend(ctx, item, err))
	}
	err = w.commit(ctx, item, p)
	if p.unusable(err) {
		err = w.commitAgain(ctx, item, p, err)
	}
	if err != nil {
		return fmt.Errorf("store version %d of %s in storage %q: %w", p.Version, p.ObjectID, item.Storages[0], err)
	}
	if f := p.Formats; f != nil && unpacks(item.Spec().Type) {
		// What was fetched was one file; what it held is what its depositor counts.
		item.SetSize(item.SizeBytes, f.Files)
		item.SetDone(item.DoneBytes, f.Files)
	}
	if err := item.Event("stored", map[string]any{
		"object_id": p.ObjectID, "version": p.Version, "files": p.Files, "bytes": p.Bytes,
	}); err != nil {
		return err
	}
	if err := item.SetResult(resultReplica(item.Storages[0]), replicaResult{VerifiedAt: item.Now()}); err != nil {
		return err
	}
	return item.SetResult(resultVersion, p.Version)
}

// plan prepares a version and announces it. It returns the plan that holds: an earlier attempt's, if that got so far.
func (w *Process) plan(ctx context.Context, item *base.Item) (plan, error) {
	d, err := w.read(ctx, item)
	if base.ContentFault(err) && ctx.Err() == nil {
		// Staging may have given other bytes than it has, just once: nobody is blamed for what only one reading shows (R6).
		d, err = w.read(ctx, item)
	}
	if refusal := (*bagRefusal)(nil); errors.As(err, &refusal) {
		err = errors.Join(err, item.Event("bag-refused", refused(refusal.report)))
	}
	if err != nil {
		return plan{}, err
	}
	scan, err := w.scanned(ctx, item, d.contents)
	if err != nil {
		return plan{}, w.giveUp(ctx, item, err)
	}
	id, err := w.identify(ctx, item, d)
	if err != nil {
		return plan{}, w.giveUp(ctx, item, err)
	}
	p, err := w.draft(ctx, item, d, id, plan{
		Created: item.Now().UTC().Truncate(time.Second), Software: "Holdfast " + w.Version, Scan: scan,
	})
	if err != nil {
		return plan{}, err
	}
	return w.announce(ctx, item, p)
}

// read takes what was downloaded apart, judges it and describes it. After a fault of the content it begins anew.
func (w *Process) read(ctx context.Context, item *base.Item) (description, error) {
	files, err := w.contents(ctx, item)
	if err != nil {
		return description{}, err
	}
	d, err := w.describe(ctx, item, files)
	if err != nil {
		return description{}, w.giveUp(ctx, item, err)
	}
	return d, nil
}

// identify settles the object's name, minting one when it has none. A minted name is chosen here and belongs to the
// item from the moment the Registry has it, so that no kill can mint twice (R8). Where EZID keeps it, it is reserved there.
func (w *Process) identify(ctx context.Context, item *base.Item, d description) (registry.Identity, error) {
	spec := item.Spec()
	if spec.Mode == registry.Update && d.metadata.PrimaryID == "" && len(d.metadata.LocalIDs) == 0 {
		return registry.Identity{}, base.Content(registry.ErrUpdatesNothing)
	}
	ask := registry.IdentifyRequest{
		Owner: spec.Profile.Owner, Supplied: d.metadata.PrimaryID, LocalIDs: d.metadata.LocalIDs,
		Existing: spec.Mode == registry.Update, EZID: spec.Profile.Minting == registry.MintEZID,
	}
	if ask.Supplied != "" {
		// Before it is bound to anything.
		if err := w.admit(ctx, item, ask.Supplied, -1, true); err != nil {
			return registry.Identity{}, err
		}
	}
	const tries = 10
	for range tries {
		var err error
		if ask.Proposed, err = w.mint(item); err != nil {
			return registry.Identity{}, err
		}
		id, err := w.Registry.Identify(ctx, item.Lease(), ask)
		if errors.Is(err, registry.ErrTaken) {
			continue
		} else if err != nil {
			return id, err
		}
		if id, err = w.settled(ctx, item, ask, id); err != nil || id.EZIDItem == "" || id.Head > 0 {
			return id, err
		}
		// EZID has it before the version is planned, so that nothing is written under a name that it refuses.
		err = w.Names.reserve(ctx, item, id)
		if !ezid.Taken.Is(err) {
			return id, err
		}
		ask.Refused = id.ARK
	}
	return registry.Identity{}, fmt.Errorf("minted %d names that were all taken; give the collection a longer NOID template", tries)
}

func (w *Process) mint(item *base.Item) (string, error) {
	t := w.Template
	if own := item.Spec().Profile.NOIDTemplate; own != "" {
		var err error
		if t, err = mint.ParseTemplate(own); err != nil {
			return "", base.Fatal(fmt.Errorf("collection's NOID template: %w", err))
		}
		if t.NAAN == "" {
			if t, err = t.WithNAAN(w.Template.NAAN); err != nil {
				return "", base.Fatal(fmt.Errorf("collection's NOID template: %w", err))
			}
		}
	}
	w.minting.Lock()
	defer w.minting.Unlock()
	ark, err := t.Mint(w.Random)
	if err != nil {
		return "", fmt.Errorf("mint: %w", err)
	}
	return ark.String(), nil
}
