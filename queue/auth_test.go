package queue_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/queue"
	"github.com/holdfast/holdfast/queue/broker"
	"github.com/holdfast/holdfast/queue/queuetest"
)

// Producers and consumers authenticate with their secret. Without it, or with a wrong one, they
// fail and say why.
func TestAuthSecret(t *testing.T) {
	b, err := broker.New(broker.Options{AuthSecret: "a secret of the test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	if err := b.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	addrs := []string{b.Addr()}
	if server, err := queue.Inspect(t.Context(), b.Addr(), "a secret of the test"); err != nil || !server.AuthRequired {
		t.Errorf("inspected %+v, %v, want that a secret is asked for", server, err)
	}
	for _, wrong := range []string{"", "another"} {
		if _, err := queue.Inspect(t.Context(), b.Addr(), wrong); !errors.Is(err, queue.ErrRefused) {
			t.Errorf("inspected with %q: %v, want ErrRefused", wrong, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	for secret, want := range map[string]string{"": "Auth Required", "another": "E_AUTH_FAILED"} {
		p, err := queue.OpenProducer(ctx, queue.ProducerConfig{Addrs: addrs, AuthSecret: secret, Timing: quick})
		if err != nil {
			t.Fatal(err)
		}
		err = p.Publish(ctx, "topic", "stranger")
		p.Close()
		if !errors.Is(err, queue.ErrUnavailable) || !strings.Contains(err.Error(), want) {
			t.Errorf("secret %q: %v, want ErrUnavailable and %s", secret, err, want)
		}
	}
	p, err := queue.OpenProducer(ctx, queue.ProducerConfig{Addrs: addrs, AuthSecret: "a secret of the test", Timing: quick})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Publish(ctx, "topic", "item"); err != nil {
		t.Fatal(err)
	}
	// Of consumers only the one with the secret hears of it, although the others came first.
	heard := make(chan string, 10)
	for _, secret := range []string{"", "another", "a secret of the test"} {
		c, err := queue.Consume(ctx, queue.ConsumerConfig{Addrs: addrs, Topic: "topic", AuthSecret: secret, Free: 1, Timing: quick}, func(_ context.Context, d *queue.Delivery) {
			heard <- secret + ": " + d.ItemID
			d.Finish()
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Stop(t.Context()) }()
	}
	select {
	case got := <-heard:
		if got != "a secret of the test: item" {
			t.Errorf("heard %q", got)
		}
	case <-ctx.Done():
		t.Fatal("nobody heard of it")
	}
	if clients := b.Stats().Topic("topic").Channel(queue.Channel).ClientCount; clients != 1 {
		t.Errorf("%d clients, want the one with the secret", clients)
	}
}

// The sender keeps what a full broker refuses, and can send it again on the same connection once
// there is room.
func TestPublish_BrokerFull(t *testing.T) {
	b, err := broker.New(broker.Options{MaxMemory: 16 << 10})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	if err := b.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	lost := make(chan string, 10)
	p, err := queue.OpenProducer(t.Context(), queue.ProducerConfig{Addrs: []string{b.Addr()}, Timing: quick, OnChange: func(addr string) { lost <- addr }})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	n := 0
	for err == nil {
		err = p.Publish(t.Context(), "topic", "item")
		if n++; n > 1000 {
			t.Fatal("nothing was refused")
		}
	}
	if !errors.Is(err, queue.ErrUnavailable) || errors.Is(err, queue.ErrRefused) || !strings.Contains(err.Error(), "PUB_FAILED") {
		t.Errorf("a full broker: %v, want ErrUnavailable, so that it is sent again", err)
	}
	c, err := queue.Consume(t.Context(), queue.ConsumerConfig{Addrs: []string{b.Addr()}, Topic: "topic", Free: 100, Timing: quick}, func(_ context.Context, d *queue.Delivery) { d.Finish() })
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Stop(t.Context()) }()
	queuetest.Eventually(t, "there is room again", func() bool { return p.Publish(t.Context(), "topic", "item") == nil })
	if len(lost) > 0 {
		t.Error("the connection was lost")
	}
}
