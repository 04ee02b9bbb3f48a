package queue_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nsqio/go-nsq"

	"github.com/holdfast/holdfast/queue"
	"github.com/holdfast/holdfast/queue/queuetest"
)

// TestSend: everything sent to a topic is in one nsqd, in order, however much it is. If that nsqd
// dies, another one takes over.
func TestSend(t *testing.T) {
	t.Parallel()
	servers := []*server{openServer(t), openServer(t), openServer(t)}
	var addrs []string
	for _, s := range servers {
		addrs = append(addrs, s.addr)
	}
	p := queuetest.OpenProducer(t, queue.ProducerConfig{Addrs: addrs, Timing: quick})
	const times, each, size = 3, 30, 100 << 10 // three commands a time
	n := 0
	send := func() {
		t.Helper()
		bodies := make([][]byte, each)
		for i := range bodies {
			bodies[i] = append(fmt.Appendf(nil, "%d ", n), bytes.Repeat([]byte("x"), size)...)
			n++
		}
		if err := p.Send(t.Context(), "topic", bodies...); err != nil {
			t.Fatalf("send: %v", err)
		}
	}
	for range times {
		send()
	}
	var has, others []*server
	for _, s := range servers {
		if s.Stats().Topic("topic").MessageCount > 0 {
			has = append(has, s)
		} else {
			others = append(others, s)
		}
	}
	if len(has) != 1 {
		t.Fatalf("%d nsqds have something, want one", len(has))
	}
	c, _ := queuetest.Dial(t, has[0].addr, nil)
	c.Subscribe("topic", "them", 1)
	for i := range n {
		m := c.ExpectMessage()
		if got, _, _ := strings.Cut(string(m.Body), " "); got != fmt.Sprint(i) {
			t.Fatalf("message %d is %s", i, got)
		}
		c.Send(nsq.Finish(m.ID))
	}
	has[0].stop()
	send()
	if got := others[0].Stats().Topic("topic").MessageCount + others[1].Stats().Topic("topic").MessageCount; got != each {
		t.Errorf("the others have %d messages, want %d", got, each)
	}
	if err := p.Send(t.Context(), "not a topic", []byte("x")); !errors.Is(err, queue.ErrBadTopic) {
		t.Errorf("a bad topic: %v", err)
	}
	if err := p.Send(t.Context(), "topic"); err != nil {
		t.Errorf("nothing to send: %v", err)
	}
}
