package workers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/interim"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
)

// Cleanup removes what an item that was given up has left in staging. The Registry gives its room back with the
// settlement.
type Cleanup struct {
	base.Worker
	Registry registry.Reading
	Staging  storage.Store
	Interim  interim.Store
}

// Stage implements base.Handler.
func (w *Cleanup) Stage() registry.Stage { return registry.Cleanup }

// Work implements base.Handler.
func (w *Cleanup) Work(ctx context.Context, item *base.Item) error {
	var spec registry.TidySpec
	if err := json.Unmarshal(item.WorkItem.Spec, &spec); err != nil || spec.Subject == "" {
		return base.Fatal(fmt.Errorf("decode spec: subject %q: %w", spec.Subject, err))
	}
	subject, err := w.Registry.Item(ctx, spec.Subject)
	if err != nil && !errors.Is(err, registry.ErrNotFound) { // it may have been purged meanwhile
		return err
	}
	if s := subject.Status; err == nil && s != registry.Aborted && s != registry.Deleted {
		return base.Fatal(fmt.Errorf("item %s is %s: what it has in staging stays", spec.Subject, s))
	}
	return release(ctx, item, spec.Subject, w.Staging, w.Interim)
}
