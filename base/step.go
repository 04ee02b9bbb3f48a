package base

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// errExited is what a step comes to that ended its goroutine instead of returning.
var errExited = errors.New("step ended its goroutine without a result")

// panicError is what a step comes to that panicked. It does not unwrap: a value that was thrown is
// no verdict.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("step panicked: %v", e.value) }

// work runs the step on a goroutine of its own, watches its progress, and leaves it behind when it
// does not end.
func (s *session) work(ctx context.Context, a *attempt) error {
	done := make(chan error, 1)
	go isolated(ctx, a, done)
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

// isolated does the step, and turns whatever else it does than return into an error.
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
	err = a.station.handler.Work(ctx, a.item)
	returned = true
}

// await gives a step whose context has ended its time to return: a stopping one as long as the
// grace allows.
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
	case <-s.hurry:
	}
	s.abandon(ctx, a, done)
	return fmt.Errorf("step did not end when told to: %w", context.Cause(ctx))
}

// abandon leaves a step behind: from now on its item refuses everything, and its slot is taken
// until it ends. A process that collects such steps, or has no room left beside them, is to be
// replaced by a fresh one (R29).
func (s *session) abandon(ctx context.Context, a *attempt, done <-chan error) {
	a.item.end()
	usable := a.station.abandon()
	log := s.log.With("item", a.item.ID, "stage", a.station.stage, "attempt", a.item.lease.N)
	log.ErrorContext(ctx, "step hangs and was abandoned", "err", context.Cause(ctx))
	go func() { // nobody can wait for it: it lives as long as what it waits for
		err := <-done
		a.station.returned()
		log.WarnContext(ctx, "abandoned step ended after all", "err", err)
	}()
	if n := s.abandoned.Add(1); n >= maxAbandoned || usable == 0 {
		s.quit(ErrAbandoned)
	}
}

// judge turns what the step came to into its settlement. ok is false when the claim is gone.
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

// report logs what became of an attempt.
func (s *session) report(ctx context.Context, a *attempt, settlement registry.Settlement, v registry.Verdict, err, settleErr error) {
	log := s.log.With("item", a.item.ID, "stage", a.station.stage, "attempt", a.item.lease.N, "outcome", settlement.Outcome)
	switch {
	case settleErr != nil:
		log.WarnContext(ctx, "verdict not recorded; the registry takes the item back", "err", settleErr)
	case v.Status == registry.Failed:
		log.ErrorContext(ctx, "item needs admin review", "class", settlement.Class, "tries", v.Tries, "err", err)
	case settlement.Outcome == registry.OutcomeSentBack:
		log.WarnContext(ctx, "item goes back", "to", v.Stage, "err", err)
	case settlement.Outcome == registry.OutcomeRetry:
		log.WarnContext(ctx, "item will be tried again", "tries", v.Tries, "after", settlement.Delay, "err", err)
	case settlement.Outcome == registry.OutcomeSnooze:
		log.DebugContext(ctx, "item waits", "reason", settlement.Reason, "after", settlement.Delay, "err", err)
	default:
		log.InfoContext(ctx, "item moved", "next", v.Stage, "status", v.Status)
	}
}
