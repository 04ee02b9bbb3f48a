// Package node assembles a whole Holdfast in one process: Registry, broker, workers, API and pages, over one folder. It
// is what `holdfast up` runs and what the end-to-end tests run; the parts are those of production.
package node

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/interim"
	interimsql "github.com/holdfast/holdfast/interim/sqlstore"
	"github.com/holdfast/holdfast/mint"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/queue"
	"github.com/holdfast/holdfast/queue/broker"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/relay"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/registry/sweep"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/storage/dir"
	"github.com/holdfast/holdfast/workers"
)

// Options says what to run and how. Dir, Listen, Log and Template must be set.
type Options struct {
	Dir      string // made when it is missing; everything of this Holdfast lies in it
	Listen   string // host:port of API and pages; port 0 takes a free one
	Log      *slog.Logger
	Version  string
	Allow    []netip.Prefix // addresses that sources may have although the guard refuses them
	Template mint.Template  // with its NAAN
	// Database is the Registry's address; "" is a SQLite file in Dir, which is nobody else's.
	Database string

	StagingFull, StagingFullUnestimated float64 // shares, 0 to 1
	TopicPrefix                         string

	Lease  time.Duration                      // 0: the Base worker's default
	Grace  time.Duration                      // 0: 25 s
	Policy func(s registry.Stage) base.Worker // nil: defaults
}

// Node is a running Holdfast.
type Node struct {
	url, token string
	store      *sqlstore.Store
	log        *slog.Logger
	grace      time.Duration

	closers []func() error // in the order of opening
	server  *http.Server
	stop    context.CancelFunc // ends workers and loops
	running sync.WaitGroup
	failed  chan error

	closing sync.Once
	closed  error
}

// Start opens or makes the folder and runs everything in it. What an earlier process left under way goes on. The errors
// say what is wrong with which setting: [ErrInUse] when another process has the folder, syscall.EADDRINUSE for the
// address. When it fails, nothing is left running.
func Start(ctx context.Context, o Options) (_ *Node, err error) {
	n := &Node{log: o.Log, grace: o.Grace, failed: make(chan error, 1)}
	if n.grace <= 0 {
		n.grace = 25 * time.Second
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.release(context.WithoutCancel(ctx)))
		}
	}()
	folder, err := openFolder(o.Dir)
	if err != nil {
		return nil, err
	}
	n.onClose(folder.Close)
	// The address first: it is what most often is taken, and nothing should have started then.
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", o.Listen, err)
	}
	n.url = "http://" + listener.Addr().String()
	unserved := true
	defer func() {
		if err != nil && unserved {
			err = errors.Join(err, listener.Close())
		}
	}()
	s, err := n.open(ctx, o)
	if err != nil {
		return nil, err
	}
	n.store = s.registry
	if n.token, err = folder.client(ctx, s.registry, n.url); err != nil {
		return nil, err
	}
	handler, err := s.handler(o) //nolint:contextcheck // every request brings its own
	if err != nil {
		return nil, err
	}
	if err := n.work(ctx, o, s); err != nil {
		return nil, err
	}
	unserved = false
	n.serve(listener, handler)
	return n, nil
}

// stores is what the parts of a node share.
type stores struct {
	registry *sqlstore.Store
	interim  interim.Store
	staging  *dir.Store
	storage  *dir.Store
	objects  *ocfl.Root
}

// open opens everything that lies in the folder.
func (n *Node) open(ctx context.Context, o Options) (*stores, error) {
	var s stores
	var err error
	database := cmp.Or(o.Database, "sqlite:"+filepath.Join(o.Dir, "registry.db"))
	if s.registry, err = sqlstore.Open(ctx, sqlstore.Options{URL: database, Log: o.Log}); err != nil {
		return nil, err
	}
	n.onClose(s.registry.Close)
	i, err := interimsql.Open(ctx, filepath.Join(o.Dir, "interim.db"), o.Log)
	if err != nil {
		return nil, err
	}
	n.onClose(i.Close)
	s.interim = i
	if s.staging, err = dir.Create(filepath.Join(o.Dir, "staging")); err != nil {
		return nil, err
	}
	n.onClose(s.staging.Close)
	if s.storage, err = dir.Create(filepath.Join(o.Dir, "storage")); err != nil {
		return nil, err
	}
	n.onClose(s.storage.Close)
	if s.objects, err = ocfl.OpenRoot(ctx, s.storage, "", nil); err != nil {
		return nil, fmt.Errorf("open preservation storage: %w", err)
	}
	return &s, s.prepare(ctx, o)
}

// prepare takes back what an earlier process had in hand, and sees to it that there is a collection.
func (s *stores) prepare(ctx context.Context, o Options) error {
	if o.Database == "" {
		// We hold the folder's lock, so no worker of an earlier process is left. Another database may have others.
		lost, err := s.registry.Reclaim(ctx)
		if err != nil {
			return err
		}
		for _, l := range lost {
			o.Log.InfoContext(ctx, "goes on with an item of an earlier process", "item", l.ItemID, "attempt", l.N)
		}
	}
	// The broker is new, so every message that was on its way is gone.
	if err := s.registry.Reoffer(ctx); err != nil {
		return err
	}
	_, err := s.registry.Collection(ctx, DefaultCollection)
	if !errors.Is(err, registry.ErrNotFound) {
		return err
	}
	return s.registry.PutCollection(ctx, registry.Collection{Mnemonic: DefaultCollection, Profile: registry.Profile{
		Name:  "Default collection",
		Owner: "ark:/" + o.Template.NAAN + "/owner", Collections: []string{"ark:/" + o.Template.NAAN + "/default"},
	}}, "holdfast")
}

// DefaultCollection is the collection of submissions that name none.
const DefaultCollection = "default"

// work starts broker, relay, sweep and workers.
func (n *Node) work(ctx context.Context, o Options, s *stores) error {
	b, err := broker.New(broker.Options{Log: o.Log})
	if err != nil {
		return err
	}
	n.onClose(b.Close)
	if err := b.Listen("127.0.0.1:0"); err != nil {
		return fmt.Errorf("start the broker: %w", err)
	}
	producer, err := queue.OpenProducer(ctx, queue.ProducerConfig{Addrs: []string{b.Addr()}, Log: o.Log})
	if err != nil {
		return err
	}
	n.onClose(func() error { producer.Close(); return nil })

	fetcher := source.NewHTTP(source.HTTPOptions{Guard: source.Guard{Allow: o.Allow}, UserAgent: "Holdfast/" + o.Version})
	n.onClose(func() error { fetcher.Close(); return nil })
	deps := &workers.Deps{
		Registry: s.registry, Interim: s.interim, Staging: s.staging, Volume: "staging", Objects: s.objects,
		Storage: "file://" + absolute(o.Dir) + "/storage", Template: o.Template, Random: rand.Reader, Version: o.Version,
		StagingFull: o.StagingFull, StagingFullUnestimated: o.StagingFullUnestimated, Policy: o.Policy,
		Source: source.NewMux(map[string]source.Fetcher{
			"http": fetcher, "https": fetcher, source.UploadScheme: source.NewUploads(s.staging),
		}),
	}
	if deps.Policy == nil {
		deps.Policy = func(registry.Stage) base.Worker { return base.Worker{LeaseFor: o.Lease} }
	}
	runner := &base.Runner{
		Registry: s.registry, Interim: s.interim, WorkerID: workerID(), Version: o.Version, Log: o.Log, Grace: n.grace,
		Connect: base.Queue(queue.ConsumerConfig{Addrs: []string{b.Addr()}, Log: o.Log}, o.TopicPrefix),
	}
	r := relay.New(s.registry, producer, o.Log)
	r.Prefix = o.TopicPrefix
	lease := o.Lease
	if lease <= 0 {
		lease = (&base.Worker{}).Lease()
	}
	loops, stop := context.WithCancel(context.WithoutCancel(ctx))
	n.stop = stop
	n.running.Go(func() { r.Run(loops) })
	n.running.Go(func() { sweep.New(s.registry, lease, o.Log).Run(loops) })
	n.running.Go(func() {
		if err := runner.Run(loops, workers.All(deps)...); err != nil {
			n.fail(fmt.Errorf("workers: %w", err))
		}
	})
	return nil
}

// workerID is unique for each start of a process (R9), and tells people where to look.
func workerID() string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return fmt.Sprintf("%s-%d-%s", host, os.Getpid(), strings.ToLower(rand.Text()[:6]))
}

func (n *Node) serve(listener net.Listener, handler http.Handler) {
	n.server = &http.Server{
		Handler: handler, ReadHeaderTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(n.log.Handler(), slog.LevelDebug),
	}
	n.running.Go(func() {
		if err := n.server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			n.fail(fmt.Errorf("serve the API: %w", err))
		}
	})
}

func (n *Node) fail(err error) {
	select {
	case n.failed <- err:
	default: // the first one counts
	}
}

// URL is the address of API and pages.
func (n *Node) URL() string { return n.url }

// Token is an admin's bearer token.
func (n *Node) Token() string { return n.token }

// Failed delivers an error when a part ended by itself; the node should then be closed.
func (n *Node) Failed() <-chan error { return n.failed }

// Close drains and stops everything: no new work is begun, steps checkpoint and give their items back, uncounted. It
// returns within the grace period and a little. It may be called again, and answers alike.
func (n *Node) Close() error {
	n.closing.Do(func() { n.closed = n.release(context.Background()) })
	return n.closed
}

func (n *Node) release(ctx context.Context) error {
	var errs []error
	if n.server != nil {
		// Requests under way may end; uploads that would take longer are broken off and leave nothing.
		shutdown, cancel := context.WithTimeout(ctx, n.grace/5)
		if n.server.Shutdown(shutdown) != nil {
			errs = append(errs, n.server.Close())
		}
		cancel()
	}
	if n.stop != nil {
		n.stop()
	}
	n.running.Wait()
	for _, c := range slices.Backward(n.closers) {
		errs = append(errs, c())
	}
	n.closers = nil
	return errors.Join(errs...)
}

// onClose notes what is to be closed, last opened first.
func (n *Node) onClose(c func() error) { n.closers = append(n.closers, c) }

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
