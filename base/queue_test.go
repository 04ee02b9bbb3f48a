package base_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/queue"
	"github.com/holdfast/holdfast/queue/broker"
	"github.com/holdfast/holdfast/registry"
)

// TestQueue_OverNSQ runs workers against the in-process broker and a real Registry: what the relay
// publishes is worked on, a worker that stops hands its item over, and nothing is left in the
// queue.
func TestQueue_OverNSQ(t *testing.T) {
	ctx := t.Context()
	b, err := broker.New(broker.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	producer, err := queue.OpenProducer(ctx, queue.ProducerConfig{Addrs: []string{b.Addr()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(producer.Close)
	topic, err := queue.Topic("test.", string(registry.Batch), string(registry.Expand))
	if err != nil {
		t.Fatal(err)
	}

	store, kept := openRegistry(t), openInterim(t)
	connect := base.Queue(queue.ConsumerConfig{Addrs: []string{b.Addr()}}, "test.")
	working := make(chan struct{})
	slow := &worker{work: func(ctx context.Context, _ *base.Item) error {
		close(working)
		<-ctx.Done()
		return context.Cause(ctx)
	}}
	id := submit(t, store)
	stop := start(t, &base.Runner{Registry: store, Interim: kept, Connect: connect}, slow)
	if err := producer.Publish(ctx, topic, id); err != nil {
		t.Fatal(err)
	}
	<-working
	begun := time.Now()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("hand-over took %v, want under 5 s", took)
	}
	if it := itemOf(t, store, id); it.Status != registry.Pending || it.Tries != 0 {
		t.Errorf("status=%s tries=%d, want pending 0", it.Status, it.Tries)
	}

	var runs atomic.Int32
	ids := []string{id}
	for range 30 {
		ids = append(ids, submit(t, store))
	}
	done := make(chan struct{}, 2*len(ids))
	fast := &worker{work: func(context.Context, *base.Item) error { runs.Add(1); done <- struct{}{}; return nil }}
	stop = start(t, &base.Runner{Registry: store, Interim: kept, Connect: connect}, fast)
	for range 2 { // each message twice
		if err := producer.Publish(ctx, topic, ids...); err != nil {
			t.Fatal(err)
		}
	}
	for range ids {
		select {
		case <-done:
		case <-time.After(30 * time.Second):
			t.Fatal("items are not worked on")
		}
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if it := itemOf(t, store, id); it.Stage != registry.Report {
			t.Errorf("item %s stands in %s, want report", id, it.Stage)
		}
	}
	if int(runs.Load()) != len(ids) {
		t.Errorf("worked %d times on %d items", runs.Load(), len(ids))
	}
	if _, err := base.Queue(queue.ConsumerConfig{}, "bad prefix/")(ctx, registry.Batch, registry.Expand, 1, nil); !errors.Is(err, queue.ErrBadTopic) {
		t.Errorf("bad prefix: %v, want ErrBadTopic", err)
	}
}
