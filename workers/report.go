package workers

import (
	"context"
	"fmt"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/interim"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/storage"
)

// Report closes a batch when its last job is settled: it stores the report, and lets go of the upload when nothing of
// it can be needed again.
type Report struct {
	base.Worker
	Registry registry.Store
	Staging  storage.Store
	Interim  interim.Store
}

// Stage implements base.Handler.
func (w *Report) Stage() registry.Stage { return registry.Report }

// Work implements base.Handler.
func (w *Report) Work(ctx context.Context, item *base.Item) error {
	report, err := w.Registry.CloseReport(ctx, item.Lease())
	if err != nil {
		return err
	}
	// A failed job may be sent back, and then needs what was uploaded.
	if id, ok := registry.UploadID(item.Spec().URL); ok && report.Failed == 0 {
		if err := w.Staging.DeletePrefix(ctx, source.UploadKey(id)); err != nil {
			return fmt.Errorf("release upload %s: %w", id, err)
		}
	}
	return release(ctx, item, item.ID, w.Staging, w.Interim)
}
