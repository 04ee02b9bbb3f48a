package sqlstore

import "sync"

// bell wakes everybody who waits, as often as it is rung. The zero value is ready.
type bell struct {
	mu   sync.Mutex
	next chan struct{} // closed by the next ring; nil: nobody waits
}

// ring wakes all who wait. It never blocks.
func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next != nil {
		close(b.next)
		b.next = nil
	}
}

// wait returns a channel that the next ring closes. Whoever looks for news between this and the waiting misses none.
func (b *bell) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == nil {
		b.next = make(chan struct{})
	}
	return b.next
}
