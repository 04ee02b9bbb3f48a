package api

import (
	"context"

	"github.com/holdfast/holdfast/registry"
)

// Forms carries out what the pages ask on behalf of whoever has logged in: by their role, within what they may see, and in
// their name.
type Forms struct {
	registry Registry
	access   map[string][]registry.Role
}

// NewForms returns the acts of pages over r, for the contexts that [New]'s handler makes.
func NewForms(r Registry) *Forms { return &Forms{registry: Scoped(r), access: access()} }

// MayAct says whether who asks may ask acts of items and release holds.
func (f *Forms) MayAct(ctx context.Context) bool { return f.permit(ctx, "command-item") == nil }

// MayAbandon says whether who asks may ask that a version is abandoned, or agree to it.
func (f *Forms) MayAbandon(ctx context.Context) bool { return f.permit(ctx, abandonOperation) == nil }

// Command carries an act out; the actor is who asks.
func (f *Forms) Command(ctx context.Context, c registry.Command) (registry.WorkItem, error) {
	if err := f.permit(ctx, "command-item"); err != nil {
		return registry.WorkItem{}, err
	}
	if c.Act == registry.ActAbandon {
		if err := f.permit(ctx, abandonOperation); err != nil {
			return registry.WorkItem{}, err
		}
	}
	if _, err := f.registry.Item(ctx, c.ItemID); err != nil {
		return registry.WorkItem{}, err
	}
	c.Actor = actor(ctx)
	return f.registry.Command(ctx, c)
}

// Bulk begins an act on all that matches; the actor is who asks.
func (f *Forms) Bulk(ctx context.Context, b registry.BulkRequest) (registry.WorkItem, error) {
	if err := f.permit(ctx, "bulk"); err != nil {
		return registry.WorkItem{}, err
	}
	b.Actor = actor(ctx)
	return f.registry.Bulk(ctx, b)
}

// RemoveHold releases a hold; the actor is who asks.
func (f *Forms) RemoveHold(ctx context.Context, scope registry.HoldScope, key string) error {
	if err := f.permit(ctx, "remove-hold"); err != nil {
		return err
	}
	return f.registry.RemoveHold(ctx, scope, key, actor(ctx))
}

// Decisions are those that who asks may make after the last deletion of an object that was asked for.
func (f *Forms) Decisions(ctx context.Context, last *registry.Deletion) []registry.Decision {
	if f.permit(ctx, "approve-deletion") != nil {
		return nil
	}
	return last.Decisions(actor(ctx))
}

// Decide decides on the deletion of an object; the actor is who asks.
func (f *Forms) Decide(ctx context.Context, objectID string, d registry.Decision, reason string) (registry.Deletion, error) {
	operation := map[registry.Decision]string{
		registry.DecideAsk: "ask-deletion", registry.DecideApprove: "approve-deletion", registry.DecideWithdraw: "withdraw-deletion",
	}[d]
	if err := f.permit(ctx, operation); err != nil {
		return registry.Deletion{}, err
	}
	if _, err := f.registry.Object(ctx, objectID); err != nil {
		return registry.Deletion{}, err
	}
	switch d {
	case registry.DecideAsk:
		return f.registry.AskDeletion(ctx, objectID, reason, actor(ctx))
	case registry.DecideApprove:
		return f.registry.ApproveDeletion(ctx, objectID, actor(ctx))
	default:
		return f.registry.WithdrawDeletion(ctx, objectID, actor(ctx))
	}
}

func (f *Forms) permit(ctx context.Context, operation string) error {
	return (&server{access: f.access}).permit(ctx, operation)
}
