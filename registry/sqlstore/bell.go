package sqlstore

import "sync"

// bell wakes everybody who waits for something to happen. The zero value is ready.
type bell struct {
	mu sync.Mutex
	ch chan struct{} // of those who wait now; nil: nobody
}

// wait returns a channel that is closed at the next ring. Ask for it first, then look, then wait: nothing is missed.
func (b *bell) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

// ring wakes all who wait.
func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}

// tell rings for what a transaction that has been committed did.
func (s *Store) tell(t *tx) {
	if t.wrote {
		s.news.ring()
	}
	if t.taken {
		s.taken.ring()
	}
}
