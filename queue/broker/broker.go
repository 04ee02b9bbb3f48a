// Package broker is an NSQ V2 protocol server that lives in one process and keeps everything in
// memory.
//
// It keeps true what a consumer of nsqd relies on: a message stays in its channel until the client
// that holds it finishes it; whatever is not finished within its timeout, or is held by a client
// that goes away, is delivered again; every channel of a topic gets every message; a client never
// holds more messages than its RDY count. It does not keep messages over a Close: in Holdfast they
// are hints, and the Registry rings again (I1). The embedded default and the tests run it;
// production runs nsqd.
//
// Memory is bounded. What would take topics, channels and messages beyond Options.MaxMemory is
// refused, and the publisher keeps it: of what the Registry's relay rings for nothing is lost,
// since it rings again. Each of at most Options.MaxClients connections has some buffers besides:
// 256 KiB and one message. A client that does not read is given nothing more, and is disconnected
// when a write to it times out. With Options.AuthSecret one that does not say it is disconnected
// after Options.AuthTime, and before that where another one needs its place.
package broker

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"
)

// ErrClosed is returned by Listen after Close.
var ErrClosed = errors.New("broker is closed")

// ErrRemote is returned by Listen for an address that is not loopback, unless Options.Remote allows
// it.
var ErrRemote = errors.New("others than this machine can reach the address")

// Broker is the server. Make one with New. All its methods may be called concurrently.
type Broker struct {
	opts    Options
	hub     *hub
	log     *slog.Logger
	started time.Time

	mu        sync.Mutex
	listeners []net.Listener
	conns     map[*conn]struct{}
	turn      int64 // of the last connection
	closed    bool

	stop chan struct{}  // closed by Close
	wg   sync.WaitGroup // accept loops, connections and the clock
}

// New returns a broker with opts that serves nobody until Listen is called. It returns an error
// that names every option out of range.
func New(opts Options) (*Broker, error) {
	opts = opts.withDefaults()
	if err := opts.check(); err != nil {
		return nil, fmt.Errorf("check broker options: %w", err)
	}
	return &Broker{
		opts:    opts,
		hub:     newHub(opts),
		log:     opts.Log,
		started: time.Now(),
		conns:   make(map[*conn]struct{}),
		stop:    make(chan struct{}),
	}, nil
}

// Listen starts serving the V2 protocol on the TCP address addr ("127.0.0.1:0" takes a free port)
// and returns once connections are accepted; serving goes on until Close. It may be called several
// times for several addresses. It returns ErrClosed after Close, ErrRemote when others can reach
// addr and Options.Remote does not say that they may, and the system's error when addr cannot be
// bound.
func (b *Broker) Listen(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("listen for NSQ clients: %w", err)
	}
	if tcp, ok := l.Addr().(*net.TCPAddr); !b.opts.Remote && (!ok || !tcp.IP.IsLoopback()) {
		return errors.Join(fmt.Errorf("listen on %s: %w", addr, ErrRemote), l.Close())
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return errors.Join(fmt.Errorf("listen on %s: %w", addr, ErrClosed), l.Close())
	}
	b.listeners = append(b.listeners, l)
	if len(b.listeners) == 1 {
		b.wg.Go(b.runClock)
	}
	b.wg.Go(func() { b.accept(l) })
	return nil
}

// Addr is the host:port of the first Listen, with the port really bound; "" before Listen.
func (b *Broker) Addr() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.listeners) == 0 {
		return ""
	}
	return b.listeners[0].Addr().String()
}

// Close stops listening, closes every connection, forgets every message and returns when the last
// goroutine of the broker has ended. It may be called several times and before Listen; every call
// waits.
func (b *Broker) Close() error {
	b.mu.Lock()
	first := !b.closed
	b.closed = true
	var errs []error
	if first {
		close(b.stop)
		for _, l := range b.listeners {
			errs = append(errs, l.Close())
		}
		for c := range b.conns {
			c.close()
		}
	}
	b.mu.Unlock()
	b.wg.Wait()
	return errors.Join(errs...)
}

// accept serves the clients of one listener until it is closed.
func (b *Broker) accept(l net.Listener) {
	for {
		nc, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Out of file descriptors, or a client that was gone before it was accepted: both pass.
			b.log.Warn("accept NSQ client", "err", err)
			select {
			case <-time.After(acceptPause):
				continue
			case <-b.stop:
				return
			}
		}
		b.serve(nc)
	}
}

// serve starts the goroutines of a connection, unless the broker is closing. Where all places are
// taken, the client that has been here for longest without saying the secret gives way: who does
// not know it keeps nobody out who does.
func (b *Broker) serve(nc net.Conn) {
	c := newConn(b, nc)
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed && len(b.conns) >= b.opts.MaxClients {
		c := cmp.Or(b.oldestStranger(), c)
		b.log.Warn("NSQ client is turned away: there are as many as there may be", "client", c.client.remote, "most", b.opts.MaxClients)
		c.close()
		delete(b.conns, c)
	}
	if b.closed || len(b.conns) >= b.opts.MaxClients {
		c.close()
		return
	}
	b.turn++
	c.turn = b.turn
	b.conns[c] = struct{}{}
	b.wg.Go(func() {
		c.run()
		b.mu.Lock()
		delete(b.conns, c)
		b.mu.Unlock()
	})
}

// oldestStranger is the connection that has been here for longest without saying the secret; nil:
// there is none.
func (b *Broker) oldestStranger() (oldest *conn) {
	for c := range b.conns {
		if c.stranger() && (oldest == nil || c.turn < oldest.turn) {
			oldest = c
		}
	}
	return oldest
}

// runClock delivers again what timed out and delivers what was deferred, when it is due.
func (b *Broker) runClock() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(b.hub.expire(time.Now()))
		select {
		case <-timer.C:
		case <-b.hub.earlier:
		case <-b.stop:
			return
		}
	}
}
