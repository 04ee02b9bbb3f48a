package workers

import (
	"context"
	"errors"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/workers/delivery"
)

// deliverMaxAttempts is how often Deliver tries a receiver that does not answer. With waits of up
// to an hour, that takes about four days.
const deliverMaxAttempts = 100

// Deliver sends all mails, and the callbacks that a job does not wait for: the job failed, its
// collection delivers independently, or a person requested another delivery.
type Deliver struct {
	base.Worker
	Callbacks *delivery.Callbacks
	Mails     *delivery.Mails
}

// Stage implements base.Handler.
func (w *Deliver) Stage() registry.Stage { return registry.Deliver }

// MaxAttempts implements base.Handler. An unavailable receiver needs no person for days.
func (w *Deliver) MaxAttempts() int { return deliverMaxAttempts }

// Work implements base.Handler.
func (w *Deliver) Work(ctx context.Context, item *base.Item) error {
	m, ok := registry.DeliverySpecIn(item.WorkItem.Spec)
	switch {
	case !ok:
		return base.Fatal(errors.New("the item names no message to deliver; delete it"))
	case m.Mail == registry.MailDigest:
		return w.Mails.SendDigest(ctx, item, m)
	}
	subject, err := w.Callbacks.Registry.Item(ctx, m.Subject)
	if errors.Is(err, registry.ErrNotFound) {
		return nil // it was purged: there is nothing to report
	} else if err != nil {
		return err
	}
	if m.Mail != "" {
		return w.Mails.SendBatch(ctx, item, subject, m)
	}
	if m.State == registry.StateFailed && (subject.Status != registry.Failed || subject.RetryCount != m.Times) {
		return nil // it was requeued since; its new outcome will be delivered
	}
	return w.Callbacks.Deliver(ctx, item, subject, m)
}
