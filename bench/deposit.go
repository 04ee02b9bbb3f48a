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

// deposit is payloads that are submitted one after the other, and their expected result.
type deposit struct {
	subject   string // of the table
	urls      []string
	kind      registry.PayloadType
	algorithm string // of the collection; "" for the default
	bytes     int64  // of all payloads
	pieces    int64  // files or jobs, among which the costs are divided
	localID   string // of the object; "" for none
	update    bool   // changes the object's files
}

// asked is the interval of polling a batch. It bounds the precision of times.
const asked = 5 * time.Millisecond

// patience is when a run is aborted.
const patience = 15 * time.Minute

// deposit runs payloads through all stages of a new `holdfast up`, from submission to the end of
// the batches. It records the peak memory and the costs, and prints the times of the stages.
func (b *bench) deposit(ctx context.Context, label string, d deposit) (taken time.Duration, err error) {
	err = b.onFresh(ctx, b.up, func(s *service) (err error) {
		taken, err = b.depositIn(ctx, s, label, d)
		return err
	})
	return taken, err
}

// depositIn is deposit for a Holdfast that runs.
func (b *bench) depositIn(ctx context.Context, s *service, label string, d deposit) (time.Duration, error) {
	before := s.cost()
	taken, batches, err := d.run(ctx, s.client)
	if err != nil {
		return 0, err
	}
	b.spent(d.subject, s.cost().minus(before), d.pieces)
	b.remember(label, s.memory("VmHWM"))
	stages, err := stagesOf(ctx, s.client, batches[0])
	b.say("    %s", stages)
	return taken, err
}

// localIDs returns the object's local identifiers.
func (d deposit) localIDs() []string {
	if d.localID == "" {
		return nil
	}
	return []string{d.localID}
}

// starter starts a service in a new folder.
type starter func(ctx context.Context, folder string, settings ...string) (*service, error)

// onFresh calls fn with a new service, then stops the service and removes its folder.
func (b *bench) onFresh(ctx context.Context, begin starter, fn func(*service) error) (err error) {
	folder := b.path("up")
	defer func() { err = errors.Join(err, cleanUp(folder)) }()
	s, err := begin(ctx, folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	return fn(s)
}

// run submits and waits. It returns the time from the first submission to the end of the last
// batch, and the ids of the batches.
func (d deposit) run(ctx context.Context, c *client.Client) (taken time.Duration, batches []string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not settled within %s", patience))
	defer cancel()
	err = c.PutCollection(ctx, registry.Collection{Mnemonic: "bench", Profile: registry.Profile{
		Owner: "ark:/99999/owner", Collections: []string{"ark:/99999/bench"}, DigestAlgorithm: d.algorithm,
	}})
	if err != nil {
		return 0, nil, fmt.Errorf("create the collection: %w", err)
	}
	every := asked
	if d.kind == registry.SingleFileBatch {
		every *= 10 // a long run needs no precise end, and polling costs CPU time
	}
	begun := time.Now()
	for _, url := range d.urls {
		r, err := c.Submit(ctx, wire.SubmitRequest{
			URL: url, Type: string(d.kind), Collection: "bench", LocalIDs: d.localIDs(), Update: d.update,
		}, "")
		if err != nil {
			return 0, nil, fmt.Errorf("submit: %w", err)
		}
		batches = append(batches, r.BatchID)
	}
	var last []registry.WorkItem
	for _, id := range batches {
		batch, err := settled(ctx, c, id, every)
		if err != nil {
			return 0, nil, err
		}
		last = append(last, batch)
	}
	taken = time.Since(begun)
	var done int64
	for _, batch := range last {
		p, err := c.BatchProgress(ctx, batch.ID)
		if err != nil {
			return 0, nil, err
		}
		if done += p.DoneBytes; batch.Status != registry.Completed || p.Failed > 0 {
			return 0, nil, fmt.Errorf("batch is %s, %d of %d jobs failed: %s", batch.Status, p.Failed, p.Jobs, notes(ctx, c, batch))
		}
	}
	if done != d.bytes {
		return 0, nil, fmt.Errorf("%d of %d bytes were deposited", done, d.bytes)
	}
	return taken, batches, nil
}

// settled polls a batch until it is settled.
func settled(ctx context.Context, c *client.Client, id string, every time.Duration) (registry.WorkItem, error) {
	tick := time.NewTicker(every)
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

// attemptsOf returns the attempts of a batch and of its jobs, of which there are few.
func attemptsOf(ctx context.Context, c *client.Client, batch string) (all []registry.Attempt, err error) {
	jobs, err := c.Items(ctx, registry.ItemQuery{ParentID: batch})
	if err != nil {
		return nil, err
	}
	for _, id := range append([]string{batch}, ids(jobs.Rows)...) {
		attempts, err := c.Attempts(ctx, id)
		if err != nil {
			return nil, err
		}
		all = append(all, attempts...)
	}
	return all, nil
}

// stagesOf returns how long the stages of a batch and of its jobs took, and why attempts failed.
func stagesOf(ctx context.Context, c *client.Client, batch string) (string, error) {
	all, err := attemptsOf(ctx, c, batch)
	if err != nil {
		return "", err
	}
	var parts []string
	for _, a := range all {
		if a.FinishedAt == nil {
			continue
		}
		text := fmt.Sprintf("%s %s", a.Stage, a.FinishedAt.Sub(a.StartedAt).Round(time.Millisecond))
		if a.Outcome != registry.OutcomeDone {
			text += fmt.Sprintf(" (%s: %s)", a.Outcome, a.Error)
		}
		parts = append(parts, text)
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
