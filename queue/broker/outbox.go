package broker

import (
	"sync"
	"sync/atomic"
)

// outbox buffers the bytes for one client. Adding never blocks; conn.write empties it.
type outbox struct {
	wake chan struct{} // has a token if there is something to write
	size atomic.Int64  // bytes waiting or being written

	mu      sync.Mutex
	pending []byte
	closed  bool // accepts no more frames; pending ones are still written
}

func newOutbox() *outbox {
	return &outbox{wake: make(chan struct{}, 1)}
}

// full reports whether so much is waiting that the client should get no more messages.
func (o *outbox) full() bool { return o.size.Load() >= maxOutbox }

func (o *outbox) frame(kind uint32, data string) {
	o.add(func(buf []byte) []byte { return appendFrame(buf, kind, data) })
}

func (o *outbox) message(m *message) {
	o.add(func(buf []byte) []byte { return appendMessage(buf, m) })
}

func (o *outbox) add(grow func([]byte) []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	before := len(o.pending)
	o.pending = grow(o.pending)
	o.size.Add(int64(len(o.pending) - before))
	o.signal()
}

// close accepts no more frames; the writer ends after it has written the pending ones.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.signal()
}

func (o *outbox) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// take returns the pending bytes and replaces them by an empty buffer.
func (o *outbox) take(empty []byte) (pending []byte, closed bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	pending, o.pending = o.pending, empty[:0]
	return pending, o.closed
}

// written subtracts n bytes that were written. It reports whether the outbox was full before and is
// not now.
func (o *outbox) written(n int) bool {
	after := o.size.Add(-int64(n))
	return after < maxOutbox && after+int64(n) >= maxOutbox
}
