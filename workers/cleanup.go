package workers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/interim"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/workers/tidy"
)

// subjectWait is how long it waits while its subject is at work again.
const subjectWait = time.Minute

// jobsDeleted is how long it is waited for the jobs of a batch to be deleted with it, before the
// upload that one of them may need is left to the search for orphans.
const jobsDeleted = 24 * time.Hour

// Cleanup removes what an item that was given up has left in staging; and what a worker from which
// an item was taken has written there after the item completed and gave everything back (R26). The
// Registry gives the room back with the settlement.
type Cleanup struct {
	base.Worker
	Registry registry.ForWorkers
	Staging  storage.Store
	Interim  interim.Store
	orphans  tidy.Orphans
}

// Stage implements base.Handler.
func (w *Cleanup) Stage() registry.Stage { return registry.Cleanup }

// Work implements base.Handler.
func (w *Cleanup) Work(ctx context.Context, item *base.Item) error {
	var spec registry.TidySpec
	if err := json.Unmarshal(item.WorkItem.Spec, &spec); err != nil || (spec.Subject == "") == (spec.Orphans == nil) {
		return base.Fatal(fmt.Errorf("decode spec: subject %q: %w", spec.Subject, err))
	}
	if spec.Orphans != nil {
		if err := w.orphans.Run(ctx, item, *spec.Orphans); err != nil {
			return err
		}
		return tidy.Release(ctx, item, item.ID, w.Staging, w.Interim)
	}
	subject, err := w.Registry.Item(ctx, spec.Subject)
	if err != nil && !errors.Is(err, registry.ErrNotFound) { // it may have been purged meanwhile
		return err
	}
	switch {
	case err != nil:
	case !subject.Status.Settled(): // a batch that reports once more
		return base.Snooze(subjectWait, registry.ReasonBlocked, fmt.Sprintf("item %s is %s", spec.Subject, subject.State))
	case subject.Status != registry.Aborted && subject.Status != registry.Deleted && subject.Status != registry.Completed:
		return base.Fatal(fmt.Errorf("item %s is %s: what it has in staging stays", spec.Subject, subject.Status))
	}
	if err == nil && subject.Action == registry.Batch && subject.Status != registry.Completed {
		needed, err := tidy.ReleaseUpload(ctx, w.Registry, w.Staging, item, subject)
		if err != nil {
			return err
		}
		if needed && subject.Status == registry.Deleted && item.Now().Sub(item.CreatedAt) < jobsDeleted {
			return base.Snooze(subjectWait, registry.ReasonBlocked, "jobs of batch "+subject.ID+" are not deleted yet")
		}
	}
	return tidy.Release(ctx, item, spec.Subject, w.Staging, w.Interim)
}
