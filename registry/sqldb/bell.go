package sqldb

import (
	"sync"
)

// Bell wakes everybody who waits for something to happen. The zero value is ready.
type Bell struct {
	mu sync.Mutex
	ch chan struct{} // of those who wait now; nil: nobody
}

// Wait returns a channel that is closed at the next ring. Ask for it first, then look, then wait:
// nothing is missed.
func (b *Bell) Wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

// Ring wakes all who wait.
func (b *Bell) Ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}
