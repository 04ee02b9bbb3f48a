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

// When a message that could not be dealt with comes back.
const (
	outageRequeue = 5 * time.Second // the Registry did not answer
	noSlotRequeue = time.Second     // every slot is taken
	formatWait    = time.Minute     // the item is of a newer format than this worker: another one may take it (R27)
)

// serve is the life of one message: the ten steps that every Preserv worker goes through, in their
// order.
func (s *session) serve(ctx context.Context, st *station, hint string, m Message) {
	// Step 1: get a message from NSQ. It is a hint that an item is ready.
	if !s.enter(st) {
		m.Requeue(s.refusal())
		return
	}
	defer s.serving.Done()
	free := sync.OnceFunc(func() { s.leave(st) })
	defer free()
	_, _ = s.live(ctx, st, hint, freeing{m, free}) // its error has been judged, settled and logged
}

// live takes steps 2 to 10. It returns what became of the item, with the step's own error; or why
// there was no item to work on, or no verdict.
func (s *session) live(ctx context.Context, st *station, hint string, m Message) (registry.Verdict, error) {
	// Step 2: get the WorkItem from the Registry, and determine whether to work on it or skip it.
	// Step 3: update it to say that it is being worked on. They are one transaction, so that no two
	// workers can come to the same answer. The Registry may know a better item than the hinted one
	// (R20).
	claim, sent, err := s.claimInTurn(ctx, st, hint, m)
	if err != nil {
		return registry.Verdict{}, s.skip(ctx, st, hint, m, err)
	}

	// Step 4: tell NSQ that it is being worked on.
	m.Touch()

	// Step 5: get the interim data of earlier attempts. The item adopts them, all at once, when the
	// step first asks for them; from here on the claim is renewed.
	step, a, err := s.begin(ctx, st, claim, sent, m)
	defer s.finish(a)
	if err == nil && s.exact && claim.Item.ID != hint {
		err = s.giveBack(a, hint)
	}

	// Step 6: do the task, updating interim data on the way.
	if err == nil {
		err = s.work(step, a)
	}
	cause := context.Cause(step)
	a.item.end()

	// Step 7: if it failed, find out what that means and log it; otherwise go on.
	settlement, ok := s.judge(ctx, a, err, cause)
	if !ok {
		m.Finish() // whoever took the item away rings for it
		return registry.Verdict{}, lostWith(err)
	}

	// Step 8: update the WorkItem to say that it is ready for the next step.
	// Step 10: push it into the next topic.
	// They are one transaction, too: the Registry's relay publishes what it committed (I2).
	verdict, settleErr := s.settle(ctx, a, settlement)
	s.report(ctx, a, settlement, verdict, err, settleErr)

	// Step 9: mark the message as complete. Either the outcome stands in the Registry, or the
	// attempt's lease runs out there and the Registry rings again (I7).
	m.Finish()
	if settleErr != nil {
		return registry.Verdict{}, settleErr
	}
	return verdict, err
}

// lostWith is the error of an attempt whose claim is gone, with what its step said.
func lostWith(err error) error {
	if err == nil || errors.Is(err, errLost) {
		return errLost
	}
	return fmt.Errorf("%w: %w", errLost, err)
}

// giveBack releases an item that was not asked for.
func (s *session) giveBack(a *attempt, hint string) error {
	a.cancel(ErrStopping)
	return &registry.NotClaimable{ItemID: hint, Reason: registry.ReasonQueued}
}

// claimInTurn claims, and asks again as long as the Registry says that items wait for a slot of
// their collection: the message is kept, so that the next slot that becomes free here, and an item
// of any other collection, are had at once.
func (s *session) claimInTurn(ctx context.Context, st *station, hint string, m Message) (c registry.Claim, sent time.Time, err error) {
	touched := time.Now()
	for {
		freed := st.next()
		c, sent, err = s.claim(ctx, st, hint)
		after := crowded(err)
		if after <= 0 || s.exact {
			return c, sent, err
		}
		wait := time.NewTimer(after)
		select {
		case <-freed:
		case <-wait.C:
		case <-s.stopping:
			wait.Stop()
			return c, sent, err
		case <-ctx.Done():
			wait.Stop()
			return c, sent, err
		}
		wait.Stop()
		if time.Since(touched) >= min(touchEvery, s.lease/3) {
			touched = time.Now()
			m.Touch()
		}
	}
}

// crowded is when to ask again since items wait for a slot of their collection; 0 for any other
// answer.
func crowded(err error) time.Duration {
	refused, ok := errors.AsType[*registry.NotClaimable](err)
	if !ok {
		return 0
	}
	return refused.Again
}

// claim asks for an item until it is answered or it is time to let the queue wait instead. A repeat
// names the same request, so that a claim whose answer was lost is not left without a worker (R9).
// sent is when the first request was sent: the lease cannot have begun earlier.
func (s *session) claim(ctx context.Context, st *station, hint string) (c registry.Claim, sent time.Time, err error) {
	h := st.handler
	request := registry.ClaimRequest{
		RequestID: uuid.NewString(), Stage: st.stage, Hint: hint, Worker: s.worker, Version: s.version,
		Lease: s.lease, MaxAttempts: h.MaxAttempts(),
		// This process sees a stuck step first, and gives it time to end. The Registry's watch is
		// for the case that it does not.
		StuckAfter: h.StuckAfter() + s.abandonAfter + s.lease,
	}
	sent = time.Now()
	for wait := againFirst; ; wait *= 2 {
		c, err = s.claimOnce(ctx, request)
		if final(err) {
			s.stores.registryTrouble.answered(ctx)
			return c, sent, err
		}
		s.stores.registryTrouble.fail(ctx, err)
		if time.Since(sent)+wait > s.lease/3 {
			return c, sent, err
		}
		select {
		case <-s.stopping:
			return c, sent, err
		case <-ctx.Done():
			return c, sent, err
		case <-time.After(wait):
		}
	}
}

func (s *session) claimOnce(ctx context.Context, r registry.ClaimRequest) (registry.Claim, error) {
	ctx, cancel := context.WithTimeout(ctx, s.stores.timeout)
	defer cancel()
	return s.stores.registry.Claim(ctx, r)
}

// skip answers a message for which there is no item. A Registry that says no rings again when the
// item can be had, whatever the reason; one that says nothing is asked again later.
func (s *session) skip(ctx context.Context, st *station, hint string, m Message, err error) error {
	if crowded(err) > 0 { // this worker stops; another one may have a slot
		m.Requeue(0)
		return err
	}
	if final(err) {
		m.Finish()
		s.log.DebugContext(ctx, "item skipped", "item", hint, "stage", st.stage, "err", err)
		return err
	}
	m.Requeue(outageRequeue)
	return err
}

// settle records the verdict, asking again as long as the claim is held: a repeat is answered as
// the first time (R9). It gives up after a lease's time even then, so that an attempt whose verdict
// the Registry cannot digest comes to an end.
func (s *session) settle(ctx context.Context, a *attempt, settlement registry.Settlement) (registry.Verdict, error) {
	begun := time.Now()
	for wait := againFirst; ; wait = min(2*wait, againCap) {
		if !a.fence.held() {
			return registry.Verdict{}, fmt.Errorf("settle attempt %d of item %s: %w", a.item.lease.N, a.item.lease.ItemID, errLost)
		}
		v, err := s.settleOnce(ctx, settlement)
		if final(err) {
			s.stores.registryTrouble.answered(ctx)
			return v, err
		}
		s.stores.registryTrouble.fail(ctx, err)
		if time.Since(begun)+wait > s.lease {
			return v, err
		}
		select {
		case <-s.aborted:
			return v, err
		case <-time.After(wait):
		}
	}
}

func (s *session) settleOnce(ctx context.Context, settlement registry.Settlement) (registry.Verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, s.stores.timeout)
	defer cancel()
	return s.stores.registry.Settle(ctx, settlement)
}
