package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/wire"
)

const batchName = "batch.checkm"

// batch measures the time from the submission of a batch manifest until each row is a job, and the
// memory for it. It does so with the jobs held, so that nothing else is measured, and with the jobs
// running.
func (b *bench) batch(ctx context.Context) (err error) {
	n := b.scaled(100_000)
	b.say("a batch manifest of %d rows", n)
	address, stop, err := b.batchSource(ctx, n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	expanding := func(label string, where database, held bool) subject {
		return subject{label, func(ctx context.Context) (time.Duration, error) {
			return b.expanded(ctx, expansion{label: label, url: address + "/" + batchName, rows: n, where: where, held: held})
		}}
	}
	subjects := []subject{
		expanding("holdfast up, SQLite, jobs held", sqliteIn, true),
		expanding("holdfast up, SQLite, jobs at work meanwhile", sqliteIn, false),
	}
	if b.postgres != "" {
		subjects = append(subjects, expanding("holdfast up, PostgreSQL, jobs held", schemaOf(b.postgres), true),
			expanding("holdfast up, PostgreSQL, jobs at work meanwhile", schemaOf(b.postgres), false))
	}
	taken, err := b.compare(ctx, subjects...)
	if err != nil {
		return err
	}
	targets := map[string]string{}
	for _, s := range subjects {
		targets[s.name] = "100000 in 60 s"
	}
	b.part("rows of a batch manifest that became jobs", float64(n), "jobs/s", taken, [2]string{}, targets, subjects...)
	return nil
}

// batchSource creates a manifest of n rows, which all name the same small file, and serves both.
func (b *bench) batchSource(ctx context.Context, n int64) (address string, stop func() error, err error) {
	folder := b.path("source")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return "", nil, err
	}
	address, end, err := source(ctx, folder)
	if err != nil {
		return "", nil, errors.Join(err, cleanUp(folder))
	}
	stop = func() error { return errors.Join(end(), cleanUp(folder)) }
	err = errors.Join(os.WriteFile(filepath.Join(folder, "file.txt"), []byte("content"), 0o600),
		writeBatch(filepath.Join(folder, batchName), n, func(int64) checkm.Row { return checkm.Row{URL: address + "/file.txt", Size: 7} }))
	if err != nil {
		return "", nil, errors.Join(err, stop())
	}
	return address, stop, nil
}

// writeBatch writes a manifest of n single files. Each is an object with its own local id. file
// returns a row with the address, digest and size of its file.
func writeBatch(name string, n int64, file func(i int64) checkm.Row) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := checkm.NewWriter(f, checkm.FileBatch)
	for i := range n {
		row := file(i)
		row.Name, row.LocalIDs = fmt.Sprintf("file-%07d.txt", i), []string{fmt.Sprintf("row-%07d", i)}
		row.Creator, row.Title, row.Date = "Somebody", fmt.Sprintf("Title of row %d", i), "2026"
		if err := w.Write(row); err != nil {
			return err
		}
	}
	return w.Close()
}

// expansion is the expansion of one batch manifest to jobs.
type expansion struct {
	label, url string
	rows       int64
	where      database
	held       bool // hold the jobs
}

// expanded runs an expansion on a new Holdfast, and records its peak memory.
func (b *bench) expanded(ctx context.Context, e expansion) (_ time.Duration, err error) {
	folder := b.path("up")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return 0, err
	}
	database, remove, err := e.where(ctx, folder)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, remove(), cleanUp(folder)) }()
	s, err := b.up(ctx, folder, "HOLDFAST_DATABASE_URL="+database)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	taken, batch, err := e.run(ctx, s.client)
	if err != nil {
		return 0, err
	}
	b.remember("peak, "+e.label, s.memory("VmHWM"))
	return taken, e.complete(ctx, s.client, batch)
}

// run submits the manifest and waits until each row is a job.
func (e expansion) run(ctx context.Context, c *client.Client) (taken time.Duration, batch string, err error) {
	err = c.PutCollection(ctx, registry.Collection{Mnemonic: "bench", Profile: registry.Profile{
		Owner: "ark:/99999/owner", Collections: []string{"ark:/99999/bench"},
	}})
	if err == nil && e.held {
		err = c.AddHold(ctx, registry.Hold{Scope: registry.HoldStage, Key: string(registry.Estimate), Reason: "bench", Actor: "bench"})
	}
	if err != nil {
		return 0, "", err
	}
	begun := time.Now()
	r, err := c.Submit(ctx, wire.SubmitRequest{URL: e.url, Type: string(registry.SingleFileBatch), Collection: "bench"}, "")
	if err != nil {
		return 0, "", fmt.Errorf("submit: %w", err)
	}
	tick := time.NewTicker(10 * asked)
	defer tick.Stop()
	for {
		it, err := c.Batch(ctx, r.BatchID)
		switch {
		case err != nil:
			return 0, "", err
		case it.Status.Settled():
			return 0, "", fmt.Errorf("batch is %s: %s", it.Status, it.Note)
		case it.Stage == registry.Report:
			return time.Since(begun), it.ID, nil
		}
		select {
		case <-ctx.Done():
			return 0, "", context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// complete returns nil if each row is a job.
func (e expansion) complete(ctx context.Context, c *client.Client, batch string) error {
	p, err := c.BatchProgress(ctx, batch)
	if err == nil && (p.Jobs != e.rows || p.Failed > 0) {
		err = fmt.Errorf("%d rows became %d jobs, of which %d failed", e.rows, p.Jobs, p.Failed)
	}
	return err
}
