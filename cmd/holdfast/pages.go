package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
)

// fetch asks for one page of a list.
type fetch[T any] func(ctx context.Context, after string, limit int) (registry.Page[T], error)

// full makes a page of rows: when it is full, another may follow after its last row.
func full[T any](rows []T, err error, limit int, key func(T) string) (registry.Page[T], error) {
	p := registry.Page[T]{Rows: rows}
	if err == nil && len(rows) > 0 && len(rows) == limit {
		p.Next = key(rows[len(rows)-1])
	}
	return p, err
}

// cursor reads the cursor of lists that count; the empty one is the beginning.
func cursor(after string) (int64, error) {
	if after == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(after, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read cursor: %w", err)
	}
	return n, nil
}

func jobPage(c *client.Client, batch string) fetch[registry.JobResult] {
	return func(ctx context.Context, after string, limit int) (registry.Page[registry.JobResult], error) {
		return c.BatchJobs(ctx, batch, after, limit)
	}
}

func reportsPage(c *client.Client, batch string) fetch[registry.BatchReport] {
	return func(ctx context.Context, after string, limit int) (registry.Page[registry.BatchReport], error) {
		before, err := cursor(after)
		if err != nil {
			return registry.Page[registry.BatchReport]{}, err
		}
		rows, err := c.Reports(ctx, batch, before, limit)
		return full(rows, err, limit, func(r registry.BatchReport) string { return strconv.FormatInt(r.Closing, 10) })
	}
}

func historyPage(c *client.Client, item string) fetch[registry.Event] {
	return func(ctx context.Context, after string, limit int) (registry.Page[registry.Event], error) {
		seq, err := cursor(after)
		if err != nil {
			return registry.Page[registry.Event]{}, err
		}
		rows, err := c.Events(ctx, item, seq, limit)
		return full(rows, err, limit, func(e registry.Event) string { return strconv.FormatInt(e.Seq, 10) })
	}
}

func filePage(c *client.Client, object string, version int) fetch[registry.File] {
	return func(ctx context.Context, after string, limit int) (registry.Page[registry.File], error) {
		rows, err := c.Files(ctx, object, version, after, limit)
		return full(rows, err, limit, func(f registry.File) string { return f.Path })
	}
}

// eachJob calls yield with every job of a batch, or with the one job that a target is.
func eachJob(ctx context.Context, c *client.Client, t target, yield func(registry.JobResult) error) error {
	if !t.job {
		_, err := eachRow(ctx, 0, jobPage(c, t.id), yield)
		return err
	}
	it, err := c.Item(ctx, t.id)
	if err != nil {
		return err
	}
	return yield(jobOf(it))
}

// jobOf is what has become of a job by now.
func jobOf(it registry.WorkItem) registry.JobResult {
	j := registry.JobResult{
		ItemID: it.ID, Row: it.Row, Line: it.Line, Name: it.Name, State: it.State, NextTry: it.NextTry, ARK: arkOf(it), LocalIDs: specOf(it).LocalIDs,
		Error: it.Note, Class: it.ErrorClass,
	}
	_ = json.Unmarshal(it.Results["version"], &j.Version) // absent, or for people to look up elsewhere
	if j.Version > 0 {
		j.ObjectID = j.ARK // before that it is a name without a version of this job's
	}
	return j
}

// arkOf is the ARK that an item has by now, or "".
func arkOf(it registry.WorkItem) string {
	var id registry.Identity
	_ = json.Unmarshal(it.Results["ark"], &id) // what cannot be read is not shown
	return id.ARK
}

// specOf is what was submitted, as far as it can be shown.
func specOf(it registry.WorkItem) registry.Spec {
	var spec registry.Spec
	_ = json.Unmarshal(it.Spec, &spec) // what cannot be read is not shown
	return spec
}
