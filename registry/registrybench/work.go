package registrybench

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// Works is what the measurement of claims and settles needs of a Registry.
type Works interface {
	registry.Submitting
	registry.Batching
	registry.Working
}

// Work takes jobs through all their stages, one call after another, and returns how long claims and
// settles took. It submits a batch to the collection, which must exist. The store may also give it
// other items that come first.
func Work(ctx context.Context, s Works, collection string, jobs int) (claims, settles Figure, err error) {
	w := worker{Works: s}
	r, err := s.Submit(ctx, registry.Submission{Collection: collection, Actor: "bench", Spec: registry.Spec{
		Type: registry.SingleFileBatch, Mode: registry.Add, URL: "https://example.org/batch", Filename: "batch",
	}})
	if err != nil {
		return claims, settles, err
	}
	c, err := w.claim(ctx, registry.Expand, r.BatchID)
	if err != nil {
		return claims, settles, err
	}
	rows := make([]registry.NewJob, 0, jobs)
	for i := range jobs {
		rows = append(rows, registry.NewJob{Line: int64(1_000_000 + i), Name: fmt.Sprintf("job %d", i), Priority: 5, Spec: registry.Spec{Type: registry.FileType, Mode: registry.Add}})
	}
	if _, err := s.AddJobs(ctx, c.Lease, rows); err != nil {
		return claims, settles, err
	}
	if err := w.settle(ctx, c.Lease); err != nil {
		return claims, settles, err
	}
	w = worker{Works: s, n: w.n} // the calls for the batch were the warm-up
	route, _ := registry.RouteOf(registry.Ingest)
	for _, step := range route.With(nil).Steps {
		for range jobs {
			c, err := w.claim(ctx, step.Stage, r.BatchID)
			if err != nil {
				return claims, settles, err
			}
			if err := w.settle(ctx, c.Lease); err != nil {
				return claims, settles, err
			}
		}
	}
	claims, settles = figure("claim", w.claims), figure("settle", w.settles)
	claims.CPU = w.claiming / time.Duration(max(len(w.claims), 1))
	settles.CPU = w.settling / time.Duration(max(len(w.settles), 1))
	return claims, settles, nil
}

type worker struct {
	Works
	n               int
	claims, settles []time.Duration
	claiming        time.Duration // processor time
	settling        time.Duration
}

func (w *worker) claim(ctx context.Context, stage registry.Stage, hint string) (registry.Claim, error) {
	w.n++
	begun, used := time.Now(), cpu()
	c, err := w.Claim(ctx, registry.ClaimRequest{
		RequestID: fmt.Sprintf("bench %d %d", begun.UnixNano(), w.n), Stage: stage, Hint: hint, Worker: "bench", Version: "bench",
		Lease: time.Minute, MaxAttempts: 5, StuckAfter: time.Hour,
	})
	w.claims = append(w.claims, time.Since(begun))
	w.claiming += cpu() - used
	if err != nil {
		return c, fmt.Errorf("claim at %s: %w", stage, err)
	}
	return c, nil
}

func (w *worker) settle(ctx context.Context, l registry.Lease) error {
	begun, used := time.Now(), cpu()
	_, err := w.Settle(ctx, registry.Settlement{Lease: l, Outcome: registry.OutcomeDone, MaxAttempts: 5})
	w.settles = append(w.settles, time.Since(begun))
	w.settling += cpu() - used
	if err != nil {
		return fmt.Errorf("settle item %s: %w", l.ItemID, err)
	}
	return nil
}
