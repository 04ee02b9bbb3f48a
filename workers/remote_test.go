package workers_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/queue"
	"github.com/holdfast/holdfast/queue/broker"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/api"
	"github.com/holdfast/holdfast/registry/client"
	"github.com/holdfast/holdfast/registry/relay"
	"github.com/holdfast/holdfast/registry/sweep"
	"github.com/holdfast/holdfast/workers"
)

// newRemoteRig is a rig whose workers have the Registry over HTTP, with a worker's token.
func newRemoteRig(t *testing.T) *rig {
	t.Helper()
	const token = "hf_secret_of_worker"
	return newRig(t, func(d *workers.Deps) {
		must(t, d.Registry.AddToken(t.Context(), registry.Token{ID: "w", Hash: api.TokenHash(token), Name: "worker", Role: registry.RoleWorker}))
		handler, err := api.New(api.Options{Registry: d.Registry, Staging: d.Staging, Objects: d.Objects, Log: slog.New(slog.DiscardHandler)})
		must(t, err)
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)
		remote := client.NewStore(client.New(server.URL, token, client.Options{}))
		t.Cleanup(func() { must(t, remote.Close()) })
		d.Registry = remote
	})
}

// A job does all its steps with the Registry in another place.
func TestRemote_StageByStage(t *testing.T) {
	r := newRemoteRig(t)
	job := r.job(registry.Spec{Type: registry.ContainerType, URL: r.site.put("c.zip", zipOf(t, sample())), LocalIDs: []string{"id-1"}})
	o := r.complete(job)
	r.valid(o, 1)
	if diff := cmp.Diff(sample(), r.producer(o, 1)); diff != "" {
		t.Errorf("producer's files (-want +got):\n%s", diff)
	}
	r.nothingStaged(job)
	again := r.job(registry.Spec{Type: registry.FileType, URL: r.site.put("n", "new"), Filename: "n", Mode: registry.Update, LocalIDs: []string{"id-1"}})
	r.valid(r.complete(again), 2)
	r.fails(r.job(registry.Spec{Type: registry.FileType, URL: r.site.put("bad", "bytes"), Filename: "bad", Digest: digestOf("other bytes")}))
}

// The production roles apart: workers, relay and sweep have nothing but HTTP and the queue, and a batch of 40 jobs comes
// to its end.
func TestRemote_RolesApart(t *testing.T) {
	r := newRemoteRig(t)
	log := slog.New(slog.DiscardHandler)
	b, err := broker.New(broker.Options{Log: log})
	must(t, err)
	t.Cleanup(func() { must(t, b.Close()) })
	must(t, b.Listen("127.0.0.1:0"))
	producer, err := queue.OpenProducer(t.Context(), queue.ProducerConfig{Addrs: []string{b.Addr()}, Log: log})
	must(t, err)
	t.Cleanup(producer.Close)
	runner := &base.Runner{
		Registry: r.deps.Registry, Interim: r.deps.Interim, Version: "1.2.3", Grace: 5 * time.Second,
		Connect: base.Queue(queue.ConsumerConfig{Addrs: []string{b.Addr()}, Log: log}, ""),
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 3)
	go func() { relay.New(r.deps.Registry, producer, log).Run(ctx); ended <- nil }()
	go func() { sweep.New(r.deps.Registry, time.Minute, log).Run(ctx); ended <- nil }()
	go func() { ended <- runner.Run(ctx, workers.All(&r.deps)...) }()

	const jobs = 40
	var rows []checkm.Row
	for i := range jobs {
		name := fmt.Sprintf("f%d", i)
		rows = append(rows, checkm.Row{URL: r.site.put(name, name+"\n"), Name: name})
	}
	r.site.manifest("batch.checkm", checkm.FileBatch, rows...)
	batch := r.submit(registry.Spec{Type: registry.SingleFileBatch, URL: r.site.url + "batch.checkm"})
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	end := time.After(2 * time.Minute)
	for !r.item(batch).Status.Settled() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("the batch does not come to an end: %+v", r.item(batch))
		}
	}
	stop()
	for range 3 {
		must(t, <-ended)
	}
	p, err := r.registry.BatchProgress(context.WithoutCancel(t.Context()), batch)
	must(t, err)
	if p.Completed != jobs || p.Failed != 0 || r.item(batch).Status != registry.Completed {
		t.Errorf("progress %+v, want %d completed", p, jobs)
	}
	for _, it := range r.jobs(batch) {
		if it.Attempt != 6 {
			t.Errorf("job %d took %d attempts, want one for each of six stages", it.Row, it.Attempt)
		}
		r.valid(r.object(it.ID), 1)
	}
}
