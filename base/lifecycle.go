package base

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/tracing"
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
	p := s.enterWhenFree(st)
	if p == nil {
		m.Requeue(s.refusal())
		return
	}
	defer s.serving.Done()
	defer s.leave(p)
	_, _ = s.process(ctx, p, hint, freeing{m, func() { s.leave(p) }}) // its error was already judged, settled and logged
}

// process does steps 2 to 10. It returns the item's verdict with the step's own error. If there was
// no item to work on, or no verdict, the error says why.
func (s *session) process(ctx context.Context, p *slot, hint string, m Message) (registry.Verdict, error) {
	st := p.station
	// Step 2: get the WorkItem from the Registry, and decide whether to work on it. Step 3: record
	// that it is being worked on. Both are one transaction, so that two workers never claim the
	// same item. The Registry may return a better item than the hinted one (R20).
	claim, sent, err := s.claimWhenFree(ctx, st, hint, m)
	if err != nil {
		return registry.Verdict{}, s.skip(ctx, st, hint, m, err)
	}

	// Step 4: tell NSQ that the message is being worked on.
	m.Touch()
	verdict, next, err := s.carryOut(ctx, turn{slot: p, claim: claim, sent: sent, message: m}, hint)
	for next != nil {
		verdict, next, err = s.carryOut(ctx, *next, next.claim.Item.ID)
	}
	return verdict, err
}

// turn is a claim with the slot in which its step runs.
type turn struct {
	slot    *slot
	claim   registry.Claim
	sent    time.Time // when the claim was requested
	message Message
}

// carryOut does steps 5 to 10 of an item. It returns the item's next turn if it goes on to another
// station of this process without a message.
func (s *session) carryOut(ctx context.Context, of turn, hint string) (registry.Verdict, *turn, error) {
	m := of.message
	ctx, span := traced(ctx, of.claim)
	defer span.End(nil)
	// Step 5: get the interim data of earlier attempts. The item adopts them when the step first
	// asks for them. From here on the claim is renewed.
	step, a, err := s.begin(ctx, of)
	defer s.finish(a)
	if err == nil && s.exact && of.claim.Item.ID != hint {
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
	tell(span, settlement, ok)
	if !ok {
		m.Finish() // the Registry publishes a new message for the item
		return registry.Verdict{}, nil, lostWith(err)
	}

	// Step 8: update the WorkItem: it is ready for the next step. Step 10: publish it to the next
	// topic. Both are one transaction: the Registry's relay publishes what it committed (I2). If
	// the next step's worker is in this process, the same transaction may claim the item for it.
	verdict, next, settleErr := s.settle(ctx, a, settlement)
	s.report(ctx, a, settlement, verdict, err, settleErr)

	// Step 9: mark the message as complete. If the outcome was not recorded, the attempt's lease
	// expires and the Registry publishes the item again (I7).
	m.Finish()
	if settleErr != nil {
		return registry.Verdict{}, nil, settleErr
	}
	return verdict, next, err
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
	return s.claimBy(ctx, s.claimRequest(st, hint), s.stores.registry.Claim)
}

// claimBy is claim for any way to ask.
func (s *session) claimBy(ctx context.Context, request registry.ClaimRequest, ask func(context.Context, registry.ClaimRequest) (registry.Claim, error)) (c registry.Claim, sent time.Time, err error) {
	sent = time.Now()
	for wait := retryFirst; ; wait *= 2 {
		c, err = s.claimOnce(ctx, request, ask)
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

// newRequestID returns a unique id. Later ids sort behind earlier ones, so the Registry's index of
// them grows at its end instead of everywhere.
func newRequestID() string { return uuid.Must(uuid.NewV7()).String() }

func (s *session) claimRequest(st *station, hint string) registry.ClaimRequest {
	h := st.handler
	return registry.ClaimRequest{
		RequestID: newRequestID(), Stage: st.stage, Hint: hint, Worker: s.worker, Version: s.version,
		Lease: s.lease, MaxAttempts: h.MaxAttempts(),
		// This process notices a stuck step first, and gives it time to end. The Registry's watch
		// covers the case that it does not.
		StuckAfter: h.StuckAfter() + s.abandonAfter + s.lease,
	}
}

func (s *session) claimOnce(ctx context.Context, r registry.ClaimRequest, ask func(context.Context, registry.ClaimRequest) (registry.Claim, error)) (registry.Claim, error) {
	ctx, cancel := context.WithTimeout(ctx, s.stores.timeout)
	defer cancel()
	return ask(ctx, r)
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

// settle records the verdict, and returns the item's next turn if it has one here. It repeats the
// call while the claim is held: a repeat gets the first call's answer (R9). After a lease's time it
// gives up even then, so that an attempt ends whose verdict the Registry cannot process.
func (s *session) settle(ctx context.Context, a *attempt, settlement registry.Settlement) (_ registry.Verdict, _ *turn, err error) {
	ctx, span := tracing.Call(ctx, "settle")
	defer func() { span.End(err) }()
	begun := time.Now()
	next := s.continuation(a, settlement)
	v, c, err := s.settleUntilAnswered(ctx, a, settlement, next, begun)
	if next == nil {
		return v, nil, err
	}
	if c == nil || err != nil {
		s.leave(next.slot)
		return v, nil, err
	}
	return v, &turn{slot: next.slot, claim: *c, sent: begun, message: freeing{noMessage{}, func() { s.leave(next.slot) }}}, nil
}

func (s *session) settleUntilAnswered(ctx context.Context, a *attempt, settlement registry.Settlement, next *continuation, begun time.Time) (registry.Verdict, *registry.Claim, error) {
	for wait := retryFirst; ; wait = min(2*wait, retryCap) {
		if !a.fence.held() {
			return registry.Verdict{}, nil, fmt.Errorf("settle attempt %d of item %s: %w", a.item.lease.N, a.item.lease.ItemID, errLost)
		}
		v, c, err := s.settleOnce(ctx, settlement, next)
		if isFinal(err) {
			s.stores.registryTrouble.answered(ctx)
			return v, c, err
		}
		s.stores.registryTrouble.fail(ctx, err)
		if time.Since(begun)+wait > s.lease {
			return v, nil, err
		}
		select {
		case <-s.aborted:
			return v, nil, err
		case <-time.After(wait):
		}
	}
}

func (s *session) settleOnce(ctx context.Context, settlement registry.Settlement, next *continuation) (registry.Verdict, *registry.Claim, error) {
	ctx, cancel := context.WithTimeout(ctx, s.stores.timeout)
	defer cancel()
	if next != nil {
		return next.registry.SettleAndClaim(ctx, settlement, next.request)
	}
	v, err := s.stores.registry.Settle(ctx, settlement)
	return v, nil, err
}
