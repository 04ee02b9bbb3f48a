package workers

import (
	"context"
	"errors"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/staging"
)

// Scan has everything that was downloaded looked at for viruses, in collections that ask for it. A container is looked at
// as it came; what comes out of it, Process has looked at file by file.
type Scan struct {
	base.Worker
	scanner scanner
}

// Stage implements base.Handler.
func (w *Scan) Stage() registry.Stage { return registry.Scan }

// Work implements base.Handler.
func (w *Scan) Work(ctx context.Context, item *base.Item) error {
	got, err := result[downloaded](item, resultDownload, "nothing is noted as downloaded; requeue the item at download")
	if err != nil {
		return err
	}
	s, err := w.scanner.scan(ctx, item, got.contents(item.Spec().Type), unpacks(item.Spec().Type))
	if errors.Is(err, staging.ErrDamaged) {
		err = errors.Join(payloads{staging: w.scanner.staging}.examine(ctx, item, got), err)
	}
	if err != nil {
		return gone(err)
	}
	return item.SetResult(resultScan, s)
}
