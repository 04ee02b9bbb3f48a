package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/registry"
)

// jobs measures jobs of one small file each, from the submission of their batch manifest to the
// batch's end: in `holdfast up`, and with -postgres and -redis in one process for each role.
func (b *bench) jobs(ctx context.Context) (err error) {
	n := b.scaled(1000)
	b.say("%d jobs of one file of 64 KiB", n)
	address, files, stop, err := b.smallSource(ctx, max(n, moreJobs), smallSize)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	manifest := func(n int64) (url string, err error) {
		name := fmt.Sprintf("jobs-%d.checkm", n)
		err = writeBatch(b.path("source", name), n, func(i int64) checkm.Row { return files[i].row() })
		return address + "/" + name, err
	}
	url, err := manifest(n)
	if err != nil {
		return err
	}
	services := map[string]starter{}
	through := func(name string, begin starter) subject {
		services[name] = begin
		return subject{name, func(ctx context.Context) (time.Duration, error) {
			return b.jobsThrough(ctx, begin, deposit{subject: name, urls: []string{url}, kind: registry.SingleFileBatch, bytes: n * smallSize, pieces: n})
		}}
	}
	loop, folder := newBare(), b.path("copies")
	subjects := []subject{
		through("holdfast up, default settings", b.up),
		{"bare Go: 16 at once, sha256, fsync", func(ctx context.Context) (time.Duration, error) {
			taken, err := loop.small(ctx, files[:n], folder)
			return taken, errors.Join(err, cleanUp(folder))
		}},
	}
	targets := map[string]string{subjects[0].name: "250 jobs/s; 6 ms, 12 fsync, 80 openat"}
	if b.postgres != "" && b.redis != "" {
		apart := through("holdfast, roles apart, PostgreSQL and Redis", b.fleet)
		subjects = append(subjects, apart)
		targets[apart.name] = "15 ms, databases included"
	}
	taken, err := b.compare(ctx, subjects...)
	if err != nil {
		return err
	}
	if traceable() && b.check == "" && b.recordTo == "" {
		for name, begin := range services {
			if err := b.countCalls(ctx, name, begin, manifest); err != nil {
				return err
			}
		}
	}
	b.part("jobs of one file of 64 KiB, submit to completed", float64(n), "jobs/s", taken, [2]string{subjects[1].name}, targets, subjects...)
	return nil
}

// jobsThrough runs a batch of jobs through a fresh service, and notes what it cost.
func (b *bench) jobsThrough(ctx context.Context, begin starter, d deposit) (taken time.Duration, err error) {
	err = b.onFresh(ctx, begin, func(s *service) error {
		apart := len(s.procs) > 1
		var servers serverTime
		if apart {
			if servers, err = b.serverTimes(ctx); err != nil {
				return err
			}
		}
		before := s.cost()
		if taken, _, err = d.run(ctx, s.client); err != nil {
			return err
		}
		b.spent(d.subject, s.cost().minus(before), d.pieces)
		if !apart {
			b.remember("peak, jobs", s.memory("VmHWM"))
			return nil
		}
		now, err := b.serverTimes(ctx)
		if err != nil {
			return err
		}
		job := func(used time.Duration) string { return unitOf(used.Seconds()/float64(d.pieces), "s", "ms") }
		b.servers = fmt.Sprintf("in the last round of jobs with roles apart, PostgreSQL used %s CPU a job beside Holdfast, and Redis %s",
			job(now.postgres-servers.postgres), job(now.redis-servers.redis))
		b.say("    %s", b.servers)
		return nil
	})
	return taken, err
}

// The sizes of the batches whose system calls are counted. Their difference leaves out what start,
// stop and the batch itself need.
const fewJobs, moreJobs = 16, 64

// countCalls notes the system calls that a service makes for one more job. It runs two batches under
// strace, which makes everything slower: no time is taken.
func (b *bench) countCalls(ctx context.Context, name string, begin starter, manifest func(int64) (string, error)) error {
	b.tracing = true
	defer func() { b.tracing = false }()
	count := func(n int64) (total calls, err error) {
		url, err := manifest(n)
		if err != nil {
			return total, err
		}
		folder := b.path("traced")
		defer func() { err = errors.Join(err, cleanUp(folder)) }()
		s, err := begin(ctx, folder)
		if err != nil {
			return total, err
		}
		d := deposit{urls: []string{url}, kind: registry.SingleFileBatch, bytes: n * smallSize}
		_, _, err = d.run(ctx, s.client)
		if err := errors.Join(err, s.stop()); err != nil {
			return total, err
		}
		return callsOf(ctx, folder)
	}
	few, err := count(fewJobs)
	if err != nil {
		return fmt.Errorf("under strace: %w", err)
	}
	more, err := count(moreJobs)
	if err != nil {
		return fmt.Errorf("under strace: %w", err)
	}
	if b.calls == nil {
		b.calls = map[string]calls{}
	}
	b.calls[name] = calls{(more.syncs - few.syncs) / (moreJobs - fewJobs), (more.opens - few.opens) / (moreJobs - fewJobs)}
	b.say("  under strace: %.1f fsync and %.0f openat a job", b.calls[name].syncs, b.calls[name].opens)
	return nil
}
