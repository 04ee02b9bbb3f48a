package base

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// maxAbandoned is how many abandoned steps a process may have before it must be restarted (R29).
const maxAbandoned = 2

// session is one call of Run or RunOne.
type session struct {
	worker, version string
	lease           time.Duration // the shortest of the handlers': one lease for the process
	margin          time.Duration // how much earlier than the Registry this process gives up a claim
	abandonAfter    time.Duration
	stations        []*station
	stores          stores
	log             *slog.Logger
	exact           bool                    // accept only the hinted item
	inline          bool                    // run steps in the goroutine that carries them out
	quit            context.CancelCauseFunc // makes Run drain and return the cause

	abandoned  atomic.Int64
	freed      atomic.Bool   // a full station has a free slot again
	renewNow   chan struct{} // requests a renewal now
	stopping   chan struct{} // closed: claim nothing more
	abandonNow chan struct{} // closed: abandon the steps that have not ended
	aborted    chan struct{} // closed: the grace period is over
	serving    sync.WaitGroup

	mu       sync.Mutex
	stopped  bool
	held     bool      // an admin holds this worker, by the last answered renewal
	renewed  time.Time // when the last answered renewal was sent
	attempts map[registry.Lease]*attempt
	// withdrawn has the attempts that were taken away before the answer to their claim arrived, or
	// after they were settled.
	withdrawn map[registry.Lease]bool
}

// enter occupies a slot and adds the message to those that a stop waits for. It returns nil if
// there is no slot, or the session is stopped.
func (s *session) enter(st *station) *slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil
	}
	p := st.occupy()
	if p != nil {
		s.serving.Add(1)
	}
	return p
}

// leave frees the slot.
func (s *session) leave(p *slot) {
	if p.leave() {
		s.freed.Store(true) // the relay may publish again; the next tick reports it
	}
}

// freeing is a message that releases its slot before it is answered. The queue sends the next
// message as soon as it has the answer, and that message must find the slot free.
type freeing struct {
	Message
	free func()
}

// Finish implements Message.
func (m freeing) Finish() {
	m.free()
	m.Message.Finish()
}

// Requeue implements Message.
func (m freeing) Requeue(delay time.Duration) {
	m.free()
	m.Message.Requeue(delay)
}

// refusal returns the delay of a message that was refused: none if this worker is stopping or held,
// so that another worker gets it at once.
func (s *session) refusal() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped || s.held {
		return 0
	}
	return noSlotRequeue
}

func (s *session) isStopping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped
}

// hold applies a hold on this worker, as the Registry reports it. A held worker takes no messages
// and reports no free slots. A running step finishes. Only the renewal loop calls hold.
func (s *session) hold(ctx context.Context, held bool) {
	s.mu.Lock()
	changed := s.held != held
	s.held = held
	s.mu.Unlock()
	if !changed {
		return
	}
	for _, st := range s.stations {
		st.hold(held)
	}
	if held {
		s.log.WarnContext(ctx, "worker is on hold and takes no new items", "worker", s.worker)
	} else {
		s.log.InfoContext(ctx, "hold on the worker was removed", "worker", s.worker)
	}
	s.requestRenewal()
}

func (s *session) running() []*attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.attempts))
}

// begin makes an attempt of a claim, renewed from now on, and the context of its step. With an
// error the step must not start; the error is its result.
func (s *session) begin(ctx context.Context, of turn) (context.Context, *attempt, error) {
	st, c := of.slot.station, of.claim
	ctx, cancel := context.WithCancelCause(ctx)
	a := &attempt{
		slot: of.slot, station: st, message: of.message, cancel: cancel, renewed: of.sent, touched: time.Now(),
		fence: newFence(of.sent.Add(s.lease-s.margin), cancel),
	}
	item, err := newItem(c, a.fence, s.stores)
	a.item = item
	if err != nil {
		s.log.WarnContext(ctx, "item has a newer format than this worker knows", "item", c.Item.ID, "stage", st.stage, "err", err)
		err = Snooze(formatWait, registry.ReasonNotDue, err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempts[c.Lease] = a
	if s.withdrawn[c.Lease] {
		delete(s.withdrawn, c.Lease)
		a.fence.lose()
		err = errLost
	}
	if s.stopped {
		cancel(ErrStopping)
		err = ErrStopping
	}
	return ctx, a, err
}

// finish removes an attempt: it is renewed no more.
func (s *session) finish(a *attempt) {
	s.mu.Lock()
	delete(s.attempts, a.item.lease)
	s.mu.Unlock()
	a.fence.close()
	a.cancel(nil)
}

// release tells all steps to stop at their next safe point; their items are released. The process
// goes on: it gets items again when the drain has ended.
func (s *session) release(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.attempts {
		s.log.InfoContext(ctx, "everything is drained; the step is told to stop", "item", a.item.lease.ItemID)
		a.cancel(ErrStopping)
	}
}

// stop ends claiming and all steps; their items are released. Repeated calls do nothing.
func (s *session) stop() {
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return
	}
	s.stopped = true
	close(s.stopping)
	for _, a := range s.attempts {
		a.cancel(ErrStopping)
	}
	s.mu.Unlock()
	for _, st := range s.stations {
		st.drain()
	}
	s.requestRenewal()
}
