package base

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// station is a running handler: its slots and its subscription.
type station struct {
	handler Handler
	action  registry.Action
	stage   registry.Stage
	slots   int // the spare ones included
	spare   int

	mu        sync.Mutex
	freed     chan struct{} // closed when a slot becomes free
	busy      int           // slots of items that are being worked on
	waiting   int           // messages that wait for a slot
	yielded   chan struct{} // closed when a slot is yielded; nil: no item waits for that
	abandoned int           // slots of abandoned steps that have not ended
	draining  bool
	held      bool     // an admin holds this worker
	consumer  Consumer // nil before connect
}

func newStation(h Handler) (*station, error) {
	stage := h.Stage()
	action, ok := registry.ActionOf(stage)
	if !ok {
		return nil, fmt.Errorf("stage %q is on no route", stage)
	}
	slots := h.Concurrency()
	if slots < 1 || h.MaxAttempts() < 1 || h.Lease() <= 0 || h.StuckAfter() <= 0 {
		return nil, fmt.Errorf("policy of stage %s: concurrency, attempts, lease and stuck time must be above 0", stage)
	}
	return &station{
		handler: h, action: action, stage: stage, slots: slots + h.Spare(), spare: h.Spare(), freed: make(chan struct{}),
	}, nil
}

// slot is a place in which a station works on an item.
type slot struct {
	station         *station
	yielded, left   bool // guarded by the station's mu
	fullBeforeYield bool
}

// occupy takes a slot. It returns nil if none is free, or if the station is draining or held.
func (st *station) occupy() *slot {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.draining || st.held || st.full() {
		return nil
	}
	st.busy++
	return &slot{station: st}
}

// continuePatience is how long an item waits for a slot of its next stage before it settles without
// one. Steps that take longer than a transaction seldom free one so soon.
const continuePatience = 2 * time.Millisecond

// occupyToContinue is occupy for an item that comes without a message, and waits a moment for a
// slot. Messages that wait for a slot go first.
func (st *station) occupyToContinue() *slot {
	var patience *time.Timer
	for {
		st.mu.Lock()
		if st.draining || st.held || st.waiting > 0 {
			st.mu.Unlock()
			return nil
		}
		if !st.full() {
			st.busy++
			st.mu.Unlock()
			return &slot{station: st}
		}
		if st.yielded == nil {
			st.yielded = make(chan struct{})
		}
		yielded := st.yielded
		st.mu.Unlock()
		if patience == nil {
			patience = time.NewTimer(continuePatience)
			defer patience.Stop()
		}
		select {
		case <-yielded:
		case <-patience.C:
			return nil
		}
	}
}

func (st *station) full() bool { return st.busy+st.abandoned >= st.slots }

// yield lets another item have the slot, because the step is over. The queue is not told before
// leave, since the item's message is not answered yet.
func (p *slot) yield() {
	p.station.mu.Lock()
	defer p.station.mu.Unlock()
	p.giveUp()
}

func (p *slot) giveUp() {
	if !p.yielded {
		p.yielded, p.fullBeforeYield = true, p.station.full()
		p.station.busy--
		if p.station.yielded != nil {
			close(p.station.yielded)
			p.station.yielded = nil
		}
	}
}

// leave frees the slot. It reports whether all slots were occupied before. Only the first call
// counts.
func (p *slot) leave() (wasFull bool) {
	p.station.mu.Lock()
	defer p.station.mu.Unlock()
	if p.left {
		return false
	}
	p.giveUp()
	p.left = true
	close(p.station.freed)
	p.station.freed = make(chan struct{})
	return p.fullBeforeYield
}

// await counts a message that waits for a slot until the call of done. ok is false if none can
// become free soon.
func (st *station) await() (done func(), ok bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.waiting++
	done = func() {
		st.mu.Lock()
		defer st.mu.Unlock()
		st.waiting--
	}
	return done, !st.draining && !st.held && st.abandoned < st.slots
}

// slotFreed returns a channel that is closed when a slot becomes free.
func (st *station) slotFreed() <-chan struct{} {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.freed
}

// room returns how many items the station can work on at once, and how many more it could take now.
func (st *station) room() (capacity, free int) {
	st.mu.Lock()
	defer st.mu.Unlock()
	capacity = max(st.slots-st.abandoned, 0)
	if st.draining || st.held {
		return capacity, 0
	}
	return capacity, max(capacity-st.busy, 0)
}

// abandon keeps a slot occupied for an abandoned step, beyond its message, until the step ends. It
// returns how many slots remain usable.
func (st *station) abandon() (usable int) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.abandoned++
	st.updateConsumer()
	return st.slots - st.abandoned
}

// abandonedEnded frees the slot of an abandoned step that has ended.
func (st *station) abandonedEnded() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.abandoned--
	st.updateConsumer()
}

// drain ends deliveries for good.
func (st *station) drain() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.draining = true
	st.updateConsumer()
}

// hold pauses deliveries, or resumes them if held is false. Messages in flight are processed to
// their end.
func (st *station) hold(held bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.held = held
	st.updateConsumer()
}

// connected sets the station's subscription.
func (st *station) connected(c Consumer) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.consumer = c
	st.updateConsumer()
}

// updateConsumer sets how many messages may be in flight (R21). The caller holds st.mu, so that the
// last call carries the latest number.
func (st *station) updateConsumer() {
	switch {
	case st.consumer == nil:
	case st.draining || st.held:
		st.consumer.SetFree(0)
	default:
		st.consumer.SetFree(max(st.slots-st.abandoned, 0))
	}
}

// stop ends the subscription.
func (st *station) stop(ctx context.Context) error {
	st.mu.Lock()
	c := st.consumer
	st.mu.Unlock()
	if c == nil {
		return nil
	}
	if err := c.Stop(ctx); err != nil {
		return fmt.Errorf("stop consumer of %s: %w", st.stage, err)
	}
	return nil
}
