package workers

import (
	"context"
	"errors"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/callback"
	"github.com/holdfast/holdfast/interim"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/workers/delivery"
	"github.com/holdfast/holdfast/workers/tidy"
)

// Notify ends a job: its object is stored and recorded, so the receiver of its collection is told,
// where it has one, and what it had in staging is given back. The batch's edge is satisfied by the
// settlement itself.
type Notify struct {
	base.Worker
	Callbacks *delivery.Callbacks
	Staging   storage.Store
	Interim   interim.Store
}

// Stage implements base.Handler.
func (w *Notify) Stage() registry.Stage { return registry.Notify }

// Work implements base.Handler.
func (w *Notify) Work(ctx context.Context, item *base.Item) error {
	to, err := item.Receiver()
	if err == nil && to != nil {
		err = w.tell(ctx, item, *to)
	}
	if err != nil {
		return err
	}
	return tidy.Release(ctx, item, item.ID, w.Staging, w.Interim)
}

// tell has it told that the job completed. Where deliveries go on by themselves, the last try is
// not the job's failure.
func (w *Notify) tell(ctx context.Context, item *base.Item, to registry.Callback) error {
	m := registry.DeliverySpec{Subject: item.ID, State: registry.StateCompleted, Callback: to}
	err := w.Callbacks.Tell(ctx, item, item.WorkItem, m)
	var refused *callback.Error
	if to.GoesOn && errors.As(err, &refused) && ctx.Err() == nil && item.Tries+1 >= w.MaxAttempts() {
		return w.Callbacks.Registry.PassOn(ctx, item.Lease(), m)
	}
	return err
}
