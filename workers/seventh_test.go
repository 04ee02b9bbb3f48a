package workers_test

import (
	"context"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
)

// Scan is all that one more worker takes: this type in a file of its own, a constant and a step in registry/route.go,
// and a line in All.
type Scan struct {
	base.Worker
	Staging storage.Store
	Clean   func(ctx context.Context, s storage.Store, key string) (found string, err error)
}

// Stage implements base.Handler.
func (w *Scan) Stage() registry.Stage { return "scan" }

// Work implements base.Handler.
func (w *Scan) Work(ctx context.Context, item *base.Item) error {
	progress := item.Progress("files scanned", "files")
	for info, err := range w.Staging.List(ctx, staging.ItemPrefix(item.ID)+"/") {
		if err != nil {
			return err
		}
		found, err := w.Clean(ctx, w.Staging, info.Key)
		if err != nil {
			return err
		}
		if found != "" {
			return base.Content(&infected{info.Key, found})
		}
		progress.Add(1)
	}
	return nil
}

type infected struct{ key, found string }

func (e *infected) Error() string { return e.key + " holds " + e.found }

var _ base.Handler = (*Scan)(nil)
