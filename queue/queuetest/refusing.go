package queuetest

import (
	"strings"
	"testing"

	"github.com/nsqio/go-nsq"

	"github.com/holdfast/holdfast/queue"
)

func testBadNames(t *testing.T, addr string) {
	names := []string{"", "bad$topic", "ü", strings.Repeat("x", 65), "#ephemeral", "a#ephemeral#ephemeral"}
	for _, name := range names {
		c, _ := Dial(t, addr, nil)
		c.Send(nsq.Publish(name, []byte("x")))
		c.ExpectError("E_BAD_TOPIC")
		c.ExpectClosed()

		c, _ = Dial(t, addr, nil)
		c.Send(nsq.Subscribe(NewTopic(), "c"+name+"$"))
		c.ExpectError("E_BAD_CHANNEL")
		c.ExpectClosed()
	}
}

func testBodyTooLarge(t *testing.T, addr string) {
	tests := []struct{ name, command, code string }{
		{"PUB", "PUB TOPIC\n\x40\x00\x00\x00", "E_BAD_MESSAGE"},
		{"PUB empty", "PUB TOPIC\n\x00\x00\x00\x00", "E_BAD_MESSAGE"},
		{"PUB negative", "PUB TOPIC\n\xff\xff\xff\xff", "E_BAD_MESSAGE"},
		{"DPUB", "DPUB TOPIC 10\n\x40\x00\x00\x00", "E_BAD_MESSAGE"},
		{"MPUB", "MPUB TOPIC\n\x40\x00\x00\x00", "E_BAD_BODY"},
		{"MPUB of none", "MPUB TOPIC\n\x00\x00\x00\x04\x00\x00\x00\x00", "E_BAD_BODY"},
		{"MPUB of too many", "MPUB TOPIC\n\x00\x00\x00\x0d\x7f\xff\xff\xff\x00\x00\x00\x01xaaaa", "E_BAD_BODY"},
	}
	for _, test := range tests {
		topic := NewTopic()
		c, _ := Dial(t, addr, nil)
		c.Write(strings.Replace(test.command, "TOPIC", topic, 1))
		frame := c.Next()
		if code, _, _ := strings.Cut(string(frame.Data), " "); frame.Kind != nsq.FrameTypeError || code != test.code {
			t.Errorf("%s: frame = %s, want error %s", test.name, frame, test.code)
			continue
		}
		c.ExpectClosed()

		// Nothing of it is in the topic.
		c, _ = Dial(t, addr, nil)
		c.Publish(topic, "sound")
		c.Subscribe(topic, queue.Channel, 10)
		if m := c.ExpectMessage(); string(m.Body) != "sound" {
			t.Errorf("%s: delivered %q", test.name, m.Body)
		}
	}
}

func testBadCommands(t *testing.T, addr string) {
	subscribed := func(c *Client) { c.Subscribe(NewTopic(), queue.Channel, 1) }
	tests := []struct {
		name  string
		setUp func(c *Client)
		send  string
		code  string
	}{
		{"unknown command", nil, "HELLO\n", "E_INVALID"},
		{"RDY before SUB", nil, "RDY 1\n", "E_INVALID"},
		{"FIN before SUB", nil, "FIN 0123456789abcdef\n", "E_INVALID"},
		{"CLS before SUB", nil, "CLS\n", "E_INVALID"},
		{"SUB without channel", nil, "SUB topic\n", "E_INVALID"},
		{"IDENTIFY twice or after SUB", subscribed, "IDENTIFY\n\x00\x00\x00\x02{}", "E_INVALID"},
		{"SUB twice", subscribed, "SUB other workers\n", "E_INVALID"},
		{"RDY out of range", subscribed, "RDY 2501\n", "E_INVALID"},
		{"RDY negative", subscribed, "RDY -1\n", "E_INVALID"},
		{"RDY not a number", subscribed, "RDY many\n", "E_INVALID"},
		{"FIN without id", subscribed, "FIN\n", "E_INVALID"},
		{"FIN with a short id", subscribed, "FIN 12\n", "E_INVALID"},
		{"REQ without delay", subscribed, "REQ 0123456789abcdef\n", "E_INVALID"},
		{"REQ with no number", subscribed, "REQ 0123456789abcdef soon\n", "E_INVALID"},
		{"DPUB out of range", nil, "DPUB topic 99999999999\n", "E_INVALID"},
	}
	for _, test := range tests {
		c, _ := Dial(t, addr, nil)
		if test.setUp != nil {
			test.setUp(c)
		}
		c.Write(test.send)
		frame := c.Next()
		if code, _, _ := strings.Cut(string(frame.Data), " "); frame.Kind != nsq.FrameTypeError || code != test.code {
			t.Errorf("%s: frame = %s, want error %s", test.name, frame, test.code)
			continue
		}
		c.ExpectClosed()
	}
}

func testHeartbeat(t *testing.T, addr string) {
	c, _ := Dial(t, addr, map[string]any{"heartbeat_interval": 1000})
	for range 3 { // answered, so the connection outlives two intervals
		frame, err := c.Read()
		if err != nil || frame.Kind != nsq.FrameTypeResponse || string(frame.Data) != "_heartbeat_" {
			t.Fatalf("frame = %s, %v, want a heartbeat", frame, err)
		}
		c.Send(nsq.Nop())
	}
	c.Publish(NewTopic(), "still there")
}

func testSilentClientIsDropped(t *testing.T, addr string) {
	topic := NewTopic()
	silent, _ := Dial(t, addr, map[string]any{"heartbeat_interval": 1000, "msg_timeout": 1000})
	silent.Publish(topic, "item")
	silent.Subscribe(topic, queue.Channel, 1)
	silent.ExpectMessage()
	silent.Send(nsq.Ready(0)) // the message's timeout may end before the connection does
	silent.ExpectClosed()     // it answers no heartbeat
	in := inbox(t, addr, topic, 1)
	d := in.Next()
	expectAgain(t, d, "item")
	d.Finish()
}
