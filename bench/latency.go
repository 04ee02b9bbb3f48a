package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/wire"
)

// latency measures how soon an idle `holdfast up` begins a stage when the stage before it is done,
// and how long one small job takes from submission to the batch's end. Jobs are submitted one at a
// time. The Registry's times count, so that polling for the end adds nothing.
func (b *bench) latency(ctx context.Context) (err error) {
	const pause = 200 * time.Millisecond // after which the service is idle again
	n := max(b.scaled(50), 5)
	b.say("%d jobs, one at a time", n)
	_, files, stop, err := b.smallSource(ctx, n+1, smallSize)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	var whole, between timing
	err = b.onFresh(ctx, b.up, func(s *service) error {
		err := s.client.PutCollection(ctx, registry.Collection{Mnemonic: "bench", Profile: registry.Profile{
			Owner: "ark:/99999/owner", Collections: []string{"ark:/99999/bench"},
		}})
		for i, f := range files {
			if err != nil {
				return err
			}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(pause):
			}
			job, gaps, runErr := oneJob(ctx, s.client, f.url)
			err = runErr
			if i > 0 { // the first one also opens connections and files
				whole, between = append(whole, job), append(between, gaps...)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	if len(between) == 0 {
		return errors.New("no stage was followed by another")
	}
	slices.Sort(whole)
	slices.Sort(between)
	b.table.parts = append(b.table.parts, part{title: "latency of an idle holdfast up", rows: []row{
		between.row("stage done to next stage started", "p50 5 ms, p99 20 ms"),
		whole.row("one job of 64 KiB, submit to completed", "150 ms"),
	}})
	return nil
}

// row is a row of the table with the 99th percentile in place of a rate.
func (t timing) row(name, target string) row {
	p99 := t[min(len(t)*99/100, len(t)-1)]
	return row{name: name, time: t.median(), low: t[0], high: t[len(t)-1], rate: "p99 " + seconds(p99), target: target}
}

// oneJob submits a file and waits for the end of its batch. It returns the time until then, and the
// time between each stage's end and the next one's start.
func oneJob(ctx context.Context, c *client.Client, url string) (whole time.Duration, between []time.Duration, err error) {
	begun := time.Now()
	r, err := c.Submit(ctx, wire.SubmitRequest{URL: url, Type: string(registry.FileType), Collection: "bench"}, "")
	if err != nil {
		return 0, nil, fmt.Errorf("submit: %w", err)
	}
	batch, err := settled(ctx, c, r.BatchID, 10*asked)
	if err != nil {
		return 0, nil, err
	}
	if batch.Status != registry.Completed || batch.FinishedAt == nil {
		return 0, nil, fmt.Errorf("batch is %s: %s", batch.Status, notes(ctx, c, batch))
	}
	attempts, err := attemptsOf(ctx, c, batch.ID)
	if err != nil {
		return 0, nil, err
	}
	slices.SortFunc(attempts, func(x, y registry.Attempt) int { return x.StartedAt.Compare(y.StartedAt) })
	for i, a := range attempts[1:] {
		// A job may start before the step that added it is done.
		if done := attempts[i].FinishedAt; done != nil && !a.StartedAt.Before(*done) {
			between = append(between, a.StartedAt.Sub(*done))
		}
	}
	return batch.FinishedAt.Sub(begun), between, nil
}
