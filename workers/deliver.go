package workers

import (
	"context"
	"errors"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/workers/delivery"
)

// deliverTries is how often a receiver is asked that does not answer, which with waits of up to an
// hour is some four days.
const deliverTries = 100

// Deliver tells a receiver what became of a job, where the job itself does not wait for it: it
// failed, or its collection lets deliveries go on, or a person asked for it again. And it sends all
// mails.
type Deliver struct {
	base.Worker
	Callbacks *delivery.Callbacks
	Mails     *delivery.Mails
}

// Stage implements base.Handler.
func (w *Deliver) Stage() registry.Stage { return registry.Deliver }

// MaxAttempts implements base.Handler. A receiver that is down needs no person for days.
func (w *Deliver) MaxAttempts() int { return deliverTries }

// Work implements base.Handler.
func (w *Deliver) Work(ctx context.Context, item *base.Item) error {
	m, ok := registry.DeliverySpecIn(item.WorkItem.Spec)
	switch {
	case !ok:
		return base.Fatal(errors.New("the item does not say what is to be told; delete it"))
	case m.Mail == registry.MailDigest:
		return w.Mails.TellOperators(ctx, item, m)
	}
	subject, err := w.Callbacks.Registry.Item(ctx, m.Subject)
	if errors.Is(err, registry.ErrNotFound) {
		return nil // it was purged: there is nothing to tell
	} else if err != nil {
		return err
	}
	if m.Mail != "" {
		return w.Mails.Tell(ctx, item, subject, m)
	}
	if m.State == registry.StateFailed && (subject.Status != registry.Failed || subject.RetryCount != m.Times) {
		return nil // it was sent back since, and what comes of that is told then
	}
	return w.Callbacks.Tell(ctx, item, subject, m)
}
