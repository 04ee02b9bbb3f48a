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

// maxAbandoned is how many steps a process may leave behind before it must be replaced (R29).
const maxAbandoned = 2

// session is a Runner at work: one Run or RunOne.
type session struct {
	worker, version string
	lease           time.Duration // the shortest of the handlers': it is a property of the process
	margin          time.Duration // by which this process gives a claim up before the Registry does
	abandonAfter    time.Duration
	stations        []*station
	stores          stores
	log             *slog.Logger
	exact           bool                    // only the hinted item will do
	quit            context.CancelCauseFunc // makes Run drain and return the cause

	abandoned atomic.Int64
	freed     atomic.Bool   // a full station has a free slot again
	news      chan struct{} // a renewal is wanted at once
	stopping  chan struct{} // closed: claim nothing more
	hurry     chan struct{} // closed: leave behind what has not ended yet
	aborted   chan struct{} // closed: the grace is over
	serving   sync.WaitGroup

	mu       sync.Mutex
	stopped  bool
	held     bool      // by an admin, as the last answered renewal said
	renewed  time.Time // when the last answered renewal was sent
	attempts map[registry.Lease]*attempt
	// withdrawn are attempts that were taken away before this process had the answer to their
	// claim, or after it had settled them.
	withdrawn map[registry.Lease]bool
}

// enter takes a slot and a place among what a stop waits for.
func (s *session) enter(st *station) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped || !st.take() {
		return false
	}
	s.serving.Add(1)
	return true
}

// leave gives the slot back.
func (s *session) leave(st *station) {
	if st.release() {
		s.freed.Store(true) // the relay may offer again; the next tick says so
	}
}

// freeing is a message whose answer gives the slot back first: the queue sends the next message as
// soon as it has the answer, and that one must not be turned away.
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

// refusal is when a message that was not let in may come again: at once, to somebody else, when
// this worker stops or is held.
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

// hold does what the Registry says of a hold on this worker: while there is one it takes no
// messages and tells that it has no free slots. Steps under way go on. Only the renewal loop calls
// it.
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
		s.log.WarnContext(ctx, "worker is held and takes nothing more", "worker", s.worker)
	} else {
		s.log.InfoContext(ctx, "worker is released", "worker", s.worker)
	}
	s.tell()
}

func (s *session) running() []*attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.attempts))
}

// begin turns a claim into an attempt that is renewed from now on, with the context of its step.
// With an error the step is not to be begun, and the error is its result.
func (s *session) begin(ctx context.Context, st *station, c registry.Claim, sent time.Time, m Message) (context.Context, *attempt, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	a := &attempt{
		station: st, message: m, cancel: cancel, renewed: sent, touched: time.Now(),
		fence: newFence(sent.Add(s.lease-s.margin), cancel),
	}
	item, err := newItem(c, a.fence, s.stores)
	a.item = item
	if err != nil {
		s.log.WarnContext(ctx, "item is of a format that this worker does not know", "item", c.Item.ID, "stage", st.stage, "err", err)
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

// finish lets go of an attempt: it is renewed no more.
func (s *session) finish(a *attempt) {
	s.mu.Lock()
	delete(s.attempts, a.item.lease)
	s.mu.Unlock()
	a.fence.close()
	a.cancel(nil)
}

// stop claims nothing more and ends all steps; what they hold is released. It may be called again.
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
	s.tell()
}
