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

// Delays of messages that could not be processed.
const (
	outageRequeue = 5 * time.Second // the Registry did not answer
	noSlotRequeue = time.Second     // every slot is taken
	formatWait    = time.Minute     // the item has a newer format than this worker knows; another worker may take it (R27)
)

// serve processes one message: the ten steps of every Preserv worker, in their order.
func (s *session) serve(ctx context.Context, st *station, hint string, m Message) {
	// Step 1: get a message from NSQ. It is a hint that an item is ready.
	if !s.enter(st) {
		m.Requeue(s.refusal())
		return
	}
	defer s.serving.Done()
	free := sync.OnceFunc(func() { s.leave(st) })
	defer free()
	_, _ = s.process(ctx, st, hint, freeing{m, free}) // its error was already judged, settled and logged
}

// process does steps 2 to 10. It returns the item's verdict with the step's own error. If there was
// no item to work on, or no verdict, the error says why.
func (s *session) process(ctx context.Context, st *station, hint string, m Message) (registry.Verdict, error) {
	// Step 2: get the WorkItem from the Registry, and decide whether to work on it. Step 3: record
	// that it is being worked on. Both are one transaction, so that two workers never claim the
	// same item. The Registry may return a better item than the hinted one (R20).
	claim, sent, err := s.claimWhenFree(ctx, st, hint, m)
	if err != nil {
		return registry.Verdict{}, s.skip(ctx, st, hint, m, err)
	}

	// Step 4: tell NSQ that the message is being worked on.
	m.Touch()

	// Step 5: get the interim data of earlier attempts. The item adopts them when the step first
	// asks for them. From here on the claim is renewed.
	step, a, err := s.begin(ctx, st, claim, sent, m)
	defer s.finish(a)
	if err == nil && s.exact && claim.Item.ID != hint {
		err = s.giveBack(a, hint)
	}

	// Step 6: do the task, and update interim data on the way.
	if err == nil {
		err = s.work(step, a)
	}
	cause := context.Cause(step)
	a.item.end()

	// Step 7: if it failed, decide what that means and log it; otherwise continue.
	settlement, ok := s.judge(ctx, a, err, cause)
	if !ok {
		m.Finish() // the Registry publishes a new message for the item
		return registry.Verdict{}, lostWith(err)
	}

	// Step 8: update the WorkItem: it is ready for the next step. Step 10: publish it to the next
	// topic. Both are one transaction: the Registry's relay publishes what it committed (I2).
	verdict, settleErr := s.settle(ctx, a, settlement)
	s.report(ctx, a, settlement, verdict, err, settleErr)

	// Step 9: mark the message as complete. If the outcome was not recorded, the attempt's lease
	// expires and the Registry publishes the item again (I7).
	m.Finish()
	if settleErr != nil {
		return registry.Verdict{}, settleErr
	}
	return verdict, err
}

// lostWith returns the error of an attempt whose claim is gone, with its step's own error.
func lostWith(err error) error {
	if err == nil || errors.Is(err, errLost) {
		return errLost
	}
	return fmt.Errorf("%w: %w", errLost, err)
}

// giveBack releases an item that was claimed instead of the requested one.
func (s *session) giveBack(a *attempt, hint string) error {
	a.cancel(ErrStopping)
	return &registry.NotClaimable{ItemID: hint, Reason: registry.ReasonQueued}
}

// claimWhenFree claims, and asks again as long as items wait for a slot of their collection.
// Meanwhile it keeps the message. It asks as soon as a slot becomes free here, or when the wait is
// over that the Registry named.
func (s *session) claimWhenFree(ctx context.Context, st *station, hint string, m Message) (c registry.Claim, sent time.Time, err error) {
	touched := time.Now()
	for {
		freed := st.slotFreed()
		c, sent, err = s.claim(ctx, st, hint)
		after := slotWait(err)
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

// slotWait returns how long to wait before the next claim if items wait for a slot of their
// collection; 0 for any other answer.
func slotWait(err error) time.Duration {
	refused, ok := errors.AsType[*registry.NotClaimable](err)
	if !ok {
		return 0
	}
	return refused.Again
}

// claim requests an item until the Registry answers. After a third of the lease it gives up, and
// the message goes back to the queue. A repeat has the same request id, so that a claim whose
// answer was lost still gets its worker (R9). sent is the time of the first request: the lease
// cannot have begun earlier.
func (s *session) claim(ctx context.Context, st *station, hint string) (c registry.Claim, sent time.Time, err error) {
	h := st.handler
	request := registry.ClaimRequest{
		RequestID: uuid.NewString(), Stage: st.stage, Hint: hint, Worker: s.worker, Version: s.version,
		Lease: s.lease, MaxAttempts: h.MaxAttempts(),
		// This process notices a stuck step first, and gives it time to end. The Registry's watch
		// covers the case that it does not.
		StuckAfter: h.StuckAfter() + s.abandonAfter + s.lease,
	}
	sent = time.Now()
	for wait := retryFirst; ; wait *= 2 {
		c, err = s.claimOnce(ctx, request)
		if isFinal(err) {
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

// skip answers a message for which there is no item. If the Registry refused, the message is
// finished: the Registry publishes again when the item can be claimed. If it did not answer, the
// message comes back later.
func (s *session) skip(ctx context.Context, st *station, hint string, m Message, err error) error {
	if slotWait(err) > 0 { // this worker is stopping; another one may have a slot
		m.Requeue(0)
		return err
	}
	if isFinal(err) {
		m.Finish()
		s.log.DebugContext(ctx, "item skipped", "item", hint, "stage", st.stage, "err", err)
		return err
	}
	m.Requeue(outageRequeue)
	return err
}

// settle records the verdict. It repeats the call while the claim is held: a repeat gets the first
// call's answer (R9). After a lease's time it gives up even then, so that an attempt ends whose
// verdict the Registry cannot process.
func (s *session) settle(ctx context.Context, a *attempt, settlement registry.Settlement) (registry.Verdict, error) {
	begun := time.Now()
	for wait := retryFirst; ; wait = min(2*wait, retryCap) {
		if !a.fence.held() {
			return registry.Verdict{}, fmt.Errorf("settle attempt %d of item %s: %w", a.item.lease.N, a.item.lease.ItemID, errLost)
		}
		v, err := s.settleOnce(ctx, settlement)
		if isFinal(err) {
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
