package workers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/interim"
	"github.com/holdfast/holdfast/premis"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/workers/restore"
	"github.com/holdfast/holdfast/workers/tidy"
)

// restoreStuck is how long a restore may go without progress: that is how long a store may take to
// assemble a large file.
const restoreStuck = 2 * time.Hour

// Restore makes a version of an object available for download, as one tar on the staging volume
// (package restore). The Registry notifies the people who wait for it.
type Restore struct {
	base.Worker
	Restorer restore.Restorer
	Registry interface {
		registry.Restoring
		registry.Inventory
	}
	Staging storage.Store
	Interim interim.Store
	Version string
	Keep    time.Duration // how long it can be downloaded
}

// Stage implements base.Handler.
func (w *Restore) Stage() registry.Stage { return registry.Restore }

// StuckAfter implements base.Handler.
func (w *Restore) StuckAfter() time.Duration {
	if w.StuckFor > 0 {
		return w.StuckFor
	}
	return restoreStuck
}

// Work implements base.Handler.
func (w *Restore) Work(ctx context.Context, item *base.Item) error {
	known, err := w.Registry.RestorationOf(ctx, item.ID)
	if errors.Is(err, registry.ErrNotFound) {
		return base.Fatal(err)
	} else if err != nil {
		return err
	}
	if known.ReadyAt == nil {
		if err := w.restore(ctx, item, known); err != nil {
			return err
		}
	}
	return tidy.Release(ctx, item, item.ID, w.Staging, w.Interim)
}

// restore does the remaining work of a restore that is not ready.
func (w *Restore) restore(ctx context.Context, item *base.Item, known registry.Restoration) error {
	made, err := w.Restorer.Restore(ctx, item, known)
	if err != nil {
		return err
	}
	item.SetSize(made.SizeBytes, made.Files)
	item.SetDone(made.SizeBytes, made.Files)
	_, err = w.Registry.RecordRestoration(ctx, item.Lease(), registry.RestorationRecord{
		RestoredParcel: made.RestoredParcel,
		Keep:           w.Keep,
		Events: []registry.Premis{{
			ID: premis.EventID(item.ID, string(premis.Dissemination), "").Value, ObjectID: made.ObjectID, Version: known.Version, ItemID: item.ID,
			Type: string(premis.Dissemination), At: item.Now(), Agent: "Holdfast " + w.Version, Outcome: "success",
			Detail: fmt.Sprintf("restored as %s, a bag of %d files, %d bytes, sha256 %s, for %s%s", made.Name, made.Files, made.SizeBytes, made.SHA256, known.AskedBy, made.Findings),
		}},
	})
	return err
}

var _ base.Handler = (*Restore)(nil)
