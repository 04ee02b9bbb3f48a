// Package broker is an NSQ V2 protocol server in one process that keeps everything in memory. The
// embedded default and the tests run it; production runs nsqd.
//
// It keeps the promises of nsqd that a consumer relies on:
//
//   - A message stays in its channel until the client that holds it finishes it.
//   - A message is delivered again if it is not finished within its timeout. If its client
//     disconnects, nsqd waits for the timeout, too; the broker delivers the message at once.
//   - Every channel of a topic gets every message.
//   - A client never holds more messages than its RDY count.
//
// Close drops all messages. In Holdfast they are hints, and the Registry publishes again (I1).
//
// Memory is bounded. The broker refuses topics, channels and messages beyond Options.MaxMemory; the
// publisher keeps what was refused and publishes it again later. Each of at most Options.MaxClients
// connections also has buffers of 256 KiB and one message. A client that does not read gets no more
// messages, and is disconnected when a write to it times out. With Options.AuthSecret, a client
// that does not authenticate is disconnected after Options.AuthTime, or earlier if another client
// needs its place.
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
	accepted  int64 // connections accepted so far
	closed    bool

	stop chan struct{}  // closed by Close
	wg   sync.WaitGroup // accept loops, connections and the clock
}

// New returns a broker with opts that accepts no connections until Listen is called. Its error
// names every option out of range.
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

// Listen serves the V2 protocol on the TCP address addr ("127.0.0.1:0" takes a free port). It
// returns once connections are accepted, and serves until Close. It may be called several times for
// several addresses. It returns ErrClosed after Close, ErrRemote if addr is not loopback and
// Options.Remote is not set, and the system's error if addr cannot be bound.
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

// Addr returns the host:port of the first Listen, with the actual port; "" before Listen.
func (b *Broker) Addr() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.listeners) == 0 {
		return ""
	}
	return b.listeners[0].Addr().String()
}

// Close stops listening, closes every connection, drops every message, and returns when the
// broker's last goroutine has ended. It may be called several times and before Listen; every call
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
			// Out of file descriptors, or a client that disconnected before it was accepted: both
			// pass.
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

// serve starts the goroutines of a connection, unless the broker is closing. If all places are
// taken, the oldest connection that has not authenticated is closed: a client without the secret
// cannot keep out one that has it.
func (b *Broker) serve(nc net.Conn) {
	c := newConn(b, nc)
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed && len(b.conns) >= b.opts.MaxClients {
		c := cmp.Or(b.oldestUnauthenticated(), c)
		b.log.Warn("NSQ client disconnected: the limit of connections is reached", "client", c.client.remote, "most", b.opts.MaxClients)
		c.close()
		delete(b.conns, c)
	}
	if b.closed || len(b.conns) >= b.opts.MaxClients {
		c.close()
		return
	}
	b.accepted++
	c.number = b.accepted
	b.conns[c] = struct{}{}
	b.wg.Go(func() {
		c.run()
		b.mu.Lock()
		delete(b.conns, c)
		b.mu.Unlock()
	})
}

// oldestUnauthenticated returns the oldest connection that has not authenticated; nil if there is
// none.
func (b *Broker) oldestUnauthenticated() (oldest *conn) {
	for c := range b.conns {
		if c.unauthenticated() && (oldest == nil || c.number < oldest.number) {
			oldest = c
		}
	}
	return oldest
}

// runClock delivers messages when they time out or their delay is over.
func (b *Broker) runClock() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(b.hub.expire(time.Now()))
		select {
		case <-timer.C:
		case <-b.hub.wake:
		case <-b.stop:
			return
		}
	}
}
