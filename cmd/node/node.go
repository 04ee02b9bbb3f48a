// Package node assembles Holdfast's processes from their parts. `holdfast up` runs all parts in one
// process over one folder. In production each role is a process of its own, made of the same parts.
//
// A process that cannot start leaves nothing running. One that is closed drains first.
//
// It picks the drivers, which everything else takes as contracts. It knows no command line and no
// settings: cmd/holdfast/process makes its options of them.
package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/holdfast/holdfast/web/signin"
)

// Common is what every process is told. Log must be set.
type Common struct {
	Listen  string // host:port of its HTTP side; port 0 takes a free one, "" none, which only a worker may have
	Log     *slog.Logger
	Version string        // of the program
	Grace   time.Duration // the time that stopping may take; 0: 25 s
	Wait    time.Duration // how long a role waits at its start for services that do not answer; 0: not at all
	// Faults are what is known to be wrong already. With them a role does not start: it looks at
	// the rest, as far as it is told of it, and returns everything together.
	Faults error
}

// Node is a running process.
type Node struct {
	Common
	url, token, worker string
	store              signin.Store // nil: no pages are served

	opening sync.Mutex
	closers []func() error // in the order of opening

	server  *http.Server
	tls     *tls.Config        // nil: plain HTTP
	proxied bool               // plain HTTP is for proxies and this machine only
	streams chan struct{}      // closed when the server is about to stop
	loops   context.Context    //nolint:containedctx // what runs until stop is called
	stop    context.CancelFunc // ends workers and loops
	running sync.WaitGroup
	failed  chan error
	leaving chan struct{} // closed when the machine is taken

	closing sync.Once
	closed  error
}

// start makes a node of what assemble opens and runs. When that fails, nothing is left running.
func start(ctx context.Context, c Common, assemble func(*Node) error) (*Node, error) {
	n := &Node{Common: c, failed: make(chan error, 1), streams: make(chan struct{}), leaving: make(chan struct{})}
	if n.Grace <= 0 {
		n.Grace = 25 * time.Second
	}
	n.loops, n.stop = context.WithCancel(context.WithoutCancel(ctx))
	if err := assemble(n); err != nil {
		return nil, errors.Join(err, n.release()) //nolint:contextcheck // it drains although ctx may be over
	}
	return n, nil
}

// listen binds the address, so that a taken one is told before anything has started. Who connects
// waits until serve.
func (n *Node) listen(ctx context.Context) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", n.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", n.Listen, err)
	}
	n.onClose(func() error {
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil // the server has closed it
	})
	n.url = "http://" + l.Addr().String()
	return l, nil
}

func (n *Node) serve(l net.Listener, handler http.Handler) {
	n.server = &http.Server{
		Handler: handler, TLSConfig: n.tls, ReadHeaderTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(n.Log.Handler(), slog.LevelDebug),
	}
	n.server.RegisterOnShutdown(func() { close(n.streams) }) // which Shutdown would wait for
	n.running.Go(func() {
		serve := n.server.Serve
		if n.tls != nil {
			serve = func(l net.Listener) error { return n.server.ServeTLS(l, "", "") }
		}
		if err := serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
			n.fail(fmt.Errorf("serve HTTP: %w", err))
		}
	})
}

// run runs a loop until the node is closed.
func (n *Node) run(loop func(context.Context)) {
	n.running.Go(func() { loop(n.loops) })
}

func (n *Node) fail(err error) {
	select {
	case n.failed <- err:
	default: // the first one counts
	}
}

// URL is the address of its HTTP side; "" when it has none.
func (n *Node) URL() string { return n.url }

// Worker is what the Registry calls the workers of this process; "" when there are none.
func (n *Node) Worker() string { return n.worker }

// Token is an admin's bearer token, which only [Up] makes.
func (n *Node) Token() string { return n.token }

// Failed delivers an error when a part ended by itself; the node should then be closed.
func (n *Node) Failed() <-chan error { return n.failed }

// Leaving is closed when the machine is about to be taken; the node should then be closed, which is
// no fault.
func (n *Node) Leaving() <-chan struct{} { return n.leaving }

// Close drains and stops everything: no new work is begun, steps checkpoint and give their items
// back, uncounted. It returns within the grace period and a little. It may be called again, and
// answers alike.
func (n *Node) Close() error {
	n.closing.Do(func() { n.closed = n.release() })
	return n.closed
}

func (n *Node) release() error {
	n.stop() // first of all, so that nothing more is claimed while the last requests are answered
	var errs []error
	if n.server != nil {
		// Requests under way may end; uploads that would take longer are broken off and leave
		// nothing.
		ctx, cancel := context.WithTimeout(context.Background(), n.Grace/5)
		if n.server.Shutdown(ctx) != nil {
			errs = append(errs, n.server.Close())
		}
		cancel()
	}
	n.running.Wait()
	for _, c := range slices.Backward(n.closers) {
		errs = append(errs, c())
	}
	n.closers = nil
	return errors.Join(errs...)
}

// onClose notes what is to be closed, last opened first.
func (n *Node) onClose(c func() error) {
	n.opening.Lock()
	defer n.opening.Unlock()
	n.closers = append(n.closers, c)
}
