// Package node assembles Holdfast's processes from their parts. `holdfast up` runs all parts in one
// process over one folder. In production each role is a process of its own, made of the same parts.
//
// A process that cannot start leaves nothing running. Closing a process drains it first.
//
// This package alone picks the drivers; all others take contracts. It knows no command line and no
// settings: cmd/holdfast/role makes its options.
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

	"github.com/holdfast/holdfast/tracing"
	"github.com/holdfast/holdfast/web/signin"
)

// Common has the options of all processes. Log must be set.
type Common struct {
	Listen    string // host:port of its HTTP server; port 0 takes a free one; "", for workers only, is none
	Log       *slog.Logger
	Version   string        // of the program
	Grace     time.Duration // how long stopping may take; 0: 25 s
	Wait      time.Duration // how long a role waits at its start for services that do not answer; 0: not at all
	TracesURL string        // the OTLP receiver of traces; "": none are made
	// Faults are known faults of the configuration. With them a role does not start: it checks the
	// rest as far as it can, and returns all faults together.
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
	loops   context.Context    //nolint:containedctx // ends when stop is called
	stop    context.CancelFunc // ends workers and loops
	running sync.WaitGroup
	failed  chan error
	leaving chan struct{} // closed at a spot notice

	closing sync.Once
	closed  error
}

// start makes a node with assemble, which opens and runs its parts. If that fails, nothing is left
// running.
func start(ctx context.Context, c Common, assemble func(*Node) error) (*Node, error) {
	n := &Node{Common: c, failed: make(chan error, 1), streams: make(chan struct{}), leaving: make(chan struct{})}
	if n.Grace <= 0 {
		n.Grace = 25 * time.Second
	}
	n.loops, n.stop = context.WithCancel(context.WithoutCancel(ctx))
	if err := n.trace(ctx); err != nil {
		return nil, err
	}
	if err := assemble(n); err != nil {
		return nil, errors.Join(err, n.release()) //nolint:contextcheck // it drains although ctx may be over
	}
	return n, nil
}

// trace begins to make traces, if there is a receiver. It need not answer.
func (n *Node) trace(ctx context.Context) error {
	if n.TracesURL == "" {
		return nil
	}
	stop, err := tracing.Open(ctx, n.TracesURL, n.Version, n.Log)
	if err != nil {
		return fmt.Errorf("make traces: %w", err)
	}
	n.onClose(stop)
	n.Log = slog.New(tracing.Handler(n.Log.Handler()))
	return nil
}

// listen binds the address, so that a taken one is reported before anything has started. Clients
// wait until serve.
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
		return nil // the server closed it
	})
	n.url = "http://" + l.Addr().String()
	return l, nil
}

func (n *Node) serve(l net.Listener, handler http.Handler) {
	n.server = &http.Server{
		Handler: handler, TLSConfig: n.tls, ReadHeaderTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(n.Log.Handler(), slog.LevelDebug),
	}
	n.server.RegisterOnShutdown(func() { close(n.streams) }) // Shutdown waits for them
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
	default: // the first error counts
	}
}

// URL returns the address of its HTTP server, "" if it has none.
func (n *Node) URL() string { return n.url }

// Worker returns the id of this process's workers, "" if it has none.
func (n *Node) Worker() string { return n.worker }

// Token returns an admin's bearer token. Only [Up] makes one.
func (n *Node) Token() string { return n.token }

// Failed delivers an error if a part ended by itself. Close the node then.
func (n *Node) Failed() <-chan error { return n.failed }

// Leaving is closed at a spot notice, when the machine is about to be taken. Close the node then;
// this is no fault.
func (n *Node) Leaving() <-chan struct{} { return n.leaving }

// Close drains and stops everything: it starts no new work, and steps save their progress and
// release their items, uncounted. It returns shortly after the grace period at the latest. A second
// call waits for the first and returns the same error.
func (n *Node) Close() error {
	n.closing.Do(func() { n.closed = n.release() })
	return n.closed
}

func (n *Node) release() error {
	n.stop() // first, so that nothing more is claimed
	var errs []error
	if n.server != nil {
		// Requests under way may finish. Longer uploads are cut off and can be resumed.
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

// onClose registers a closer. The last one registered runs first.
func (n *Node) onClose(c func() error) {
	n.opening.Lock()
	defer n.opening.Unlock()
	n.closers = append(n.closers, c)
}
