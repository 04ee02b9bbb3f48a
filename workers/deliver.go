package workers

import (
	"context"
	"errors"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/registry"
)

// deliverTries is how often a receiver is asked that does not answer, which with waits of up to an hour is some four days.
const deliverTries = 100

// Deliver tells a receiver what became of a job, where the job itself does not wait for it: it failed, or its collection lets
// deliveries go on, or a person asked for it again. And it sends all mails.
type Deliver struct {
	base.Worker
	Callbacks *Callbacks
	Mails     *Mails
}

// Stage implements base.Handler.
func (w *Deliver) Stage() registry.Stage { return registry.Deliver }

// MaxAttempts implements base.Handler. A receiver that is down is no reason to bother anybody for days.
func (w *Deliver) MaxAttempts() int { return deliverTries }

// Work implements base.Handler.
func (w *Deliver) Work(ctx context.Context, item *base.Item) error {
	m, ok := registry.DeliverySpecIn(item.WorkItem.Spec)
	switch {
	case !ok:
		return base.Fatal(errors.New("the item does not say what is to be told; delete it"))
	case m.Mail == registry.MailDigest:
		return w.Mails.tellOperators(ctx, item, m)
	}
	subject, err := w.Callbacks.Registry.Item(ctx, m.Subject)
	if errors.Is(err, registry.ErrNotFound) {
		return nil // it was purged: nobody can be told anything of it
	} else if err != nil {
		return err
	}
	if m.Mail != "" {
		return w.Mails.tell(ctx, item, subject, m)
	}
	if m.State == registry.StateFailed && (subject.Status != registry.Failed || subject.RetryCount != m.Times) {
		return nil // it was sent back since, and what comes of that is told then
	}
	return w.Callbacks.tell(ctx, item, subject, m)
}

// deliveries is what keeps account of messages.
type deliveries interface {
	registry.Delivering
	Deliveries(ctx context.Context, itemID string) ([]registry.Delivery, error)
	Item(ctx context.Context, id string) (registry.WorkItem, error)
}

// tellOnce makes one try to deliver a message, and notes what it came to. One that was delivered by an attempt before is not
// sent again, unless somebody asked for that. The error says that it was not delivered.
func tellOnce(ctx context.Context, r deliveries, item *base.Item, m registry.DeliverySpec, send func() (status int, err error)) error {
	if done, err := delivered(ctx, r, m); done || err != nil {
		return err
	}
	return tellNow(ctx, r, item, m, send)
}

// tellNow is tellOnce of a message that was looked for.
func tellNow(ctx context.Context, r deliveries, item *base.Item, m registry.DeliverySpec, send func() (status int, err error)) error {
	status, err := send()
	if err != nil && ctx.Err() != nil { // the try was cut off: nobody knows what came of it
		return err
	}
	if noted := note(ctx, r, item, m, status, err); noted != nil {
		return errors.Join(noted, err)
	}
	return err
}

// note keeps what a try came to.
func note(ctx context.Context, r deliveries, item *base.Item, m registry.DeliverySpec, status int, err error) error {
	try := registry.DeliveryTry{Message: m, Status: status}
	if err != nil {
		try.Error = err.Error()
	}
	_, noted := r.NoteDelivery(ctx, item.Lease(), try)
	return noted
}

// delivered says whether the receiver has a message already, unless it is to be told again.
func delivered(ctx context.Context, r deliveries, m registry.DeliverySpec) (bool, error) {
	if m.Again {
		return false, nil
	}
	all, err := r.Deliveries(ctx, m.Subject)
	for _, d := range all {
		if d.ID == m.ID() && d.SentAt != nil {
			return true, nil
		}
	}
	return false, err
}
