package broker_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nsqio/go-nsq"
	"pgregory.net/rapid"

	"github.com/holdfast/holdfast/queue/broker"
	"github.com/holdfast/holdfast/queue/queuetest"
)

const workers = "workers"

func workersOf(b *broker.Broker, topic string) broker.ChannelStats {
	return b.Stats().Topic(topic).Channel(workers)
}

func TestIdentify_FeaturesNotThere(t *testing.T) {
	b := open(t, broker.Options{})
	_, answer := queuetest.Dial(t, b.Addr(), map[string]any{
		"feature_negotiation": true, "tls_v1": true, "snappy": true, "deflate": true, "sample_rate": 50, "msg_timeout": 5000,
	})
	var got map[string]any
	if err := json.Unmarshal(answer, &got); err != nil {
		t.Fatalf("decode %q: %v", answer, err)
	}
	want := map[string]any{
		"max_rdy_count": 2500.0, "version": "1.3.0", "max_msg_timeout": 900000.0, "msg_timeout": 5000.0,
		"tls_v1": false, "deflate": false, "deflate_level": 0.0, "max_deflate_level": 6.0, "snappy": false,
		"sample_rate": 0.0, "auth_required": false, "output_buffer_size": 0.0, "output_buffer_timeout": 0.0,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("features (-want +got):\n%s", diff)
	}
}

func TestIdentify_Refused(t *testing.T) {
	b := open(t, broker.Options{})
	for _, body := range []string{
		`{"heartbeat_interval":999}`, `{"heartbeat_interval":60001}`, `{"heartbeat_interval":-2}`,
		`{"msg_timeout":999}`, `{"msg_timeout":900001}`, `{"msg_timeout":-1}`, `[]`, `{`,
	} {
		c := queuetest.DialBare(t, b.Addr())
		c.Write("  V2")
		c.Send(&nsq.Command{Name: []byte("IDENTIFY"), Body: []byte(body)})
		c.ExpectError("E_BAD_BODY")
		c.ExpectClosed()
	}
	c := queuetest.DialBare(t, b.Addr())
	c.Write("  V1")
	c.ExpectError("E_BAD_PROTOCOL")
	c.ExpectClosed()
	c, _ = queuetest.Dial(t, b.Addr(), nil)
	c.Send(&nsq.Command{Name: []byte("AUTH"), Body: []byte("secret")})
	c.ExpectError("E_AUTH_DISABLED")
	c, _ = queuetest.Dial(t, b.Addr(), map[string]any{"heartbeat_interval": -1})
	c.Send(nsq.Subscribe("topic", workers))
	c.ExpectError("E_INVALID")
}

func TestMaxMsgTimeout_LimitsTouch(t *testing.T) {
	b := open(t, broker.Options{MsgTimeout: 60 * time.Millisecond, MaxMsgTimeout: 200 * time.Millisecond})
	c, _ := queuetest.Dial(t, b.Addr(), nil)
	c.Publish("topic", "item")
	delivered := time.Now()
	c.Subscribe("topic", workers, 1)
	first := c.ExpectMessage()
	again := make(chan *nsq.Message, 1)
	go func() {
		for {
			frame, err := c.Read()
			if err != nil {
				return
			}
			if m, err := nsq.DecodeMessage(frame.Data); frame.Kind == nsq.FrameTypeMessage && err == nil {
				again <- m
				return
			}
		}
	}()
	tick := time.NewTicker(15 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			c.Send(nsq.Touch(first.ID))
		case m := <-again:
			if held := time.Since(delivered); held < 200*time.Millisecond {
				t.Errorf("taken back after %s though touched, want not before 200ms", held)
			}
			if m.Attempts != 2 {
				t.Errorf("attempts = %d, want 2", m.Attempts)
			}
			return
		}
	}
}

// A message of a client that is gone does not wait for its timeout, which is a minute here. An nsqd
// would wait (queuetest, DisconnectRedelivers).
func TestDisconnect_RedeliversAtOnce(t *testing.T) {
	b := open(t, broker.Options{MsgTimeout: time.Minute})
	killed, _ := queuetest.Dial(t, b.Addr(), nil)
	killed.Publish("topic", "item")
	killed.Subscribe("topic", workers, 1)
	killed.ExpectMessage()
	killed.Close()
	next, _ := queuetest.Dial(t, b.Addr(), nil)
	next.Subscribe("topic", workers, 1)
	if m := next.ExpectMessage(); string(m.Body) != "item" || m.Attempts != 2 {
		t.Errorf("message = %q, attempt %d, want item, attempt 2", m.Body, m.Attempts)
	}
}

func TestStats_CountsTheRest(t *testing.T) {
	b := open(t, broker.Options{MsgTimeout: 30 * time.Millisecond})
	c, _ := queuetest.Dial(t, b.Addr(), nil)
	c.Publish("topic", "timed out")
	c.Subscribe("topic", workers, 1)
	c.ExpectMessage()
	c.ExpectMessage()
	c.Send(nsq.Ready(0))
	queuetest.Eventually(t, "it timed out again", func() bool { return workersOf(b, "topic").InFlight == 0 })
	got := workersOf(b, "topic")
	if got.TimeoutCount < 2 || got.Depth != 1 || got.MessageCount != 1 || got.ClientCount != 1 || got.RequeueCount != 0 {
		t.Errorf("stats = %+v", got)
	}
}

func TestDelivery_IsFair(t *testing.T) {
	b := open(t, broker.Options{})
	var clients []*queuetest.Client
	for range 4 {
		c, _ := queuetest.Dial(t, b.Addr(), nil)
		c.Subscribe("topic", workers, 10)
		c.Sync()
		clients = append(clients, c)
	}
	p, _ := queuetest.Dial(t, b.Addr(), nil)
	for i := range 20 {
		p.Publish("topic", fmt.Sprint(i))
	}
	for i, c := range clients {
		if got := len(c.Sync()); got != 5 {
			t.Errorf("client %d holds %d of 20, want 5", i, got)
		}
	}
}

func TestEphemeral_GoesWithItsLastClient(t *testing.T) {
	b := open(t, broker.Options{})
	p, _ := queuetest.Dial(t, b.Addr(), nil)
	for _, topic := range []string{"lasting", "passing#ephemeral"} {
		c, _ := queuetest.Dial(t, b.Addr(), nil)
		c.Subscribe(topic, "ch#ephemeral", 1)
		p.Publish(topic, "held", "queued")
		c.Send(nsq.Requeue(c.ExpectMessage().ID, time.Hour))
		c.ExpectMessage()
		c.Close()
	}
	queuetest.Eventually(t, "the channels and the ephemeral topic are gone", func() bool {
		s := b.Stats()
		return len(s.Topics) == 1 && len(s.Topic("lasting").Channels) == 0
	})
	p.Publish("lasting", "kept for a channel")
	if got := b.Stats().Topic("lasting").Depth; got != 1 {
		t.Errorf("depth = %d, want 1", got)
	}
}

// A client that does not read gets a limited amount, and delays no other client.
func TestSlowReader_IsGivenNoMore(t *testing.T) {
	b := open(t, broker.Options{MaxMemory: 128 << 20})
	slow, _ := queuetest.Dial(t, b.Addr(), nil)
	slow.Subscribe("topic", workers, 2500)
	p, _ := queuetest.Dial(t, b.Addr(), nil)
	body := string(make([]byte, 1<<20))
	const n = 64
	for range n {
		p.Publish("topic", body)
	}
	got := workersOf(b, "topic")
	if got.InFlight == 0 || got.Depth == 0 || got.InFlight+got.Depth != n {
		t.Fatalf("in flight %d, depth %d, want both some and %d together", got.InFlight, got.Depth, n)
	}
	for range n { // now it reads: the rest follows
		slow.Send(nsq.Finish(slow.ExpectMessage().ID))
	}
	slow.Sync()
	if got := workersOf(b, "topic"); got.InFlight+got.Depth != 0 {
		t.Errorf("in flight %d, depth %d, want none", got.InFlight, got.Depth)
	}
}

func TestClose(t *testing.T) {
	b, err := broker.New(broker.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := b.Addr(); got != "" {
		t.Errorf("address before Listen = %q", got)
	}
	if err := b.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	if err := b.Listen("127.0.0.1:0"); err != nil { // a second address
		t.Fatal(err)
	}
	c, _ := queuetest.Dial(t, b.Addr(), nil)
	c.Subscribe("topic", workers, 1)
	idle := queuetest.DialBare(t, b.Addr())
	for range 2 {
		if err := b.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	c.ExpectClosed()
	idle.ExpectClosed()
	if err := b.Listen("127.0.0.1:0"); !errors.Is(err, broker.ErrClosed) {
		t.Errorf("listen after close = %v, want ErrClosed", err)
	}
}

func TestNew_RefusesBadOptions(t *testing.T) {
	for _, opts := range []broker.Options{{MaxRdyCount: -1}, {MsgTimeout: time.Hour}, {HeartbeatInterval: -1}} {
		if _, err := broker.New(opts); err == nil {
			t.Errorf("New(%+v) succeeded", opts)
		}
	}
}

// Whatever clients do, every message is in exactly one place until it is finished, and not
// delivered afterwards.
func TestRandomWalk_LosesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		b := open(t, broker.Options{MsgTimeout: 3 * time.Second})
		defer b.Close()
		p, _ := queuetest.Dial(t, b.Addr(), nil)
		p.Subscribe("topic", workers, 0)
		type consumer struct {
			*queuetest.Client
			held []nsq.MessageID
		}
		var consumers []*consumer
		published, finished := 0, 0
		for range rapid.IntRange(5, 40).Draw(r, "steps") {
			switch rapid.SampledFrom([]string{"publish", "join", "ready", "finish", "requeue", "defer", "leave"}).Draw(r, "step") {
			case "publish":
				p.Publish("topic", "x")
				published++
				continue
			case "join":
				c, _ := queuetest.Dial(t, b.Addr(), nil)
				c.Subscribe("topic", workers, rapid.IntRange(0, 3).Draw(r, "ready"))
				consumers = append(consumers, &consumer{Client: c})
				continue
			}
			if len(consumers) == 0 {
				continue
			}
			at := rapid.IntRange(0, len(consumers)-1).Draw(r, "consumer")
			c := consumers[at]
			for _, m := range c.Sync() {
				c.held = append(c.held, m.ID)
			}
			switch step := rapid.SampledFrom([]string{"ready", "finish", "requeue", "defer", "leave"}).Draw(r, "act"); {
			case step == "ready":
				c.Send(nsq.Ready(rapid.IntRange(0, 5).Draw(r, "ready")))
			case step == "leave":
				c.Close()
				consumers = slices.Delete(consumers, at, at+1)
			case len(c.held) == 0:
			case step == "finish":
				c.Send(nsq.Finish(c.held[0]))
				c.held = c.held[1:]
				finished++
			case step == "requeue":
				c.Send(nsq.Requeue(c.held[0], 0))
				c.held = c.held[1:]
			case step == "defer":
				c.Send(nsq.Requeue(c.held[0], time.Hour))
				c.held = c.held[1:]
			}
		}
		held := 0
		for _, c := range consumers {
			for _, m := range c.Sync() {
				c.held = append(c.held, m.ID)
			}
		}
		queuetest.Eventually(t, "those who left are gone", func() bool {
			return workersOf(b, "topic").ClientCount == len(consumers)+1
		})
		for _, c := range consumers { // what the leavers had held
			for _, m := range c.Sync() {
				c.held = append(c.held, m.ID)
			}
			held += len(c.held)
		}
		got := workersOf(b, "topic")
		if got.Depth+got.Deferred+got.InFlight != published-finished {
			r.Fatalf("depth %d + deferred %d + in flight %d, want %d published - %d finished",
				got.Depth, got.Deferred, got.InFlight, published, finished)
		}
		if got.InFlight != held {
			r.Fatalf("in flight %d, consumers hold %d", got.InFlight, held)
		}
	})
}

// Whatever bytes come, the broker answers or closes the connection, and serves the next client.
func FuzzCommands(f *testing.F) {
	b := open(f, broker.Options{MaxBodySize: 1 << 12, MaxMsgSize: 1 << 10})
	for _, seed := range []string{
		"  V2NOP\n", "  V2IDENTIFY\n\x00\x00\x00\x02{}SUB t c\nRDY 1\nCLS\n", "  V2PUB t\n\x00\x00\x00\x01x",
		"  V2MPUB t\n\x00\x00\x00\x0e\x00\x00\x00\x02\x00\x00\x00\x01x\x00\x00\x00\x01", "  V2DPUB t 10\n\x00\x00\x00\x01x",
		"  V2SUB t c\nFIN 0123456789abcdef\nREQ 0123456789abcdef 9\nTOUCH 0123456789abcdef\n", "  V2AUTH\n", "  V1",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		conn, err := net.Dial("tcp", b.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		_, _ = conn.Write(data)
		_ = conn.(*net.TCPConn).CloseWrite()
		_, err = io.Copy(io.Discard, conn)
		if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
			t.Fatal("the broker did not hang up")
		}
		c, _ := queuetest.Dial(t, b.Addr(), nil)
		c.Publish("after", "x")
	})
}
