package workers

import (
	"context"
	"fmt"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/registry"
)

// Apply performs a bulk act in portions. The Registry records what each portion did, so that an
// interrupted act continues where it stopped.
type Apply struct {
	base.Worker
	Registry registry.Working
}

// Stage implements base.Handler.
func (w *Apply) Stage() registry.Stage { return registry.Apply }

// Work implements base.Handler.
func (w *Apply) Work(ctx context.Context, item *base.Item) error {
	progress := item.Progress("items", "items")
	for {
		if err := item.Writable(ctx); err != nil {
			return err
		}
		p, err := w.Registry.ApplyNext(ctx, item.Lease())
		if err != nil {
			return fmt.Errorf("apply the next portion: %w", err)
		}
		progress.SetEnd(max(p.Matched, p.Applied+p.Refused)) // more items may match by now
		progress.Set(p.Applied + p.Refused)
		if p.Done {
			return nil
		}
	}
}
