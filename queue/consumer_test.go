package queue_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/nsqio/go-nsq"

	"github.com/holdfast/holdfast/queue"
	"github.com/holdfast/holdfast/queue/queuetest"
)

const topic = "ingest.download"

func openInbox(t *testing.T, free int, addrs ...string) *queuetest.Inbox {
	t.Helper()
	return queuetest.OpenInbox(t, queue.ConsumerConfig{Addrs: addrs, Topic: topic, Free: free, Timing: quick})
}

func TestConsume_ChecksItsConfig(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]queue.ConsumerConfig{
		"no topic":      {Addrs: []string{"127.0.0.1:1"}},
		"no address":    {Topic: topic},
		"bad address":   {Topic: topic, Addrs: []string{"localhost"}},
		"bad lookup":    {Topic: topic, LookupAddrs: []string{"ftp://localhost:1"}},
		"bad channel":   {Topic: topic, Addrs: []string{"127.0.0.1:1"}, Channel: "a b"},
		"short timeout": {Topic: topic, Addrs: []string{"127.0.0.1:1"}, MsgTimeout: time.Millisecond},
	} {
		if _, err := queue.Consume(t.Context(), cfg, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// R21: RDY follows free slots.
func TestR21_ReadyFollowsFreeSlots(t *testing.T) {
	t.Parallel()
	s := openServer(t)
	in := openInbox(t, 0, s.addr)
	var ids []string
	for i := range 10 {
		ids = append(ids, fmt.Sprint(i))
	}
	queuetest.Publish(t, s.addr, topic, ids...)
	queuetest.Eventually(t, "subscribed", func() bool { return s.workers(topic).ClientCount == 1 })
	if got := s.workers(topic); got.InFlight != 0 || got.Depth != 10 {
		t.Errorf("paused: in flight %d, depth %d, want 0 and 10", got.InFlight, got.Depth)
	}
	in.SetFree(3)
	held := []*queue.Delivery{in.Next(), in.Next(), in.Next()}
	if got := s.workers(topic); got.InFlight != 3 || got.Clients[0].Ready != 3 {
		t.Errorf("3 slots: in flight %d, RDY %d", got.InFlight, got.Clients[0].Ready)
	}
	in.SetFree(1) // two too many are in hand: they stay, and nothing comes for them
	held[0].Finish()
	held[1].Finish()
	queuetest.Eventually(t, "RDY is 1", func() bool {
		got := s.workers(topic)
		return got.InFlight == 1 && got.Clients[0].Ready == 1
	})
	held[2].Finish()
	in.Next().Finish()
	in.SetFree(0)
	// Not the client's count of answers: that begins anew if a busy machine lets the connection lapse.
	queuetest.Eventually(t, "paused, with the six that were not answered", func() bool {
		got := s.workers(topic)
		return len(got.Clients) == 1 && got.Clients[0].Ready == 0 && got.InFlight+got.Depth == 6
	})
}

// R21: one handler's answers do not slow down others: there is no backoff.
func TestR21_RequeueIsNoBackoff(t *testing.T) {
	t.Parallel()
	s := openServer(t)
	in := openInbox(t, 1, s.addr)
	queuetest.Publish(t, s.addr, topic, "bad", "good")
	for finished := false; !finished; {
		d := in.Next()
		if d.ItemID == "bad" {
			d.Requeue(0)
			continue
		}
		if d.Attempts != 1 {
			t.Errorf("attempts = %d, want 1", d.Attempts)
		}
		d.Finish()
		finished = true
	}
	if got := s.workers(topic).Clients[0].Ready; got != 1 {
		t.Errorf("RDY = %d after requeues, want 1", got)
	}
}

// A handler that forgets its message does not lose it.
func TestHandler_ReturnsUnanswered(t *testing.T) {
	t.Parallel()
	s := openServer(t)
	attempts := make(chan int, 10)
	c, err := queue.Consume(t.Context(), queue.ConsumerConfig{Addrs: []string{s.addr}, Topic: topic, Free: 1},
		func(_ context.Context, d *queue.Delivery) {
			attempts <- d.Attempts
			if d.Attempts == 2 {
				d.Finish()
			}
		})
	if err != nil {
		t.Fatal(err)
	}
	queuetest.Publish(t, s.addr, topic, "item")
	for want := 1; want <= 2; want++ {
		if got := <-attempts; got != want {
			t.Errorf("attempt %d, want %d", got, want)
		}
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Errorf("stop: %v", err)
	}
}

func TestConsumer_FinishesWhatIsNoItem(t *testing.T) {
	t.Parallel()
	s := openServer(t)
	p, _ := queuetest.Dial(t, s.addr, nil)
	p.Publish(topic, "\x00\x01", "item")
	d := openInbox(t, 1, s.addr).Next()
	if d.ItemID != "item" {
		t.Errorf("delivery = %q, want item", d.ItemID)
	}
	d.Finish()
	queuetest.Eventually(t, "both are finished", func() bool { return s.workers(topic).Clients[0].FinishCount == 2 })
}

// go-nsq's own consumer would reconnect only after its last unanswered message, perhaps hours
// later.
func TestConsumer_ReconnectsWhileMessagesAreInHand(t *testing.T) {
	t.Parallel()
	s := openServer(t)
	log := newLogLines()
	in := queuetest.OpenInbox(t, queue.ConsumerConfig{
		Addrs: []string{s.addr}, Topic: topic, Free: 2, Timing: quick, Log: slog.New(log),
	})
	queuetest.Publish(t, s.addr, topic, "long")
	long := in.Next()
	s.stop()
	queuetest.Eventually(t, "the loss is noticed", func() bool { return in.Connections() == 0 })
	s.start()
	queuetest.Publish(t, s.addr, topic, "second", "third")
	second := in.Next()
	if second.ItemID == "long" {
		t.Fatal("the new server knows the old message")
	}
	// The long one still has its slot: of two there is one.
	if got := s.workers(topic); got.InFlight != 1 || got.Clients[0].Ready != 1 {
		t.Errorf("in flight %d, RDY %d, want 1 and 1", got.InFlight, got.Clients[0].Ready)
	}
	long.Touch() // without effect
	long.Finish()
	third := in.Next()
	second.Finish()
	third.Finish()
	queuetest.Eventually(t, "RDY is 2 again", func() bool { return s.workers(topic).Clients[0].Ready == 2 })
	queuetest.Eventually(t, "the recovery is logged", func() bool { return log.count("connection recovered") > 0 })
	if lost, back := log.count("connection lost"), log.count("connection recovered"); lost != 1 || back != 1 {
		t.Errorf("%d lines of loss and %d of recovery, want one each: %s", lost, back, log)
	}
}

// More servers than slots: no server starves, and the slots are never exceeded.
func TestConsumer_SharesSlotsOverServers(t *testing.T) {
	t.Parallel()
	a, b, c := openServer(t), openServer(t), openServer(t)
	in := openInbox(t, 1, a.addr, b.addr, c.addr, nobody)
	queuetest.Eventually(t, "all are connected", func() bool { return in.Connections() == 3 })
	for _, s := range []*server{a, b, c} {
		queuetest.Publish(t, s.addr, topic, "1", "2")
	}
	for range 6 {
		d := in.Next()
		if n := a.workers(topic).InFlight + b.workers(topic).InFlight + c.workers(topic).InFlight; n > 1 {
			t.Errorf("%d in hand, want 1", n)
		}
		d.Finish()
	}
}

func TestConsumer_FindsServersByLookup(t *testing.T) {
	t.Parallel()
	s := openServer(t)
	web := httptest.NewServer(s.Handler())
	t.Cleanup(web.Close)
	in := queuetest.OpenInbox(t, queue.ConsumerConfig{
		LookupAddrs: []string{nobody, web.Listener.Addr().String(), web.URL}, Topic: topic, Free: 1, Timing: quick,
	})
	queuetest.Publish(t, s.addr, topic, "item")
	in.Next().Finish()
	if got := in.Connections(); got != 1 {
		t.Errorf("connections = %d, want 1", got)
	}
}

func TestStop_WaitsForWhatIsInHand(t *testing.T) {
	t.Parallel()
	s := openServer(t)
	started, finish := make(chan *queue.Delivery, 10), make(chan struct{})
	c, err := queue.Consume(t.Context(), queue.ConsumerConfig{Addrs: []string{s.addr}, Topic: topic, Free: 2},
		func(_ context.Context, d *queue.Delivery) {
			started <- d
			<-finish
			d.Touch()
			d.Finish()
		})
	if err != nil {
		t.Fatal(err)
	}
	queuetest.Publish(t, s.addr, topic, "1")
	<-started
	stopped := make(chan error, 1)
	go func() { stopped <- c.Stop(t.Context()) }()
	queuetest.Eventually(t, "it left the servers", func() bool { return c.Connections() == 0 })
	queuetest.Publish(t, s.addr, topic, "2") // not for us any more
	select {
	case err := <-stopped:
		t.Fatalf("stop returned %v with a message in hand", err)
	default:
	}
	close(finish)
	if err := <-stopped; err != nil {
		t.Errorf("stop: %v", err)
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Errorf("second stop: %v", err)
	}
	queuetest.Eventually(t, "it is gone", func() bool { return s.workers(topic).ClientCount == 0 })
	if got := s.workers(topic); got.Depth != 1 || got.RequeueCount != 0 {
		t.Errorf("depth %d, requeues %d, want the second message untouched", got.Depth, got.RequeueCount)
	}
	select {
	case d := <-started:
		t.Errorf("%s was handed out after Stop", d.ItemID)
	default:
	}
}

func TestStop_GivesBackWhenItsTimeIsUp(t *testing.T) {
	t.Parallel()
	s := openServer(t)
	started, finish := make(chan struct{}, 1), make(chan struct{})
	c, err := queue.Consume(t.Context(), queue.ConsumerConfig{Addrs: []string{s.addr}, Topic: topic, Free: 1},
		func(_ context.Context, d *queue.Delivery) {
			started <- struct{}{}
			<-finish
			d.Finish() // too late
		})
	if err != nil {
		t.Fatal(err)
	}
	queuetest.Publish(t, s.addr, topic, "item")
	<-started
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("grace is over"))
	if err := c.Stop(ctx); err == nil || !errors.Is(err, context.Cause(ctx)) {
		t.Errorf("stop = %v, want the cause", err)
	}
	other := openInbox(t, 1, s.addr)
	d := other.Next() // at once, not after the message's timeout
	if d.ItemID != "item" || d.Attempts != 2 {
		t.Errorf("delivery = %s, attempt %d", d.ItemID, d.Attempts)
	}
	close(finish)
	if err := c.Stop(t.Context()); err != nil {
		t.Errorf("second stop: %v", err)
	}
	d.Finish()
	queuetest.Eventually(t, "finished once", func() bool {
		got := s.workers(topic)
		return got.InFlight+got.Depth+got.Deferred == 0
	})
}

func TestStop_WhenNobodyIsThere(t *testing.T) {
	t.Parallel()
	c, err := queue.Consume(t.Context(), queue.ConsumerConfig{Addrs: []string{nobody}, Topic: topic, Free: 1},
		func(_ context.Context, d *queue.Delivery) { d.Finish() })
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// The end of Consume's context also ends receiving.
func TestConsume_ContextEnds(t *testing.T) {
	t.Parallel()
	s := openServer(t)
	ctx, cancel := context.WithCancel(t.Context())
	c, err := queue.Consume(ctx, queue.ConsumerConfig{Addrs: []string{s.addr}, Topic: topic, Free: 1},
		func(_ context.Context, d *queue.Delivery) { d.Finish() })
	if err != nil {
		t.Fatal(err)
	}
	queuetest.Eventually(t, "subscribed", func() bool { return c.Connections() == 1 })
	cancel()
	queuetest.Eventually(t, "it left", func() bool { return s.workers(topic).ClientCount == 0 })
	if err := c.Stop(t.Context()); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// A message that timed out at the server while its handler runs is delivered again although no slot
// is free. It is requeued with a delay, not sent back and forth.
func TestConsumer_SurplusIsGivenBack(t *testing.T) {
	t.Parallel()
	s := openServer(t)
	in := queuetest.OpenInbox(t, queue.ConsumerConfig{
		Addrs: []string{s.addr}, Topic: topic, Free: 1, MsgTimeout: time.Second,
	})
	queuetest.Publish(t, s.addr, topic, "item")
	first := in.Next()
	queuetest.Eventually(t, "it was given back", func() bool { return s.workers(topic).Deferred == 1 })
	first.Finish() // frees the slot; the server has forgotten it
	second := in.Next()
	if second.Attempts != 3 {
		t.Errorf("attempts = %d, want 3: held, surplus, again", second.Attempts)
	}
	second.Finish()
}

// Messages of go-nsq's own producer arrive.
func TestConsumer_HearsOtherProducers(t *testing.T) {
	t.Parallel()
	s := openServer(t)
	p, err := nsq.NewProducer(s.addr, nsq.NewConfig())
	if err != nil {
		t.Fatal(err)
	}
	p.SetLoggerLevel(nsq.LogLevelMax + 1)
	defer p.Stop()
	if err := p.DeferredPublish(topic, 10*time.Millisecond, []byte("item")); err != nil {
		t.Fatal(err)
	}
	openInbox(t, 1, s.addr).Next().Finish()
}
