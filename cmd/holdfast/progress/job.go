package progress

import (
	"context"
	"encoding/json"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
)

// JobPage returns pages of a batch's jobs.
func JobPage(c *client.Client, batch string) cli.Fetch[registry.JobResult] {
	return func(ctx context.Context, after string, limit int) (registry.Page[registry.JobResult], error) {
		return c.BatchJobs(ctx, batch, after, limit)
	}
}

// eachJob calls yield with every job of a batch, or with the one job that a target is.
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

// jobOf is what has become of a job by now.
func jobOf(it registry.WorkItem) registry.JobResult {
	j := registry.JobResult{
		ItemID: it.ID, Row: it.Row, Line: it.Line, Name: it.Name, State: it.State, NextTry: it.NextTry, ARK: ARKOf(it), LocalIDs: SpecOf(it).LocalIDs,
		Error: it.Note, Class: it.ErrorClass,
	}
	_ = json.Unmarshal(it.Results["version"], &j.Version) // absent, or for people to look up elsewhere
	if j.Version > 0 {
		j.ObjectID = j.ARK // before that it is a name without a version of this job's
	}
	return j
}

// ARKOf is the ARK that an item has by now, or "".
func ARKOf(it registry.WorkItem) string {
	var id registry.Identity
	_ = json.Unmarshal(it.Results["ark"], &id) // what cannot be read is not shown
	return id.ARK
}

// SpecOf is what was submitted, as far as it can be shown.
func SpecOf(it registry.WorkItem) registry.Spec {
	var spec registry.Spec
	_ = json.Unmarshal(it.Spec, &spec) // what cannot be read is not shown
	return spec
}
