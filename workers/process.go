package workers

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/workers/content"
	"github.com/holdfast/holdfast/workers/identity"
	"github.com/holdfast/holdfast/workers/payload"
	"github.com/holdfast/holdfast/workers/result"
	"github.com/holdfast/holdfast/workers/room"
	"github.com/holdfast/holdfast/workers/scanning"
	"github.com/holdfast/holdfast/workers/version"
)

// intentWait is how long a job waits while another one's version of its object is open.
const intentWait = time.Minute

// Process turns staged files into a version of an object: it unpacks and validates, finds or mints
// the identifier, plans the version with Merritt's system files, announces the plan in the
// Registry, and only then writes it, verified at the destination. From the announcement on a repeat
// writes the same bytes.
type Process struct {
	base.Worker
	opener  *content.Opener
	scanner scanning.Scanner
	namer   *identity.Namer
	maker   *version.Maker
	version string // of the program
}

// Stage implements base.Handler.
func (w *Process) Stage() registry.Stage { return registry.Process }

// Work implements base.Handler.
func (w *Process) Work(ctx context.Context, item *base.Item) error {
	if who, ok := item.Abandonment(); ok && who.ApprovedBy != "" {
		return w.maker.Abandon(ctx, item, who)
	}
	var p result.Plan
	err := item.Once(ctx, result.NamePlan, &p, func(ctx context.Context) (any, error) { return w.plan(ctx, item) })
	if errors.Is(err, registry.ErrIntentOpen) {
		return base.Snooze(intentWait, registry.ReasonLocked, err.Error())
	} else if err != nil {
		return room.Wait(w.opener.Mend(ctx, item, err))
	}
	if err := w.maker.Store(ctx, item, p); err != nil {
		return err
	}
	if f := p.Formats; f != nil && payload.Unpacks(item.Spec().Type) {
		// What was fetched was one file; what it held is what its depositor counts.
		item.SetSize(item.SizeBytes, f.Files)
		item.SetDone(item.DoneBytes, f.Files)
	}
	if err := item.Event("stored", map[string]any{
		"object_id": p.ObjectID, "version": p.Version, "files": p.Files, "bytes": p.Bytes,
	}); err != nil {
		return err
	}
	if err := item.SetResult(result.NameReplica(item.Storages[0]), result.Replica{VerifiedAt: item.Now()}); err != nil {
		return err
	}
	return item.SetResult(result.NameVersion, p.Version)
}

// plan prepares a version and announces it. It returns the plan that holds: an earlier attempt's,
// if that got so far.
func (w *Process) plan(ctx context.Context, item *base.Item) (result.Plan, error) {
	d, err := w.read(ctx, item)
	if base.ContentFault(err) && ctx.Err() == nil {
		// Staging may have given other bytes than it has, just once: a fault that only one reading
		// shows is no content fault (R6).
		d, err = w.read(ctx, item)
	}
	if err != nil {
		return result.Plan{}, content.NoteRefusal(item, err)
	}
	scan, err := w.scanned(ctx, item, d.Contents)
	if err != nil {
		return result.Plan{}, w.opener.GiveUp(ctx, item, err)
	}
	id, err := w.namer.Identify(ctx, item, d.Metadata.PrimaryID, d.Metadata.LocalIDs)
	if err != nil {
		return result.Plan{}, w.opener.GiveUp(ctx, item, err)
	}
	p, err := w.maker.Draft(ctx, item, d, id, result.Plan{
		Created: item.Now().UTC().Truncate(time.Second), Software: "Holdfast " + w.version, Scan: scan,
	})
	if err != nil {
		return result.Plan{}, err
	}
	return w.maker.Announce(ctx, item, p)
}

// read opens what was downloaded, judges and describes it. After a fault of the content it begins
// anew.
func (w *Process) read(ctx context.Context, item *base.Item) (version.Description, error) {
	files, err := w.opener.Open(ctx, item)
	if err != nil {
		return version.Description{}, err
	}
	d, err := w.maker.Describe(ctx, item, files)
	if err != nil {
		return version.Description{}, w.opener.GiveUp(ctx, item, err)
	}
	return d, nil
}

// scanned returns what the scan of the files that are to be preserved came to; nil when the item
// takes none. What came out of a container is scanned now, file by file: clamd takes larger
// archives for clean unseen, and does not know all kinds.
func (w *Process) scanned(ctx context.Context, item *base.Item, c result.Contents) (*result.Scanned, error) {
	if !slices.Contains(item.Optional, registry.Scan) {
		return nil, nil //nolint:nilnil // none is an answer
	}
	s, err := result.ScanOf(item)
	if err == nil && c.List != c.From {
		s, err = w.scanner.Scan(ctx, item, c, false)
	}
	return &s, err
}
