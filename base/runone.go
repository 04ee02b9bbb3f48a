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

// RunOne works on one item at its present stage, which must be h's, without the queue: for tests,
// and for `holdfast worker STAGE --item ID`. It may be called any number of times, concurrently and
// beside Run.
//
// It returns the verdict, with the step's own error when that failed. *registry.NotClaimable tells
// why the item cannot be had now; its reason is queued when the Registry would give a better item
// first. ErrClaimLost: it was taken away. When ctx ends, the item is released, uncounted, and
// ErrStopping returned.
func (r *Runner) RunOne(ctx context.Context, h Handler, itemID string) (registry.Verdict, error) {
	s, err := r.session([]Handler{h})
	if err != nil {
		return registry.Verdict{}, fmt.Errorf("run one item: %w", err)
	}
	s.exact = true
	s.worker += "/" + uuid.NewString() // this Run's news must not be taken for that of another
	s.quit = func(error) {}
	work, abort := context.WithCancelCause(context.WithoutCancel(ctx))
	var renewing sync.WaitGroup
	renewing.Go(func() { s.keepRenewing(work) })
	renewing.Go(func() { s.keepHearing(work) })
	defer func() {
		abort(nil)
		renewing.Wait()
	}()
	grace := orElse(r.Grace, defaultGrace)
	defer context.AfterFunc(ctx, func() {
		s.stop()
		select {
		case <-time.After(grace * 16 / 20):
			close(s.hurry)
		case <-work.Done():
		}
	})()
	st := s.stations[0]
	if err := ctx.Err(); err != nil {
		return registry.Verdict{}, fmt.Errorf("run item %s: %w", itemID, context.Cause(ctx))
	}
	verdict, err := s.live(work, st, itemID, noMessage{})
	var refused *registry.NotClaimable
	if errors.As(err, &refused) {
		verdict = registry.Verdict{}
	}
	if err != nil {
		return verdict, fmt.Errorf("run item %s: %w", itemID, err)
	}
	return verdict, nil
}
