package workers

import (
	"context"
	"encoding/json"
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

// intentWait is how long a job waits while another job's version of its object is open.
const intentWait = time.Minute

// Process makes a version of an object from staged files. It unpacks and validates them, finds or
// mints the identifier, and plans the version with Merritt's system files. It announces the plan in
// the Registry. Only then does it write the version, verified at the destination. After the
// announcement a repeat writes the same bytes.
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
	var d *version.Drafted
	err := item.OnceWith(ctx, registry.ResultPlan, &p, func(ctx context.Context) (holds json.RawMessage, err error) {
		if d, err = w.draft(ctx, item); err != nil {
			return nil, err
		}
		return w.maker.Announce(ctx, item, d)
	})
	if errors.Is(err, registry.ErrIntentOpen) {
		return base.Snooze(intentWait, registry.ReasonLocked, err.Error())
	} else if err != nil {
		return room.Wait(w.opener.Mend(ctx, item, err))
	}
	if err := w.maker.Store(ctx, item, p, d); err != nil {
		return err
	}
	if f := p.Formats; f != nil && payload.Unpacks(item.Spec().Type) {
		// One file was fetched, but the depositor counts the files in it.
		item.SetSize(item.SizeBytes, f.Files)
		item.SetDone(item.DoneBytes, f.Files)
	}
	if err := item.Event(registry.EventStored, map[string]any{
		"object_id": p.ObjectID, "version": p.Version, "files": p.Files, "bytes": p.Bytes,
	}); err != nil {
		return err
	}
	if err := item.SetResult(registry.ResultReplica(item.Storages[0]), result.Replica{VerifiedAt: item.Now()}); err != nil {
		return err
	}
	return item.SetResult(registry.ResultVersion, p.Version)
}

// draft prepares a version.
func (w *Process) draft(ctx context.Context, item *base.Item) (*version.Drafted, error) {
	d, err := w.openAndDescribe(ctx, item)
	if base.ContentFault(err) && ctx.Err() == nil {
		// Staging may have returned wrong bytes once. A fault counts as a content fault only if two
		// readings show it (R6).
		d, err = w.openAndDescribe(ctx, item)
	}
	if err != nil {
		return nil, content.NoteRefusal(item, err)
	}
	scan, err := w.scanContents(ctx, item, d.Contents)
	if err != nil {
		return nil, w.opener.GiveUp(ctx, item, err)
	}
	id, err := w.namer.Identify(ctx, item, d.Metadata.PrimaryID, d.Metadata.LocalIDs)
	if err != nil {
		return nil, w.opener.GiveUp(ctx, item, err)
	}
	return w.maker.Draft(ctx, item, d, id, result.Plan{
		Created: item.Now().UTC().Truncate(time.Second), Software: "Holdfast " + w.version, Scan: scan, Small: true,
	})
}

// openAndDescribe opens, judges and describes the downloaded files. After a content fault it starts
// over.
func (w *Process) openAndDescribe(ctx context.Context, item *base.Item) (version.Description, error) {
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

// scanContents returns the scan of the files to preserve; nil if the item needs none. The files of
// a container are scanned now, one by one: clamd reports larger archives as clean without scanning
// them, and does not know all kinds.
func (w *Process) scanContents(ctx context.Context, item *base.Item, c result.Contents) (*result.Scanned, error) {
	if !slices.Contains(item.Optional, registry.Scan) {
		return nil, nil //nolint:nilnil // nil is an answer
	}
	s, err := result.ScanOf(item)
	if err == nil && c.Key != c.From {
		s, err = w.scanner.Scan(ctx, item, c, false)
	}
	return &s, err
}
