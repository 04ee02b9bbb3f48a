// Package delivery sends messages about items: callbacks to programs and mails to people.
//
// A message is sent at least once. The Registry records each try. A message that was delivered is
// not sent again unless a person requests it. An error means that the message was not delivered;
// its item then tries again. A message that is no longer true when its time comes is recorded as
// not sent. The package does not decide who gets which message: the Registry does.
package delivery

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/metrics"
	"github.com/holdfast/holdfast/registry"
)

// deliveries are the methods that record messages.
type deliveries interface {
	registry.Delivering
	Deliveries(ctx context.Context, itemID string) ([]registry.Delivery, error)
	Item(ctx context.Context, id string) (registry.WorkItem, error)
}

// deliverOnce makes one try to deliver a message, and records the outcome. It does not repeat a
// message that an earlier attempt delivered, unless a person requested that. An error means that
// the message was not delivered.
func deliverOnce(ctx context.Context, r deliveries, item *base.Item, m registry.DeliverySpec, send func() (status int, err error)) error {
	if done, err := delivered(ctx, r, m); done || err != nil {
		return err
	}
	return deliver(ctx, r, item, m, send)
}

// deliver is deliverOnce without the check for an earlier delivery.
func deliver(ctx context.Context, r deliveries, item *base.Item, m registry.DeliverySpec, send func() (status int, err error)) error {
	begun := time.Now()
	status, err := send()
	metrics.Delivery.Since(begun, cmp.Or(string(m.Mail), "callback"), metrics.Outcome(err))
	if err != nil && ctx.Err() != nil { // the try was interrupted: its outcome is unknown
		return err
	}
	if noted := recordTry(ctx, r, item, m, status, err); noted != nil {
		return errors.Join(noted, err)
	}
	return err
}

// recordTry records the outcome of a try.
func recordTry(ctx context.Context, r deliveries, item *base.Item, m registry.DeliverySpec, status int, err error) error {
	try := registry.DeliveryTry{Message: m, Status: status}
	if err != nil {
		try.Error = err.Error()
	}
	_, noted := r.NoteDelivery(ctx, item.Lease(), try)
	return noted
}

// delivered reports whether the message was already delivered. A message to be sent again counts as
// not delivered.
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
