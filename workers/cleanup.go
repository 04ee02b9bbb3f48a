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

// subjectWait is how long a cleanup waits while its subject is being worked on again.
const subjectWait = time.Minute

// jobsDeletedWait is how long a cleanup waits for a batch's jobs to be deleted. After that it
// leaves the upload, which a job may need, to the search for orphaned data.
const jobsDeletedWait = 24 * time.Hour

// Cleanup removes staged data of an item that was aborted or deleted. It also removes what a
// superseded worker wrote after its item had completed and released everything (R26). The Registry
// releases the room with the settlement.
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
	if err != nil && !errors.Is(err, registry.ErrNotFound) { // it may have been purged
		return err
	}
	switch {
	case err != nil:
	case !subject.Status.Settled(): // a batch that makes another report
		return base.Snooze(subjectWait, registry.ReasonBlocked, fmt.Sprintf("item %s is %s", spec.Subject, subject.State))
	case subject.Status != registry.Aborted && subject.Status != registry.Deleted && subject.Status != registry.Completed:
		return base.Fatal(fmt.Errorf("item %s is %s: its staged data stays", spec.Subject, subject.Status))
	}
	if err == nil && subject.Action == registry.Batch && subject.Status != registry.Completed {
		needed, err := tidy.ReleaseUpload(ctx, w.Registry, w.Staging, item, subject)
		if err != nil {
			return err
		}
		if needed && subject.Status == registry.Deleted && item.Now().Sub(item.CreatedAt) < jobsDeletedWait {
			return base.Snooze(subjectWait, registry.ReasonBlocked, "jobs of batch "+subject.ID+" are not deleted yet")
		}
	}
	return tidy.Release(ctx, item, spec.Subject, w.Staging, w.Interim)
}
