package broker_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nsqio/go-nsq"

	"github.com/holdfast/holdfast/queue/broker"
	"github.com/holdfast/holdfast/queue/queuetest"
)

// Addresses other than loopback are served only if the options allow it.
func TestListen_Remote(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0"} {
		b, err := broker.New(broker.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Listen(addr); !errors.Is(err, broker.ErrRemote) || b.Addr() != "" {
			t.Errorf("%s: %v, and it listens on %q, want ErrRemote", addr, err, b.Addr())
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	b, err := broker.New(broker.Options{Remote: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Listen("0.0.0.0:0"); err != nil {
		t.Error(err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

const secret = "a secret of the test"

func auth(text string) *nsq.Command {
	c, _ := nsq.Auth(text) // it never fails
	return c
}

func mpub(topic string, bodies [][]byte) *nsq.Command {
	c, _ := nsq.MultiPublish(topic, bodies) // it never fails
	return c
}

// A client that has not authenticated can neither publish nor subscribe, by any command.
func TestAuth(t *testing.T) {
	b := open(t, broker.Options{AuthSecret: secret})
	identified := func() *queuetest.Client {
		t.Helper()
		c, answer := queuetest.Dial(t, b.Addr(), map[string]any{"feature_negotiation": true})
		var got struct {
			AuthRequired bool `json:"auth_required"`
		}
		if err := json.Unmarshal(answer, &got); err != nil || !got.AuthRequired {
			t.Fatalf("IDENTIFY answered %s (%v), want that a secret is asked for", answer, err)
		}
		return c
	}
	for _, command := range []*nsq.Command{
		nsq.Publish("topic", []byte("x")), mpub("topic", [][]byte{[]byte("x")}), nsq.DeferredPublish("topic", time.Second, []byte("x")), nsq.Subscribe("topic", workers),
	} {
		c := identified()
		c.Send(command)
		c.ExpectError("E_AUTH_FIRST")
		c.ExpectClosed()
	}
	c := identified()
	c.Send(nsq.Ready(1))
	c.ExpectError("E_INVALID")
	for _, wrong := range []string{"x", secret + " ", strings.ToUpper(secret), secret[:len(secret)-1]} {
		c := identified()
		c.Send(auth(wrong))
		c.ExpectError("E_AUTH_FAILED")
		c.ExpectClosed()
	}
	for _, wrong := range []string{"", strings.Repeat("x", 2000)} {
		c := identified()
		c.Send(auth(wrong))
		c.ExpectError("E_BAD_BODY")
		c.ExpectClosed()
	}
	if topics := b.Stats().Topics; len(topics) != 0 {
		t.Errorf("strangers made %+v", topics)
	}
	c = identified()
	c.Send(auth(secret))
	if frame := c.Next(); frame.Kind != nsq.FrameTypeResponse || !json.Valid(frame.Data) {
		t.Fatalf("AUTH answered %d %q", frame.Kind, frame.Data)
	}
	c.Publish("topic", "item")
	c.Subscribe("topic", workers, 1)
	if m := c.ExpectMessage(); string(m.Body) != "item" {
		t.Errorf("got %q", m.Body)
	}
}

// Clients without the secret keep out none that has it: their connections end soon, and earlier if
// their places are needed. Authenticated clients stay.
func TestAuth_Strangers(t *testing.T) {
	b := open(t, broker.Options{AuthSecret: secret, AuthTime: time.Minute, MaxClients: 3})
	known := func() *queuetest.Client {
		t.Helper()
		c, _ := queuetest.Dial(t, b.Addr(), nil)
		c.Send(auth(secret))
		c.Next()
		c.Publish("topic", "item")
		return c
	}
	first := known()
	strangers := []*queuetest.Client{queuetest.DialBare(t, b.Addr()), queuetest.DialBare(t, b.Addr())}
	second := known()
	strangers[0].ExpectClosed()
	third := known()
	strangers[1].ExpectClosed()
	queuetest.DialBare(t, b.Addr()).ExpectClosed()
	for _, c := range []*queuetest.Client{first, second, third} {
		c.Publish("topic", "item")
	}

	quick := open(t, broker.Options{AuthSecret: secret, AuthTime: 50 * time.Millisecond})
	identified, _ := queuetest.Dial(t, quick.Addr(), nil)
	identified.ExpectClosed()
	queuetest.DialBare(t, quick.Addr()).ExpectClosed()
}

// heap is how many bytes are in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// However much is published to however many topics and channels, the broker's memory stays within
// its limit. It refuses what has no room, keeps the connection, and delivers what it accepted.
func TestMemory(t *testing.T) {
	const bound = 8 << 20
	large := bytes.Repeat([]byte("x"), 100_000)
	small := make([][]byte, 1000)
	for i := range small {
		small[i] = []byte("item")
	}
	for name, flood := range map[string]func(n int) *nsq.Command{
		"large":      func(int) *nsq.Command { return nsq.Publish("topic", large) },
		"topics":     func(n int) *nsq.Command { return nsq.Publish(fmt.Sprint("topic", n), []byte("x")) },
		"deferred":   func(int) *nsq.Command { return nsq.DeferredPublish("topic", time.Hour, large) },
		"small":      func(int) *nsq.Command { return mpub("topic", small) },
		"subscribed": func(int) *nsq.Command { return mpub("read", small) },
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, broker.Options{MaxMemory: bound})
			idle, _ := queuetest.Dial(t, b.Addr(), nil)
			idle.Subscribe("read", workers, 0)
			other, _ := queuetest.Dial(t, b.Addr(), nil)
			other.Subscribe("read", "others", 0)
			c, _ := queuetest.Dial(t, b.Addr(), nil)
			before := heap()
			taken := 0
			for n := 0; ; n++ {
				c.Send(flood(n))
				frame := c.Next()
				if frame.Kind == nsq.FrameTypeError {
					if !strings.Contains(string(frame.Data), "PUB_FAILED") {
						t.Fatalf("refused by %q", frame.Data)
					}
					break
				}
				if taken++; taken > 100_000 {
					t.Fatal("nothing was refused")
				}
			}
			if took := heap() - before; took > bound {
				t.Errorf("the broker holds %d bytes, want %d at most", took, bound)
			}
			if taken < 3 {
				t.Errorf("%d were taken", taken)
			}
			c.Send(flood(1 << 20)) // still refused, on the same connection
			if frame := c.Next(); frame.Kind != nsq.FrameTypeError {
				t.Fatalf("then it took more: %s", frame)
			}
			if name != "large" {
				return
			}
			reader, _ := queuetest.Dial(t, b.Addr(), nil)
			reader.Subscribe("topic", workers, 1)
			for range taken {
				reader.Send(nsq.Finish(reader.ExpectMessage().ID))
			}
			for i := range 2 * taken { // what was finished made room
				c.Publish("topic", string(large))
				if m := reader.ExpectMessage(); len(m.Body) != len(large) {
					t.Fatalf("message %d has %d bytes", i, len(m.Body))
				} else {
					reader.Send(nsq.Finish(m.ID))
				}
				reader.Sync() // until it is finished
			}
		})
	}
}

// Endless new channels and connections are limited too.
func TestMemory_Clients(t *testing.T) {
	b := open(t, broker.Options{MaxMemory: 64 << 10, MaxClients: 20})
	c, _ := queuetest.Dial(t, b.Addr(), nil)
	c.Publish("topic", "x")
	made := 0
	for {
		c, _ := queuetest.Dial(t, b.Addr(), nil)
		c.Send(nsq.Subscribe(fmt.Sprint("a", made), strings.Repeat("c", 60)))
		if made++; made == 18 {
			break
		}
		if frame := c.Next(); frame.Kind != nsq.FrameTypeResponse {
			t.Fatalf("channel %d: %q", made, frame.Data)
		}
	}
	full := open(t, broker.Options{MaxMemory: 16 << 10})
	last, _ := queuetest.Dial(t, b.Addr(), nil) // the twentieth
	queuetest.DialBare(t, b.Addr()).ExpectClosed()
	for n := 0; ; n++ {
		last.Send(nsq.Publish(fmt.Sprint("b", n), []byte("x")))
		if frame := last.Next(); frame.Kind == nsq.FrameTypeError {
			break
		}
		if n > 100 {
			t.Fatal("nothing was refused")
		}
	}
	last.Subscribe("b0", workers, 1) // who empties it is served
	last.ExpectMessage()
	for n := 0; ; n++ { // until it is full of channels
		c, _ := queuetest.Dial(t, full.Addr(), nil)
		c.Send(nsq.Subscribe(fmt.Sprint("c", n), workers))
		frame := c.Next()
		if frame.Kind == nsq.FrameTypeError {
			if !strings.HasPrefix(string(frame.Data), "E_SUB_FAILED") {
				t.Errorf("refused by %q", frame.Data)
			}
			break
		}
		if n > 100 {
			t.Fatal("nothing was refused")
		}
	}
}

// Ephemeral topics and channels release their memory.
func TestMemory_GivenBack(t *testing.T) {
	b := open(t, broker.Options{MaxMemory: 64 << 10})
	sender, _ := queuetest.Dial(t, b.Addr(), nil)
	for range 50 {
		c, _ := queuetest.Dial(t, b.Addr(), nil)
		c.Subscribe("gone#ephemeral", "gone#ephemeral", 1)
		for range 10 {
			sender.Publish("gone#ephemeral", strings.Repeat("x", 1000))
		}
		sender.Send(nsq.DeferredPublish("gone#ephemeral", time.Hour, []byte("later")))
		sender.ExpectResponse("OK")
		c.Close()
		for len(b.Stats().Topics) > 0 {
			runtime.Gosched()
		}
	}
}
