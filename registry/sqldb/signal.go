package sqldb

import (
	"sync"
)

// Signal wakes all goroutines that wait for something to happen. The zero value is ready. Its
// methods may be called concurrently.
type Signal struct {
	mu sync.Mutex
	ch chan struct{} // what the present waiters wait for; nil: there are none
}

// Wait returns a channel that the next Notify closes. Call Wait first, then look at the state, then
// receive: so no signal is missed.
func (b *Signal) Wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

// Notify wakes all waiters.
func (b *Signal) Notify() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}
