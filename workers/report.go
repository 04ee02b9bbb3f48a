package workers

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/interim"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/workers/tidy"
)

// Report closes a batch when its last job is settled: it stores the report, and releases the upload
// if nothing can need it again.
type Report struct {
	base.Worker
	Registry registry.ForWorkers
	Staging  storage.Store
	Interim  interim.Store
}

// jobsWait is how long a batch waits if some of its jobs were requeued just before the report.
const jobsWait = time.Second

// Stage implements base.Handler.
func (w *Report) Stage() registry.Stage { return registry.Report }

// Work implements base.Handler.
func (w *Report) Work(ctx context.Context, item *base.Item) error {
	_, err := w.Registry.CloseReport(ctx, item.Lease())
	if errors.Is(err, registry.ErrJobsOpen) {
		return base.Snooze(jobsWait, registry.ReasonBlocked, "some of its jobs are running again") // the Registry wakes it when they are settled
	} else if err != nil {
		return err
	}
	if _, err := tidy.ReleaseUpload(ctx, w.Registry, w.Staging, item, item.WorkItem); err != nil {
		return err
	}
	return tidy.Release(ctx, item, item.ID, w.Staging, w.Interim)
}
