package client

import (
	"context"
	"net/http"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/wire"
)

// NoteDelivery implements registry.Delivering.
func (s *Store) NoteDelivery(ctx context.Context, l registry.Lease, try registry.DeliveryTry) (registry.Delivery, error) {
	return fenced[registry.Delivery](ctx, s, l, "deliveries", try)
}

// PassOn implements registry.Delivering.
func (s *Store) PassOn(ctx context.Context, l registry.Lease, m registry.DeliverySpec) error {
	return s.fencedTell(ctx, http.MethodPost, l, "messages", m)
}

// Deliveries implements registry.Reading.
func (s *Store) Deliveries(ctx context.Context, itemID string) ([]registry.Delivery, error) {
	if checkKeys("deliveries", itemID) != nil {
		return nil, nil //nolint:nilerr // there can be none
	}
	return list[registry.Delivery](ctx, s, "deliveries", wire.ByID{ID: itemID})
}

// BatchSafety implements registry.Mailing.
func (s *Store) BatchSafety(ctx context.Context, batchID string) (registry.Safety, error) {
	if err := checkKeys("look at the copies of batch", batchID); err != nil {
		return registry.Safety{}, err
	}
	return call[registry.Safety](ctx, s, "batch-safety", wire.ByID{ID: batchID})
}

// Attention implements registry.Mailing.
func (s *Store) Attention(ctx context.Context) (registry.Attention, error) {
	return call[registry.Attention](ctx, s, "attention", wire.Nothing{})
}

// MakeDigest implements registry.Mailing.
func (s *Store) MakeDigest(ctx context.Context, r registry.DigestRequest) (int, error) {
	return call[int](ctx, s, "make-digest", r)
}

// Redeliver implements registry.Administering.
func (s *Store) Redeliver(ctx context.Context, r registry.RedeliverRequest) (registry.WorkItem, error) {
	if err := checkKeys("deliver again", r.ItemID, r.IdempotencyKey); err != nil {
		return registry.WorkItem{}, err
	}
	return call[registry.WorkItem](ctx, s, "redeliver", r)
}

// Redeliver has it told again how a job ended, by an item that it returns.
func (c *Client) Redeliver(ctx context.Context, itemID, reason string) (registry.WorkItem, error) {
	var out registry.WorkItem
	err := c.ask(ctx, request{method: http.MethodPost, path: in("items", itemID, "redeliveries")}, wire.RedeliverRequest{Reason: reason}, &out)
	return out, err
}
