package base

import (
	"context"
	"fmt"
	"sync"

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
	busy      int           // slots of messages that are being processed
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

// occupy takes a slot. It returns false if none is free, or if the station is draining or held.
func (st *station) occupy() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.draining || st.held || st.busy+st.abandoned >= st.slots {
		return false
	}
	st.busy++
	return true
}

// release frees the slot of a processed message. It reports whether all slots were occupied before.
func (st *station) release() (wasFull bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.busy--
	close(st.freed)
	st.freed = make(chan struct{})
	return st.busy+st.abandoned == st.slots-1
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
