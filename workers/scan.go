package workers

import (
	"context"
	"errors"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/workers/payload"
	"github.com/holdfast/holdfast/workers/result"
	"github.com/holdfast/holdfast/workers/scanning"
)

// Scan scans everything that was downloaded for viruses, in collections that require it. It scans a
// container as a whole; Process scans the container's files one by one.
type Scan struct {
	base.Worker
	scanner scanning.Scanner
}

// Stage implements base.Handler.
func (w *Scan) Stage() registry.Stage { return registry.Scan }

// Work implements base.Handler.
func (w *Scan) Work(ctx context.Context, item *base.Item) error {
	got, err := result.DownloadOf(item)
	if err != nil {
		return err
	}
	s, err := w.scanner.Scan(ctx, item, got.Contents(item.Spec().Type), payload.Unpacks(item.Spec().Type))
	if errors.Is(err, staging.ErrDamaged) {
		err = errors.Join(payload.Files{Staging: w.scanner.Staging}.Examine(ctx, item, got), err)
	}
	if err != nil {
		return payload.BackIfGone(err)
	}
	return item.SetResult(result.NameScan, s)
}
