package progress

import (
	"context"
	"encoding/json"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
)

// JobPage returns the pages of a batch's jobs.
func JobPage(c *client.Client, batch string) cli.Fetch[registry.JobResult] {
	return func(ctx context.Context, after string, limit int) (registry.Page[registry.JobResult], error) {
		return c.BatchJobs(ctx, batch, after, limit)
	}
}

// eachJob calls yield with each job of a target.
func eachJob(ctx context.Context, c *client.Client, t Target, yield func(registry.JobResult) error) error {
	if !t.Job {
		_, err := cli.EachRow(ctx, 0, JobPage(c, t.ID), yield)
		return err
	}
	it, err := c.Item(ctx, t.ID)
	if err != nil {
		return err
	}
	return yield(jobOf(it))
}

// jobOf returns the present outcome of a job.
func jobOf(it registry.WorkItem) registry.JobResult {
	j := registry.JobResult{
		ItemID: it.ID, Row: it.Row, Line: it.Line, Name: it.Name, State: it.State, NextTry: it.NextTry, ARK: ARKOf(it), LocalIDs: SpecOf(it).LocalIDs,
		Error: it.Note, Class: it.ErrorClass,
	}
	if it.NameBelow() != "" {
		j.Title = it.Heading()
	}
	_ = json.Unmarshal(it.Results["version"], &j.Version) // 0 if absent or invalid
	if j.Version > 0 {
		j.ObjectID = j.ARK // without a version the name is not yet an object
	}
	return j
}

// ARKOf returns an item's ARK, "" if it has none yet.
func ARKOf(it registry.WorkItem) string {
	var id registry.Identity
	_ = json.Unmarshal(it.Results["ark"], &id) // "" if invalid
	return id.ARK
}

// SpecOf returns what was submitted. Invalid data is left out.
func SpecOf(it registry.WorkItem) registry.Spec {
	var spec registry.Spec
	_ = json.Unmarshal(it.Spec, &spec) // "" if invalid
	return spec
}
