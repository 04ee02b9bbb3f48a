package base

import (
	"context"
	"fmt"
	"sync"

	"github.com/holdfast/holdfast/registry"
)

// station is one handler at work: its slots and its subscription.
type station struct {
	handler Handler
	action  registry.Action
	stage   registry.Stage
	slots   int // the spare ones included
	spare   int

	mu       sync.Mutex
	freed    chan struct{} // closed when a slot becomes free
	busy     int           // slots in which a message is served
	left     int           // slots held by steps that were abandoned and have not ended yet
	draining bool
	held     bool     // an admin keeps this worker from being given anything
	consumer Consumer // nil before connect
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

// take occupies a slot; false when there is none, or the station is draining or held.
func (st *station) take() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.draining || st.held || st.busy+st.left >= st.slots {
		return false
	}
	st.busy++
	return true
}

// release frees the slot of a message that was served. It tells whether that was the first one
// free.
func (st *station) release() (wasFull bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.busy--
	close(st.freed)
	st.freed = make(chan struct{})
	return st.busy+st.left == st.slots-1
}

// next is closed when a slot becomes free.
func (st *station) next() <-chan struct{} {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.freed
}

// room is how many items the station can work on at once, and how many more it could take now.
func (st *station) room() (capacity, free int) {
	st.mu.Lock()
	defer st.mu.Unlock()
	capacity = max(st.slots-st.left, 0)
	if st.draining || st.held {
		return capacity, 0
	}
	return capacity, max(capacity-st.busy, 0)
}

// abandon notes that a step was left behind: until it ends it occupies its slot beyond its message.
// It returns how many slots of the station are still of use.
func (st *station) abandon() (usable int) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.left++
	st.allow()
	return st.slots - st.left
}

// returned notes that a step that was left behind has ended after all.
func (st *station) returned() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.left--
	st.allow()
}

// drain takes no more messages, for good.
func (st *station) drain() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.draining = true
	st.allow()
}

// hold takes no more messages until it is called with false. What is being served goes on.
func (st *station) hold(held bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.held = held
	st.allow()
}

// connected gives the station its subscription.
func (st *station) connected(c Consumer) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.consumer = c
	st.allow()
}

// allow tells the queue how many messages may be in hand (R21). st.mu is held, so that the last
// word is the latest.
func (st *station) allow() {
	switch {
	case st.consumer == nil:
	case st.draining || st.held:
		st.consumer.SetFree(0)
	default:
		st.consumer.SetFree(max(st.slots-st.left, 0))
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
