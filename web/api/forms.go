package api

import (
	"context"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/access"
)

// Forms carries out what the pages ask on behalf of whoever has logged in: by their role, within
// what they may see, and in their name.
type Forms struct {
	registry formsRegistry // limited to what the caller may see
	access   *access.Table
}

// formsRegistry is what forms ask.
type formsRegistry interface {
	registry.ItemReader
	registry.Inventory
	registry.Commanding
	registry.Holding
	registry.Deciding
}

// MayAct says whether who asks may ask acts of items and release holds.
func (f *Forms) MayAct(ctx context.Context) bool { return f.access.Permit(ctx, "command-item") == nil }

// MayAbandon says whether who asks may ask that a version is abandoned, or agree to it.
func (f *Forms) MayAbandon(ctx context.Context) bool {
	return f.access.Permit(ctx, access.Abandon) == nil
}

// Command carries an act out; the actor is who asks.
func (f *Forms) Command(ctx context.Context, c registry.Command) (registry.WorkItem, error) {
	if err := f.access.Permit(ctx, "command-item"); err != nil {
		return registry.WorkItem{}, err
	}
	if c.Act == registry.ActAbandon {
		if err := f.access.Permit(ctx, access.Abandon); err != nil {
			return registry.WorkItem{}, err
		}
	}
	if _, err := f.registry.Item(ctx, c.ItemID); err != nil {
		return registry.WorkItem{}, err
	}
	c.Actor = access.Actor(ctx)
	return f.registry.Command(ctx, c)
}

// Bulk begins an act on all that matches; the actor is who asks.
func (f *Forms) Bulk(ctx context.Context, b registry.BulkRequest) (registry.WorkItem, error) {
	if err := f.access.Permit(ctx, "bulk"); err != nil {
		return registry.WorkItem{}, err
	}
	b.Actor = access.Actor(ctx)
	return f.registry.Bulk(ctx, b)
}

// RemoveHold releases a hold; the actor is who asks.
func (f *Forms) RemoveHold(ctx context.Context, scope registry.HoldScope, key string) error {
	if err := f.access.Permit(ctx, "remove-hold"); err != nil {
		return err
	}
	return f.registry.RemoveHold(ctx, scope, key, access.Actor(ctx))
}

// Decisions are those that who asks may make after the last deletion of an object that was asked
// for.
func (f *Forms) Decisions(ctx context.Context, last *registry.Deletion) []registry.Decision {
	if f.access.Permit(ctx, "approve-deletion") != nil {
		return nil
	}
	return last.Decisions(access.Actor(ctx))
}

// Decide decides on the deletion of an object; the actor is who asks.
func (f *Forms) Decide(ctx context.Context, objectID string, d registry.Decision, reason string) (registry.Deletion, error) {
	operation := map[registry.Decision]string{
		registry.DecideAsk: "ask-deletion", registry.DecideApprove: "approve-deletion", registry.DecideWithdraw: "withdraw-deletion",
	}[d]
	if err := f.access.Permit(ctx, operation); err != nil {
		return registry.Deletion{}, err
	}
	if _, err := f.registry.Object(ctx, objectID); err != nil {
		return registry.Deletion{}, err
	}
	switch d {
	case registry.DecideAsk:
		return f.registry.AskDeletion(ctx, objectID, reason, access.Actor(ctx))
	case registry.DecideApprove:
		return f.registry.ApproveDeletion(ctx, objectID, access.Actor(ctx))
	default:
		return f.registry.WithdrawDeletion(ctx, objectID, access.Actor(ctx))
	}
}
