// Package delivery tells people and programs what became of items: by callback and by mail.
//
// A message is sent at least once: each try is noted in the Registry, and one that is known to have
// been delivered is not sent again unless a person asks for it. An error says that the message was
// not delivered, and the item that carries it tries again. A message that is not true any more when
// its turn comes is noted as not sent.
package delivery

import (
	"context"
	"errors"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/registry"
)

// deliveries is what keeps account of messages.
type deliveries interface {
	registry.Delivering
	Deliveries(ctx context.Context, itemID string) ([]registry.Delivery, error)
	Item(ctx context.Context, id string) (registry.WorkItem, error)
}

// tellOnce makes one try to deliver a message, and notes what it came to. It does not send again
// what an earlier attempt delivered, unless a person asked for that. An error says that the message
// was not delivered.
func tellOnce(ctx context.Context, r deliveries, item *base.Item, m registry.DeliverySpec, send func() (status int, err error)) error {
	if done, err := delivered(ctx, r, m); done || err != nil {
		return err
	}
	return tellNow(ctx, r, item, m, send)
}

// tellNow is tellOnce of a message that was looked for.
func tellNow(ctx context.Context, r deliveries, item *base.Item, m registry.DeliverySpec, send func() (status int, err error)) error {
	status, err := send()
	if err != nil && ctx.Err() != nil { // the try was cut off: what came of it is not known
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
