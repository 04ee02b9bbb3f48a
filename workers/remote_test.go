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
	"github.com/holdfast/holdfast/periodic/relay"
	"github.com/holdfast/holdfast/periodic/sweep"
	"github.com/holdfast/holdfast/queue"
	"github.com/holdfast/holdfast/queue/broker"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/protocol"
	"github.com/holdfast/holdfast/web/signin"
	"github.com/holdfast/holdfast/workers"
)

// newRemoteRig is a rig each of whose workers has the Registry over HTTP, with a token that is good
// for its own stage.
func newRemoteRig(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, nil)
	r.remotely()
	return r
}

// remotely lets the worker of each stage have the Registry over HTTP, with a token that is good for
// its own stage.
func (r *rig) remotely() {
	r.t.Helper()
	url := r.api()
	r.remote = map[registry.Stage]registry.ForWorkers{}
	for _, s := range registry.Stages() {
		r.remote[s] = r.client(url, registry.Token{ID: "worker-" + string(s), Name: "worker " + string(s), Role: registry.RoleWorker, Stages: []registry.Stage{s}})
	}
}

// api serves the Registry's API and returns its address.
func (r *rig) api() string {
	r.t.Helper()
	handler, err := api.New(api.Options{Registry: r.registry, Staging: r.staging, Objects: r.deps.Objects, Log: slog.New(slog.DiscardHandler)})
	must(r.t, err)
	server := httptest.NewServer(handler)
	r.t.Cleanup(server.Close)
	return server.URL
}

// client is the Registry over HTTP, by a token that is made for it.
func (r *rig) client(url string, token registry.Token) *protocol.Client {
	r.t.Helper()
	secret := "hf_secret_of_" + token.ID
	token.Hash = signin.Hash(secret)
	must(r.t, r.registry.AddToken(r.t.Context(), token))
	remote := protocol.NewClient(client.New(url, secret, client.Options{}))
	r.t.Cleanup(func() { must(r.t, remote.Close()) })
	return remote
}

// A job runs all its steps with a remote Registry.
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

// The production roles as separate processes: workers have only HTTP and the queue, and a batch of
// 40 jobs completes.
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
	url := r.api()
	r.deps.Registry = r.client(url, registry.Token{ID: "every", Name: "worker of every stage", Role: registry.RoleWorker})
	runner := &base.Runner{
		Registry: r.deps.Registry, Interim: r.deps.Interim, Version: "1.2.3", Grace: 5 * time.Second,
		Connect: base.Queue(queue.ConsumerConfig{Addrs: []string{b.Addr()}, Log: log}, ""),
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 3)
	go func() { relay.New(r.registry, producer, log).Run(ctx); ended <- nil }()
	go func() { sweep.New(r.registry, time.Minute, log).Run(ctx); ended <- nil }()
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
