package queuetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nsqio/go-nsq"

	"github.com/holdfast/holdfast/queue"
)

func inbox(t *testing.T, addr, topic string, free int) *Inbox {
	t.Helper()
	return OpenInbox(t, queue.ConsumerConfig{Addrs: []string{addr}, Topic: topic, Free: free})
}

// shortTimeout are fields of IDENTIFY: the client's messages come again after a second, not after
// nsqd's default of a minute.
var shortTimeout = map[string]any{"msg_timeout": 1000}

func expect(t *testing.T, d *queue.Delivery, id string, attempts int) {
	t.Helper()
	if d.ItemID != id || d.Attempts != attempts {
		t.Fatalf("delivery = %s, attempt %d, want %s, attempt %d", d.ItemID, d.Attempts, id, attempts)
	}
}

// expectAgain is for a message whose timeout may have ended more than once: on a slow machine it went
// back to the first client before that said RDY 0.
func expectAgain(t *testing.T, d *queue.Delivery, id string) {
	t.Helper()
	if d.ItemID != id || d.Attempts < 2 {
		t.Fatalf("delivery = %s, attempt %d, want %s, attempt 2 or later", d.ItemID, d.Attempts, id)
	}
}

func testPublishAndConsume(t *testing.T, addr string) {
	topic := NewTopic()
	in := inbox(t, addr, topic, 1)
	Publish(t, addr, topic, "item-1")
	d := in.Next()
	expect(t, d, "item-1", 1)
	d.Finish()
	d.Finish() // has no effect
	Publish(t, addr, topic, "item-2")
	d = in.Next()
	expect(t, d, "item-2", 1)
	d.Finish()
}

func testPublishMany(t *testing.T, addr string) {
	topic := NewTopic()
	var want []string
	for i := range 2500 {
		want = append(want, fmt.Sprintf("item-%04d", i))
	}
	in := inbox(t, addr, topic, 100)
	Publish(t, addr, topic, want...)
	got := make(map[string]int)
	for range want {
		d := in.Next()
		got[d.ItemID]++
		d.Finish()
	}
	for _, id := range want {
		if got[id] != 1 {
			t.Fatalf("%s came %d times, want once", id, got[id])
		}
	}
}

func testRedeliversAfterTimeout(t *testing.T, addr string) {
	topic := NewTopic()
	in := OpenInbox(t, queue.ConsumerConfig{
		Addrs: []string{addr}, Topic: topic, Free: 2, MsgTimeout: time.Second,
	})
	Publish(t, addr, topic, "item")
	expect(t, in.Next(), "item", 1) // and kept in flight
	d := in.Next()
	expect(t, d, "item", 2)
	d.Finish()
}

func testTouchKeeps(t *testing.T, addr string) {
	topic := NewTopic()
	in := OpenInbox(t, queue.ConsumerConfig{
		Addrs: []string{addr}, Topic: topic, Free: 2, MsgTimeout: time.Second,
	})
	Publish(t, addr, topic, "item")
	d := in.Next()
	for range 8 { // twice the timeout, and some
		in.None(300 * time.Millisecond)
		d.Touch()
	}
	d.Finish()
	d.Touch() // has no effect
	Publish(t, addr, topic, "next")
	next := in.Next()
	expect(t, next, "next", 1)
	next.Finish()
}

func testRequeueWithDelay(t *testing.T, addr string) {
	topic := NewTopic()
	in := inbox(t, addr, topic, 1)
	Publish(t, addr, topic, "item")
	const delay = 300 * time.Millisecond
	requeued := time.Now()
	in.Next().Requeue(delay)
	d := in.Next()
	if took := time.Since(requeued); took < delay {
		t.Errorf("came back after %s, want not before %s", took, delay)
	}
	expect(t, d, "item", 2)
	d.Finish()
}

func testAttemptsGrow(t *testing.T, addr string) {
	topic := NewTopic()
	in := inbox(t, addr, topic, 1)
	Publish(t, addr, topic, "item")
	for attempt := 1; attempt <= 8; attempt++ { // go-nsq's default gives up after 5
		d := in.Next()
		expect(t, d, "item", attempt)
		if attempt == 8 {
			d.Finish()
		} else {
			d.Requeue(0)
		}
	}
}

func testReadyCountIsTheLimit(t *testing.T, addr string) {
	topic := NewTopic()
	publisher, _ := Dial(t, addr, nil)
	publisher.Publish(topic, "1", "2", "3", "4", "5")
	c, _ := Dial(t, addr, nil)
	c.Subscribe(topic, queue.Channel, 2)
	held := []*nsq.Message{c.ExpectMessage(), c.ExpectMessage()}
	if more := c.Sync(); len(more) > 0 {
		t.Fatalf("%d messages above RDY 2", len(more))
	}
	c.Send(nsq.Finish(held[0].ID))
	third := c.ExpectMessage()
	c.Send(nsq.Ready(0))
	c.Send(nsq.Finish(held[1].ID), nsq.Finish(third.ID))
	if more := c.Sync(); len(more) > 0 {
		t.Fatalf("%d messages at RDY 0", len(more))
	}
	c.Send(nsq.Ready(5))
	c.Send(nsq.Finish(c.ExpectMessage().ID), nsq.Finish(c.ExpectMessage().ID))
}

func testConsumersShareAChannel(t *testing.T, addr string) {
	topic := NewTopic()
	a, b := inbox(t, addr, topic, 1), inbox(t, addr, topic, 1)
	Eventually(t, "both are subscribed", func() bool { return a.Connections()+b.Connections() == 2 })
	Publish(t, addr, topic, "1", "2", "3", "4", "5", "6")
	got := make(map[string]int)
	for range 3 {
		// Each has one slot, so each can have taken only one message while both wait here.
		first, second := a.Next(), b.Next()
		got[first.ItemID]++
		got[second.ItemID]++
		first.Finish()
		second.Finish()
	}
	want := map[string]int{"1": 1, "2": 1, "3": 1, "4": 1, "5": 1, "6": 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("deliveries (-want +got):\n%s", diff)
	}
}

func testEveryChannelGetsAll(t *testing.T, addr string) {
	topic := NewTopic()
	publisher, _ := Dial(t, addr, nil)
	first, _ := Dial(t, addr, nil)
	first.Subscribe(topic, "first", 10)
	second, _ := Dial(t, addr, nil)
	second.Subscribe(topic, "second", 10)
	publisher.Publish(topic, "x")
	for _, c := range []*Client{first, second} {
		m := c.ExpectMessage()
		if string(m.Body) != "x" {
			t.Errorf("body = %q, want x", m.Body)
		}
		c.Send(nsq.Finish(m.ID))
	}
}

func testKeepsForFirstSubscriber(t *testing.T, addr string) {
	topic := NewTopic()
	Publish(t, addr, topic, "1", "2", "3")
	in := inbox(t, addr, topic, 3)
	got := make(map[string]int)
	for range 3 {
		d := in.Next()
		got[d.ItemID] = d.Attempts
		d.Finish()
	}
	if diff := cmp.Diff(map[string]int{"1": 1, "2": 1, "3": 1}, got); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
}

// nsqd promises no more than this: a message of a client that is gone comes again when its timeout
// ends, as if the client were slow. Its scan for timeouts learns of a new channel after up to 5 s.
func testDisconnectRedelivers(t *testing.T, addr string) {
	topic := NewTopic()
	Publish(t, addr, topic, "item")
	killed, _ := Dial(t, addr, shortTimeout)
	killed.Subscribe(topic, queue.Channel, 1)
	killed.ExpectMessage()
	killed.Send(nsq.Ready(0)) // so that the message comes to others, however late the connection ends
	in := inbox(t, addr, topic, 1)
	Eventually(t, "subscribed", func() bool { return in.Connections() == 1 })
	killed.Close()
	d := in.Next()
	expectAgain(t, d, "item")
	d.Finish()
}

func testOnlyTheHolderFinishes(t *testing.T, addr string) {
	topic := NewTopic()
	holder, _ := Dial(t, addr, nil)
	holder.Subscribe(topic, queue.Channel, 1)
	other, _ := Dial(t, addr, nil)
	other.Subscribe(topic, queue.Channel, 0)
	publisher, _ := Dial(t, addr, nil)
	publisher.Publish(topic, "item")
	m := holder.ExpectMessage()

	other.Send(nsq.Finish(m.ID))
	other.ExpectError("E_FIN_FAILED")
	other.Send(nsq.Requeue(m.ID, 0))
	other.ExpectError("E_REQ_FAILED")
	other.Send(nsq.Touch(m.ID))
	other.ExpectError("E_TOUCH_FAILED")

	holder.Send(nsq.Finish(m.ID), nsq.Finish(m.ID))
	holder.ExpectError("E_FIN_FAILED") // the second FIN; the first succeeded
}

func testDeferredPublish(t *testing.T, addr string) {
	topic := NewTopic()
	c, _ := Dial(t, addr, nil)
	c.Subscribe(topic, queue.Channel, 1)
	publisher, _ := Dial(t, addr, nil)
	const delay = 300 * time.Millisecond
	published := time.Now()
	publisher.Send(nsq.DeferredPublish(topic, delay, []byte("later")))
	publisher.ExpectResponse("OK")
	m := c.ExpectMessage()
	if took := time.Since(published); took < delay {
		t.Errorf("came after %s, want not before %s", took, delay)
	}
	if m.Attempts != 1 {
		t.Errorf("attempts = %d, want 1", m.Attempts)
	}
	c.Send(nsq.Finish(m.ID))
}

func testCloseStopsDelivery(t *testing.T, addr string) {
	topic := NewTopic()
	publisher, _ := Dial(t, addr, nil)
	c, _ := Dial(t, addr, nil)
	c.Subscribe(topic, queue.Channel, 5)
	publisher.Publish(topic, "1")
	m := c.ExpectMessage()
	c.Send(nsq.StartClose())
	c.ExpectResponse("CLOSE_WAIT")
	publisher.Publish(topic, "2")
	c.Send(nsq.Finish(m.ID)) // is still accepted
	if more := c.Sync(); len(more) > 0 {
		t.Fatalf("%d messages after CLOSE_WAIT", len(more))
	}
	next, _ := Dial(t, addr, nil)
	next.Subscribe(topic, queue.Channel, 5)
	if m := next.ExpectMessage(); string(m.Body) != "2" {
		t.Errorf("body = %q, want 2", m.Body)
	}
}
