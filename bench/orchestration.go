package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/holdfast/holdfast/registry/sqldb"

	"github.com/google/uuid"

	"github.com/holdfast/holdfast/base"
	interimsql "github.com/holdfast/holdfast/interim/sqlstore"
	"github.com/holdfast/holdfast/periodic/relay"
	"github.com/holdfast/holdfast/queue"
	"github.com/holdfast/holdfast/queue/broker"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore"
)

// The targets of six durable stages; with the default slots, too.
const sqliteTarget, postgresTarget = "2500 items/s", "1200 items/s"

// orchestration measures six durable stages without work, which shows the overhead of Holdfast, and
// the least that a database can do for them.
func (b *bench) orchestration(ctx context.Context) error {
	n := b.scaled(1000)
	b.say("%d items through six stages without work", n)
	folder := b.path("orchestration")
	floor := func(group int64) func(context.Context) (time.Duration, error) {
		return func(ctx context.Context) (time.Duration, error) {
			taken, err := sqliteFloor(ctx, folder, n, group)
			return taken, errors.Join(err, cleanUp(folder))
		}
	}
	slots := (&base.Worker{}).Concurrency()
	subjects := []subject{
		b.stages(fmt.Sprintf("holdfast, %d slots a stage (the default)", slots), slots, n, sqliteIn),
		b.stages(fmt.Sprintf("holdfast, %d slots a stage", b.slots), b.slots, n, sqliteIn),
		{"one by one: six transactions an item", floor(1)},
		{"in groups of 100: the same", floor(100)},
	}
	targets := map[string]string{subjects[0].name: sqliteTarget, subjects[1].name: sqliteTarget}
	if b.postgres != "" {
		name := fmt.Sprintf("holdfast on PostgreSQL, %d slots a stage", b.slots)
		subjects = append(subjects, b.stages(name, b.slots, n, schemaOf(b.postgres)))
		targets[name] = postgresTarget
	}
	taken, err := b.compare(ctx, subjects...)
	if err != nil {
		return err
	}
	b.part("six durable stages, SQLite FULL, one process", float64(n), "items/s", taken, [2]string{subjects[2].name, subjects[3].name},
		targets, subjects...)
	return nil
}

// stages moves n items through six durable stages in this process.
func (b *bench) stages(name string, slots int, n int64, where database) subject {
	folder := b.path("orchestration")
	return subject{name, func(ctx context.Context) (taken time.Duration, err error) {
		url, remove, err := where(ctx, folder)
		if err != nil {
			return 0, err
		}
		taken, err = stagesOnly(ctx, folder, url, n, slots, func() (func() error, error) {
			before := costOf(os.Getpid())
			return func() error {
				b.spent(name, costOf(os.Getpid()).minus(before), n)
				return nil
			}, nil
		})
		return taken, errors.Join(err, remove(), cleanUp(folder))
	}}
}

// idle is a worker that does nothing.
type idle struct {
	base.Worker
	stage registry.Stage
	done  *atomic.Int64
}

func (w *idle) Stage() registry.Stage { return w.stage }

func (w *idle) Work(context.Context, *base.Item) error {
	w.done.Add(1)
	return nil
}

// stagesOnly measures the time from the start of the workers, with n waiting jobs, until all jobs
// are settled. It uses the Registry, relay, broker and base worker as `holdfast up` does. observe
// may be nil; otherwise it is called at the start.
func stagesOnly(ctx context.Context, folder, url string, n int64, slots int, observe func() (stop func() error, err error)) (_ time.Duration, err error) {
	if err := os.Mkdir(folder, 0o700); err != nil {
		return 0, err
	}
	log := slog.New(slog.DiscardHandler)
	store, err := sqlstore.Open(ctx, sqlstore.Options{URL: url, Log: log})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	interim, err := interimsql.Open(ctx, filepath.Join(folder, "interim.db"), log)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, interim.Close()) }()
	nsq, err := broker.New(broker.Options{Log: log})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, nsq.Close()) }()
	if err := nsq.Listen("127.0.0.1:0"); err != nil {
		return 0, err
	}
	producer, err := queue.OpenProducer(ctx, queue.ProducerConfig{Addrs: []string{nsq.Addr()}, Log: log})
	if err != nil {
		return 0, err
	}
	defer producer.Close()
	batch, err := manyJobs(ctx, store, n)
	if err != nil {
		return 0, err
	}

	var works atomic.Int64
	var handlers []base.Handler
	route, _ := registry.RouteOf(registry.Ingest)
	for _, s := range route.With(nil).Steps {
		handlers = append(handlers, &idle{Worker: base.Worker{Slots: slots}, stage: s.Stage, done: &works})
	}
	runner := &base.Runner{
		Registry: store, Interim: interim, Log: log,
		Connect: base.Queue(queue.ConsumerConfig{Addrs: []string{nsq.Addr()}, Log: log}, ""),
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 2)
	finish := func() error {
		stop()
		return errors.Join(<-ended, <-ended)
	}
	if observe != nil {
		end, startErr := observe()
		if startErr != nil {
			stop()
			return 0, startErr
		}
		defer func() { err = errors.Join(err, end()) }()
	}
	begun := time.Now()
	go func() { ended <- runner.Run(running, handlers...) }()
	go func() { relay.New(store, producer, log).Run(running); ended <- nil }()
	err = emptied(ctx, store, batch)
	taken := time.Since(begun)
	if err := errors.Join(err, finish()); err != nil {
		return 0, err
	}
	if got, want := works.Load(), n*int64(len(handlers)); got != want {
		return 0, fmt.Errorf("the workers were called %d times, not %d", got, want)
	}
	return taken, nil
}

// manyJobs creates a batch of n jobs, as expand does.
func manyJobs(ctx context.Context, s *sqlstore.Store, n int64) (batch string, err error) {
	err = s.PutCollection(ctx, registry.Collection{Mnemonic: "bench", Tenant: sqldb.Tenant}, "bench")
	if err != nil {
		return "", err
	}
	spec := registry.Spec{Type: registry.FileType, URL: "https://example.org/payload", Filename: "payload"}
	r, err := s.Submit(ctx, registry.Submission{Collection: "bench", Name: "payload", Spec: spec})
	if err != nil {
		return "", err
	}
	c, err := s.Claim(ctx, registry.ClaimRequest{
		RequestID: uuid.NewString(), Stage: registry.Expand, Hint: r.BatchID, Worker: "bench", Lease: time.Hour, StuckAfter: time.Hour,
	})
	if err != nil {
		return "", err
	}
	const most = 500 // jobs per call
	for row := int64(1); row <= n; {
		var jobs []registry.NewJob
		for ; row <= n && len(jobs) < most; row++ {
			jobs = append(jobs, registry.NewJob{Line: row, Name: fmt.Sprintf("payload %d", row), Spec: spec})
		}
		if _, err := s.AddJobs(ctx, c.Lease, jobs); err != nil {
			return "", err
		}
	}
	_, err = s.Settle(ctx, registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeDone})
	return r.BatchID, err
}

// emptied waits until a batch has no open jobs.
func emptied(ctx context.Context, s *sqlstore.Store, batch string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("jobs not settled within %s", patience))
	defer cancel()
	tick := time.NewTicker(asked)
	defer tick.Stop()
	for {
		it, err := s.Item(ctx, batch)
		if err != nil || it.BlockerCount == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}
