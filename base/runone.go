package base

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast/holdfast/registry"
)

// RunOne works on one item at its present stage, which must be h's, without the queue: for tests.
// It may be called repeatedly, concurrently, and beside Run.
//
// It returns the verdict, with the step's own error if that failed. *registry.NotClaimable says why
// the item cannot be claimed now; reason queued means that the Registry would give another item
// first. ErrClaimLost means that the item was taken away. When ctx ends, RunOne releases the item,
// uncounted, and returns ErrStopping.
func (r *Runner) RunOne(ctx context.Context, h Handler, itemID string) (registry.Verdict, error) {
	verdict, err := r.runAlone(ctx, h, func(work context.Context, s *session) (registry.Verdict, error) {
		return s.process(work, &slot{station: s.stations[0]}, itemID, noMessage{})
	})
	var refused *registry.NotClaimable
	if errors.As(err, &refused) {
		verdict = registry.Verdict{}
	}
	if err != nil {
		return verdict, fmt.Errorf("run item %s: %w", itemID, err)
	}
	return verdict, nil
}

// RunNew is RunOne for an item that start adds and claims in one transaction. The step runs in the
// caller's goroutine, so RunNew returns only when the step has. start gets the same request again if it was not answered, and must then do nothing more. The verdict is zero if there
// was no claim.
func (r *Runner) RunNew(ctx context.Context, h Handler, start func(context.Context, registry.ClaimRequest) (registry.Claim, error)) (registry.Verdict, error) {
	verdict, err := r.runAlone(ctx, h, func(work context.Context, s *session) (registry.Verdict, error) {
		s.inline = true
		st := s.stations[0]
		c, sent, err := s.claimBy(work, s.claimRequest(st, ""), start)
		if err != nil {
			return registry.Verdict{}, err
		}
		verdict, _, err := s.carryOut(work, turn{slot: &slot{station: st}, claim: c, sent: sent, message: noMessage{}}, c.Item.ID)
		return verdict, err
	})
	if err != nil {
		return verdict, fmt.Errorf("run a new item: %w", err)
	}
	return verdict, nil
}

// runAlone runs fn in a session for one item.
func (r *Runner) runAlone(ctx context.Context, h Handler, fn func(work context.Context, s *session) (registry.Verdict, error)) (registry.Verdict, error) {
	s, err := r.session([]Handler{h})
	if err != nil {
		return registry.Verdict{}, err
	}
	s.exact = true
	s.worker += "/" + uuid.NewString() // the renewals of this call must not replace those of another
	s.quit = func(error) {}
	work, abort := context.WithCancelCause(context.WithoutCancel(ctx))
	var renewing sync.WaitGroup
	renewing.Go(func() { s.keepRenewing(work) })
	renewing.Go(func() { s.watchWithdrawals(work) })
	defer func() {
		abort(nil)
		renewing.Wait()
	}()
	grace := orElse(r.Grace, defaultGrace)
	defer context.AfterFunc(ctx, func() {
		s.stop()
		select {
		case <-time.After(grace * 16 / 20):
			close(s.abandonNow)
		case <-work.Done():
		}
	})()
	if ctx.Err() != nil {
		return registry.Verdict{}, context.Cause(ctx)
	}
	return fn(work, s)
}
