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

// Report closes a batch when its last job is settled: it stores the report, and lets go of the
// upload when nothing of it can be needed again.
type Report struct {
	base.Worker
	Registry registry.ForWorkers
	Staging  storage.Store
	Interim  interim.Store
}

// jobsWait is how long a batch is left alone some of whose jobs were sent back just before it was
// reported.
const jobsWait = time.Second

// Stage implements base.Handler.
func (w *Report) Stage() registry.Stage { return registry.Report }

// Work implements base.Handler.
func (w *Report) Work(ctx context.Context, item *base.Item) error {
	_, err := w.Registry.CloseReport(ctx, item.Lease())
	if errors.Is(err, registry.ErrJobsOpen) {
		return base.Snooze(jobsWait, registry.ReasonBlocked, "jobs of it run again") // and rings when they are settled
	} else if err != nil {
		return err
	}
	if _, err := tidy.ReleaseUpload(ctx, w.Registry, w.Staging, item, item.WorkItem); err != nil {
		return err
	}
	return tidy.Release(ctx, item, item.ID, w.Staging, w.Interim)
}
