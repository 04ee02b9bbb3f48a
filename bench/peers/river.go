package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

type stage struct {
	N int `json:"n"`
}

func (stage) Kind() string { return "stage" }

// riverWorker runs a stage. If it is transactional, a job's completion and the next job are one
// transaction; otherwise the next job is inserted first, and River completes jobs in batches.
type riverWorker struct {
	river.WorkerDefaults[stage]
	chains        *chains
	pool          *pgxpool.Pool
	transactional bool
}

// Work implements river.Worker.
func (w *riverWorker) Work(ctx context.Context, job *river.Job[stage]) (err error) {
	defer w.chains.done()
	client, next := river.ClientFromContext[pgx.Tx](ctx), stage{job.Args.N + 1}
	if !w.transactional {
		if next.N < stages {
			_, err = client.Insert(ctx, next, nil)
		}
		return err
	}
	return pgx.BeginFunc(ctx, w.pool, func(tx pgx.Tx) error {
		if next.N < stages {
			if _, err := client.InsertTx(ctx, tx, next, nil); err != nil {
				return err
			}
		}
		_, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job)
		return err
	})
}

// riverChains returns the time from the client's start, with a job of each chain waiting, until all
// jobs are completed.
func riverChains(ctx context.Context, address string, c *chains, transactional bool) (taken time.Duration, err error) {
	const schema = "river_bench"
	config, err := pgxpool.ParseConfig(address)
	if err != nil {
		return 0, err
	}
	config.MaxConns = 32
	config.ConnConfig.RuntimeParams["search_path"] = schema
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	if _, err := pool.Exec(ctx, "CREATE SCHEMA "+schema); err != nil {
		return 0, err
	}
	defer func() {
		_, dropErr := pool.Exec(context.WithoutCancel(ctx), "DROP SCHEMA "+schema+" CASCADE")
		err = errors.Join(err, dropErr)
	}()
	driver := riverpgxv5.New(pool)
	log := slog.New(slog.DiscardHandler)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: log})
	if err != nil {
		return 0, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return 0, err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &riverWorker{chains: c, pool: pool, transactional: transactional})
	client, err := river.NewClient(driver, &river.Config{
		// Of 1 to 20 ms, this interval was the fastest, with and without LISTEN.
		FetchCooldown: 5 * time.Millisecond, FetchPollInterval: 20 * time.Millisecond,
		Logger: log, Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: slots}}, Workers: workers,
	})
	if err != nil {
		return 0, err
	}
	first := make([]river.InsertManyParams, c.items)
	for i := range first {
		first[i].Args = stage{}
	}
	if _, err := client.InsertManyFast(ctx, first); err != nil {
		return 0, err
	}
	begun := time.Now()
	if err := client.Start(ctx); err != nil {
		return 0, err
	}
	err = c.wait(ctx, func(ctx context.Context) (n int, err error) {
		err = pool.QueryRow(ctx, "SELECT count(*) FROM river_job WHERE state <> 'completed'").Scan(&n)
		return n, err
	})
	taken = time.Since(begun)
	err = errors.Join(err, client.Stop(context.WithoutCancel(ctx)))
	var all int
	if err == nil {
		err = pool.QueryRow(ctx, "SELECT count(*) FROM river_job").Scan(&all)
	}
	if err == nil && all != c.items*stages {
		err = fmt.Errorf("there are %d jobs, not %d", all, c.items*stages)
	}
	return taken, err
}
