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

// Notify ends a job whose object is stored and recorded. It notifies the receiver of the
// collection, if there is one, and releases the job's staged data. The settlement itself tells the
// batch.
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
		err = w.notifyReceiver(ctx, item, *to)
	}
	if err != nil {
		return err
	}
	return tidy.Release(ctx, item, item.ID, w.Staging, w.Interim)
}

// notifyReceiver sends the callback that the job completed. If the collection delivers
// independently, the last try passes the message on instead of failing the job.
func (w *Notify) notifyReceiver(ctx context.Context, item *base.Item, to registry.Callback) error {
	m := registry.DeliverySpec{Subject: item.ID, State: registry.StateCompleted, Callback: to}
	err := w.Callbacks.Deliver(ctx, item, item.WorkItem, m)
	var refused *callback.Error
	if to.GoesOn && errors.As(err, &refused) && ctx.Err() == nil && item.Tries+1 >= w.MaxAttempts() {
		return w.Callbacks.Registry.PassOn(ctx, item.Lease(), m)
	}
	return err
}
