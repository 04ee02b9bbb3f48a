package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/wire"
)

// deposit is a payload and its expected result.
type deposit struct {
	url       string
	kind      registry.PayloadType
	algorithm string // of the collection; "" for the default
	bytes     int64
}

// asked is the interval of polling a batch. It bounds the precision of times and costs the service
// little.
const asked = 5 * time.Millisecond

// patience is when a run is aborted.
const patience = 2 * time.Minute

// deposit runs one payload through all stages of a new Holdfast, from submission to the end of the
// batch. It records the peak memory and prints the times of the stages.
func (b *bench) deposit(ctx context.Context, label string, d deposit) (_ time.Duration, err error) {
	folder := b.path("up")
	s, err := b.up(ctx, folder)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, cleanUp(folder)) }()
	defer func() { err = errors.Join(err, s.stop()) }()
	taken, stages, err := d.run(ctx, s.client)
	if err != nil {
		return 0, err
	}
	b.say("    %s", stages)
	b.remember(label, s.memory("VmHWM"))
	return taken, nil
}

// run submits the payload and waits. It returns the total time and the times of the stages.
func (d deposit) run(ctx context.Context, c *client.Client) (taken time.Duration, stages string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not settled within %s", patience))
	defer cancel()
	err = c.PutCollection(ctx, registry.Collection{Mnemonic: "bench", Profile: registry.Profile{
		Owner: "ark:/99999/owner", Collections: []string{"ark:/99999/bench"}, DigestAlgorithm: d.algorithm,
	}}, "")
	if err != nil {
		return 0, "", fmt.Errorf("create the collection: %w", err)
	}
	begun := time.Now()
	r, err := c.Submit(ctx, wire.SubmitRequest{URL: d.url, Type: string(d.kind), Collection: "bench"}, "")
	if err != nil {
		return 0, "", fmt.Errorf("submit: %w", err)
	}
	batch, err := settled(ctx, c, r.BatchID)
	taken = time.Since(begun)
	if err != nil {
		return 0, "", err
	}
	p, err := c.BatchProgress(ctx, batch.ID)
	if err != nil {
		return 0, "", err
	}
	if batch.Status != registry.Completed || p.DoneBytes != d.bytes {
		return 0, "", fmt.Errorf("batch is %s with %d of %d bytes: %s", batch.Status, p.DoneBytes, d.bytes, notes(ctx, c, batch))
	}
	stages, err = stagesOf(ctx, c, batch.ID)
	return taken, stages, err
}

func settled(ctx context.Context, c *client.Client, id string) (registry.WorkItem, error) {
	tick := time.NewTicker(asked)
	defer tick.Stop()
	for {
		it, err := c.Batch(ctx, id)
		if err != nil || it.Status.Settled() {
			return it, err
		}
		select {
		case <-ctx.Done():
			return it, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// notes returns why a batch and its jobs failed.
func notes(ctx context.Context, c *client.Client, batch registry.WorkItem) string {
	all := []string{batch.Note}
	jobs, err := c.Items(ctx, registry.ItemQuery{ParentID: batch.ID})
	if err != nil {
		all = append(all, err.Error())
	}
	for _, j := range jobs.Rows {
		all = append(all, j.Note)
	}
	return strings.Join(all, "; ")
}

// stagesOf returns how long the stages of a batch of one job took, in their order.
func stagesOf(ctx context.Context, c *client.Client, batch string) (string, error) {
	jobs, err := c.Items(ctx, registry.ItemQuery{ParentID: batch})
	if err != nil {
		return "", err
	}
	var all []registry.Attempt
	for _, id := range append([]string{batch}, ids(jobs.Rows)...) {
		attempts, err := c.Attempts(ctx, id)
		if err != nil {
			return "", err
		}
		all = append(all, attempts...)
	}
	var parts []string
	for _, a := range all {
		if a.FinishedAt != nil {
			parts = append(parts, fmt.Sprintf("%s %s", a.Stage, a.FinishedAt.Sub(a.StartedAt).Round(time.Millisecond)))
		}
	}
	return strings.Join(parts, ", "), nil
}

func ids(items []registry.WorkItem) []string {
	out := make([]string, len(items))
	for i, it := range items {
		out[i] = it.ID
	}
	return out
}
