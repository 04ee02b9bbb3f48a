package base

import (
	"cmp"
	"context"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/tracing"
)

// traced starts the span of a claim's attempt.
func traced(ctx context.Context, c registry.Claim) (context.Context, *tracing.Span) {
	if !tracing.On() {
		return ctx, nil
	}
	it, of := c.Item, registry.TraceOf(c.Item.Spec)
	return tracing.StartAttempt(ctx, tracing.Attempt{
		Item: it.ID, Collection: it.Collection, Stage: string(it.Stage), N: c.Lease.N, Tries: it.Tries,
		Created: it.CreatedAt, Ready: it.RunAt, Claimed: it.UpdatedAt, Parent: of.Parent, Batch: of.Batch,
	})
}

// tell says in the span of an attempt what came of it.
func tell(span *tracing.Span, s registry.Settlement, ok bool) {
	if !ok {
		span.Set("holdfast.outcome", "lost")
		span.Fail("lost")
		return
	}
	span.Set("holdfast.outcome", string(s.Outcome))
	if s.Outcome == registry.OutcomeFailed || s.Outcome == registry.OutcomeRetry || s.Outcome == registry.OutcomeSentBack {
		span.Fail(cmp.Or(s.Code, string(s.Class)))
	}
	if s.DoneBytes != nil {
		span.Count("holdfast.bytes", *s.DoneBytes)
	}
	if s.DoneFiles != nil {
		span.Count("holdfast.files", *s.DoneFiles)
	}
}
