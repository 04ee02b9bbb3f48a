package client

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/wire"
)

// PutSubscription implements registry.Forwarding.
func (s *Store) PutSubscription(ctx context.Context, r registry.SubscriptionRequest) (registry.Subscription, error) {
	if err := r.Check(); err != nil {
		return registry.Subscription{}, fmt.Errorf("set subscription: %w", err)
	}
	return call[registry.Subscription](ctx, s, "put-subscription", wire.SubscriptionRecordOf(r))
}

// RemoveSubscription implements registry.Forwarding.
func (s *Store) RemoveSubscription(ctx context.Context, name, actor string) error {
	return s.tell(ctx, "remove-subscription", wire.SubscriptionAct{Name: name, Actor: actor})
}

// RewindSubscription implements registry.Forwarding.
func (s *Store) RewindSubscription(ctx context.Context, name string, cursor int64, reason, actor string) (registry.Subscription, error) {
	return call[registry.Subscription](ctx, s, "rewind-subscription", wire.SubscriptionAct{Name: name, Cursor: cursor, Reason: reason, Actor: actor})
}

// PauseSubscription implements registry.Forwarding.
func (s *Store) PauseSubscription(ctx context.Context, name, reason, actor string) (registry.Subscription, error) {
	return call[registry.Subscription](ctx, s, "pause-subscription", wire.SubscriptionAct{Name: name, Reason: reason, Actor: actor})
}

// ResumeSubscription implements registry.Forwarding.
func (s *Store) ResumeSubscription(ctx context.Context, name, actor string) (registry.Subscription, error) {
	return call[registry.Subscription](ctx, s, "resume-subscription", wire.SubscriptionAct{Name: name, Actor: actor})
}

// Subscriptions implements registry.Forwarding.
func (s *Store) Subscriptions(ctx context.Context) ([]registry.Subscription, error) {
	return list[registry.Subscription](ctx, s, "subscriptions", wire.Nothing{})
}

// TakeSubscriptions implements registry.Forwarding.
func (s *Store) TakeSubscriptions(ctx context.Context, owner string, lease time.Duration) ([]registry.SubscriptionTurn, error) {
	return list[registry.SubscriptionTurn](ctx, s, "take-subscriptions", wire.SubscriptionTaking{Owner: owner, Lease: lease})
}

// NoteForwarded implements registry.Forwarding.
func (s *Store) NoteForwarded(ctx context.Context, p registry.SubscriptionProgress) error {
	return s.tell(ctx, "note-forwarded", p)
}

// NoteUnforwarded implements registry.Forwarding.
func (s *Store) NoteUnforwarded(ctx context.Context, f registry.SubscriptionFailure) error {
	return s.tell(ctx, "note-unforwarded", f)
}

// ReleaseSubscriptions implements registry.Forwarding.
func (s *Store) ReleaseSubscriptions(ctx context.Context, owner string) error {
	return s.tell(ctx, "release-subscriptions", wire.SubscriptionTaking{Owner: owner})
}
