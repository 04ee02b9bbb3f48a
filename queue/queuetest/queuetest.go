// Package queuetest is the conformance suite of NSQ servers for Holdfast. This project's broker
// passes it in its tests, and so does nsqd, where it can be built or HOLDFAST_TEST_NSQD_ADDR names one. The suite uses
// package queue like the product, and a plain connection (Client) where a client library would hide
// the behaviour.
package queuetest

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/holdfast/holdfast/queue"
)

// Run runs the suite against the server at the TCP address that addr returns; it calls addr once
// per test. The server must have nsqd's default limits. Topics have random names, so that a server
// can be used repeatedly and concurrently.
func Run(t *testing.T, addr func(t *testing.T) string) {
	tests := []struct {
		name string
		run  func(t *testing.T, addr string)
	}{
		{"PublishAndConsume", testPublishAndConsume},
		{"PublishMany", testPublishMany},
		{"RedeliversAfterTimeout", testRedeliversAfterTimeout},
		{"TouchKeeps", testTouchKeeps},
		{"RequeueWithDelay", testRequeueWithDelay},
		{"AttemptsGrow", testAttemptsGrow},
		{"ReadyCountIsTheLimit", testReadyCountIsTheLimit},
		{"ConsumersShareAChannel", testConsumersShareAChannel},
		{"EveryChannelGetsAll", testEveryChannelGetsAll},
		{"KeepsForFirstSubscriber", testKeepsForFirstSubscriber},
		{"DisconnectRedelivers", testDisconnectRedelivers},
		{"OnlyTheHolderFinishes", testOnlyTheHolderFinishes},
		{"DeferredPublish", testDeferredPublish},
		{"CloseStopsDelivery", testCloseStopsDelivery},
		{"BadNames", testBadNames},
		{"BodyTooLarge", testBodyTooLarge},
		{"BadCommands", testBadCommands},
		{"Heartbeat", testHeartbeat},
		{"SilentClientIsDropped", testSilentClientIsDropped},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, addr(t))
		})
	}
}

// NewTopic returns an unused topic name.
func NewTopic() string { return "test." + rand.Text() }

// OpenProducer opens a producer that is closed when the test ends.
func OpenProducer(t testing.TB, cfg queue.ProducerConfig) *queue.Producer {
	t.Helper()
	p, err := queue.OpenProducer(t.Context(), cfg)
	if err != nil {
		t.Fatalf("open producer: %v", err)
	}
	t.Cleanup(p.Close)
	return p
}

// Publish publishes with a producer of its own.
func Publish(t testing.TB, addr, topic string, ids ...string) {
	t.Helper()
	p := OpenProducer(t, queue.ProducerConfig{Addrs: []string{addr}})
	if err := p.Publish(t.Context(), topic, ids...); err != nil {
		t.Fatalf("publish: %v", err)
	}
}

// Inbox is a consumer whose deliveries the test takes one by one.
type Inbox struct {
	*queue.Consumer
	t          testing.TB
	deliveries chan *queue.Delivery
}

// OpenInbox starts a consumer. It is stopped when the test ends, and unanswered deliveries are
// requeued.
func OpenInbox(t testing.TB, cfg queue.ConsumerConfig) *Inbox {
	t.Helper()
	in := &Inbox{t: t, deliveries: make(chan *queue.Delivery)}
	over := make(chan struct{})
	consumer, err := queue.Consume(context.WithoutCancel(t.Context()), cfg, func(_ context.Context, d *queue.Delivery) {
		select {
		case in.deliveries <- d:
			<-over // an unanswered delivery would be requeued when its handler returns
		case <-over:
		}
	})
	if err != nil {
		t.Fatalf("consume: %v", err)
	}
	in.Consumer = consumer
	t.Cleanup(func() {
		close(over)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := consumer.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return in
}

// Next waits for a delivery.
func (in *Inbox) Next() *queue.Delivery {
	in.t.Helper()
	select {
	case d := <-in.deliveries:
		return d
	case <-time.After(patience):
		in.t.Fatal("no delivery came")
		return nil
	}
}

// None fails the test if a delivery comes within d.
func (in *Inbox) None(d time.Duration) {
	in.t.Helper()
	select {
	case got := <-in.deliveries:
		in.t.Fatalf("delivery of %s, attempt %d, want none", got.ItemID, got.Attempts)
	case <-time.After(d):
	}
}

// Eventually waits until what holds.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("never came true: %s", what)
		}
	}
}
