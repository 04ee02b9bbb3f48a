package base

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/holdfast/holdfast/metrics"
	"github.com/holdfast/holdfast/registry"
)

// errExited: the step called runtime.Goexit.
var errExited = errors.New("step called runtime.Goexit instead of returning")

// panicError: the step panicked. It has no Unwrap: a value passed to panic is not a verdict.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("step panicked: %v", e.value) }

// work runs the step and watches it. The step has a goroutine of its own, unless it must run in the
// caller's.
func (s *session) work(ctx context.Context, a *attempt) (err error) {
	done := make(chan error, 1)
	if !s.inline {
		go isolated(ctx, a, done)
		return s.watch(ctx, a, done)
	}
	var watching sync.WaitGroup
	watching.Go(func() { err = s.watch(ctx, a, done) })
	isolated(ctx, a, done)
	watching.Wait()
	return err
}

// watch waits for the step, and watches its progress. It abandons a step that does not end.
func (s *session) watch(ctx context.Context, a *attempt, done <-chan error) error {
	stuckAfter := a.station.handler.StuckAfter()
	watch := time.NewTimer(stuckAfter)
	defer watch.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			return s.await(ctx, a, done)
		case <-watch.C:
			idle := a.item.track.idle()
			if idle >= stuckAfter {
				a.cancel(ErrStuck)
				return s.await(ctx, a, done)
			}
			watch.Reset(stuckAfter - idle)
		}
	}
}

// isolated runs the step, and turns a panic or runtime.Goexit into an error.
func isolated(ctx context.Context, a *attempt, done chan<- error) {
	err := errExited
	returned := false
	defer func() {
		if !returned {
			if v := recover(); v != nil {
				err = &panicError{value: v, stack: debug.Stack()}
			}
		}
		done <- err
	}()
	defer metrics.Step.Since(time.Now(), string(a.station.stage))
	err = a.station.handler.Work(ctx, a.item)
	returned = true
	if err == nil {
		a.item.track.count(string(a.station.stage))
	}
}

// await waits for a step whose context has ended, and abandons it if it takes too long. A stopping
// step may use the grace period.
func (s *session) await(ctx context.Context, a *attempt, done <-chan error) error {
	var late <-chan time.Time
	if !errors.Is(context.Cause(ctx), ErrStopping) {
		margin := time.NewTimer(s.abandonAfter)
		defer margin.Stop()
		late = margin.C
	}
	select {
	case err := <-done:
		return err
	case <-late:
	case <-s.abandonNow:
	}
	s.abandon(ctx, a, done)
	return fmt.Errorf("step ignored its cancellation: %w", context.Cause(ctx))
}

// abandon gives up on a step: from now on its item refuses all writes, and its slot stays occupied
// until it ends. A process with several such steps, or with no usable slot left in a stage, must be
// restarted (R29).
func (s *session) abandon(ctx context.Context, a *attempt, done <-chan error) {
	a.item.end()
	usable := a.station.abandon()
	log := s.log.With("item", a.item.ID, "stage", a.station.stage, "attempt", a.item.lease.N)
	log.ErrorContext(ctx, "step hangs and was abandoned", "err", context.Cause(ctx))
	go func() { // nothing can bound this wait: the goroutine ends with the step
		err := <-done
		a.station.abandonedEnded()
		log.WarnContext(ctx, "abandoned step ended after all", "err", err)
	}()
	if n := s.abandoned.Add(1); n >= maxAbandoned || usable == 0 {
		s.quit(ErrAbandoned)
	}
}

// judge returns the settlement of a step's result. ok is false if the claim is gone.
func (s *session) judge(ctx context.Context, a *attempt, err, cause error) (registry.Settlement, bool) {
	var p *panicError
	if errors.As(err, &p) {
		s.log.ErrorContext(ctx, "step panicked", "item", a.item.ID, "stage", a.station.stage, "attempt", a.item.lease.N,
			"err", err, "stack", string(p.stack))
	}
	settlement, ok := judge(a.station.handler, a.item, err, cause)
	if !ok || !a.settling() {
		s.log.WarnContext(ctx, "claim lost", "item", a.item.ID, "stage", a.station.stage, "attempt", a.item.lease.N, "err", err)
		return settlement, false
	}
	return a.item.settlement(settlement), true
}

// report logs the outcome of an attempt.
func (s *session) report(ctx context.Context, a *attempt, settlement registry.Settlement, v registry.Verdict, err, settleErr error) {
	log := s.log.With("item", a.item.ID, "stage", a.station.stage, "attempt", a.item.lease.N, "outcome", settlement.Outcome)
	switch {
	case settleErr != nil:
		log.WarnContext(ctx, "verdict not recorded; the registry takes the item back", "err", settleErr)
	case v.Status == registry.Failed:
		log.ErrorContext(ctx, "item needs admin review", "class", settlement.Class, "tries", v.Tries, "err", err)
	case settlement.Outcome == registry.OutcomeSentBack:
		log.WarnContext(ctx, "item sent back to an earlier stage", "to", v.Stage, "err", err)
	case settlement.Outcome == registry.OutcomeRetry:
		log.WarnContext(ctx, "item will be tried again", "tries", v.Tries, "after", settlement.Delay, "err", err)
	case settlement.Outcome == registry.OutcomeSnooze:
		log.DebugContext(ctx, "item waits", "reason", settlement.Reason, "after", settlement.Delay, "err", err)
	default:
		log.InfoContext(ctx, "item moved", "next", v.Stage, "status", v.Status)
	}
}
