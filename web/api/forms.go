package api

import (
	"context"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/access"
)

// Forms does what the pages' forms ask: as the caller's role allows, within what the caller may
// see, and in the caller's name.
type Forms struct {
	registry formsRegistry // limited to what the caller may see
	access   *access.Table
}

// formsRegistry is what Forms needs of the Registry.
type formsRegistry interface {
	registry.ItemReader
	registry.Inventory
	registry.Commanding
	registry.Holding
	registry.Deciding
}

// MayAct reports whether the caller may act on items and release holds.
func (f *Forms) MayAct(ctx context.Context) bool { return f.access.Permit(ctx, "command-item") == nil }

// MayAbandon reports whether the caller may request or approve that a version is abandoned.
func (f *Forms) MayAbandon(ctx context.Context) bool {
	return f.access.Permit(ctx, access.Abandon) == nil
}

// Command acts on an item; the actor is the caller.
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

// Bulk starts an act on all items of a query; the actor is the caller.
func (f *Forms) Bulk(ctx context.Context, b registry.BulkRequest) (registry.WorkItem, error) {
	if err := f.access.Permit(ctx, "bulk"); err != nil {
		return registry.WorkItem{}, err
	}
	b.Actor = access.Actor(ctx)
	return f.registry.Bulk(ctx, b)
}

// RemoveHold removes a hold; the actor is the caller.
func (f *Forms) RemoveHold(ctx context.Context, scope registry.HoldScope, key string) error {
	if err := f.access.Permit(ctx, "remove-hold"); err != nil {
		return err
	}
	return f.registry.RemoveHold(ctx, scope, key, access.Actor(ctx))
}

// Decisions returns the decisions that the caller may make, given the last deletion request of an
// object.
func (f *Forms) Decisions(ctx context.Context, last *registry.Deletion) []registry.Decision {
	if f.access.Permit(ctx, "approve-deletion") != nil {
		return nil
	}
	return last.Decisions(access.Actor(ctx))
}

// Decide makes a decision about the deletion of an object; the actor is the caller.
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
