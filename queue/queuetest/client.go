package queuetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nsqio/go-nsq"
)

// patience is how long a test waits for an expected event.
const patience = 15 * time.Second

// Frame is one frame from the server.
type Frame struct {
	Kind int32 // nsq.FrameTypeResponse, FrameTypeError or FrameTypeMessage
	Data []byte
}

// Client is a plain connection to an NSQ server, for tests of what a client library hides. It is
// not safe for concurrent use. Its methods fail the test if the connection misbehaves.
type Client struct {
	t    testing.TB
	conn net.Conn
}

// Dial connects and identifies with these fields; nil sends an IDENTIFY without fields. It also
// returns the answer. The connection is closed when the test ends.
func Dial(t testing.TB, addr string, identify map[string]any) (*Client, []byte) {
	t.Helper()
	c := DialBare(t, addr)
	c.Write(string(nsq.MagicV2))
	body, err := json.Marshal(identify)
	if err != nil {
		t.Fatalf("encode IDENTIFY: %v", err)
	}
	if identify == nil {
		body = []byte("{}")
	}
	c.Send(&nsq.Command{Name: []byte("IDENTIFY"), Body: body})
	frame := c.Next()
	if frame.Kind != nsq.FrameTypeResponse {
		t.Fatalf("IDENTIFY %s answered %q", body, frame.Data)
	}
	return c, frame.Data
}

// DialBare connects and sends nothing.
func DialBare(t testing.TB, addr string) *Client {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	t.Cleanup(func() { conn.Close() })
	return &Client{t: t, conn: conn}
}

// Close closes the connection without notice, like a killed process.
func (c *Client) Close() { c.conn.Close() }

// Write sends raw bytes.
func (c *Client) Write(data string) {
	c.t.Helper()
	if _, err := io.WriteString(c.conn, data); err != nil {
		c.t.Fatalf("write: %v", err)
	}
}

// Send sends commands in one write.
func (c *Client) Send(commands ...*nsq.Command) {
	c.t.Helper()
	var buf bytes.Buffer
	for _, command := range commands {
		if _, err := command.WriteTo(&buf); err != nil {
			c.t.Fatalf("encode %s: %v", command, err)
		}
	}
	c.Write(buf.String())
}

// Subscribe subscribes to a channel with RDY n.
func (c *Client) Subscribe(topic, channel string, n int) {
	c.t.Helper()
	c.Send(nsq.Subscribe(topic, channel))
	c.ExpectResponse("OK")
	c.Send(nsq.Ready(n))
}

// Publish publishes the bodies and waits for the answer.
func (c *Client) Publish(topic string, bodies ...string) {
	c.t.Helper()
	for _, body := range bodies {
		c.Send(nsq.Publish(topic, []byte(body)))
		c.ExpectResponse("OK")
	}
}

// Read returns the next frame, including heartbeats, or the error that ended the connection.
func (c *Client) Read() (Frame, error) {
	if err := c.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return Frame{}, err
	}
	kind, data, err := nsq.ReadUnpackedResponse(c.conn)
	return Frame{Kind: kind, Data: data}, err
}

// Next returns the next frame that is not a heartbeat, and answers heartbeats.
func (c *Client) Next() Frame {
	c.t.Helper()
	for {
		frame, err := c.Read()
		if err != nil {
			c.t.Fatalf("read frame: %v", err)
		}
		if frame.Kind != nsq.FrameTypeResponse || string(frame.Data) != "_heartbeat_" {
			return frame
		}
		c.Send(nsq.Nop())
	}
}

// ExpectResponse reads a response frame and compares it.
func (c *Client) ExpectResponse(want string) {
	c.t.Helper()
	if frame := c.Next(); frame.Kind != nsq.FrameTypeResponse || string(frame.Data) != want {
		c.t.Fatalf("frame = %s, want response %q", frame, want)
	}
}

// ExpectMessage reads a message frame.
func (c *Client) ExpectMessage() *nsq.Message {
	c.t.Helper()
	frame := c.Next()
	if frame.Kind != nsq.FrameTypeMessage {
		c.t.Fatalf("frame = %s, want a message", frame)
	}
	m, err := nsq.DecodeMessage(frame.Data)
	if err != nil {
		c.t.Fatalf("decode message: %v", err)
	}
	return m
}

// ExpectError reads an error frame with this code.
func (c *Client) ExpectError(code string) {
	c.t.Helper()
	frame := c.Next()
	if got, _, _ := strings.Cut(string(frame.Data), " "); frame.Kind != nsq.FrameTypeError || got != code {
		c.t.Fatalf("frame = %s, want error %s", frame, code)
	}
}

// ExpectClosed reads until the server closes the connection. Only heartbeats may come before that.
func (c *Client) ExpectClosed() {
	c.t.Helper()
	for {
		frame, err := c.Read()
		if timeout := net.Error(nil); err != nil && (!errors.As(err, &timeout) || !timeout.Timeout()) {
			return
		}
		if err != nil {
			c.t.Fatal("the server did not close the connection")
		}
		if string(frame.Data) != "_heartbeat_" {
			c.t.Fatalf("frame = %s, want the connection closed", frame)
		}
	}
}

// Sync waits until the server has executed everything sent before, and returns messages that came
// meanwhile. The client must be subscribed.
func (c *Client) Sync() []*nsq.Message {
	c.t.Helper()
	var id nsq.MessageID
	copy(id[:], "0000000000000000")
	c.Send(nsq.Finish(id)) // no such message: its error marks the position
	var messages []*nsq.Message
	for {
		frame := c.Next()
		if frame.Kind == nsq.FrameTypeError && bytes.HasPrefix(frame.Data, []byte("E_FIN_FAILED")) {
			return messages
		}
		if frame.Kind != nsq.FrameTypeMessage {
			c.t.Fatalf("frame = %s, want messages or E_FIN_FAILED", frame)
		}
		m, err := nsq.DecodeMessage(frame.Data)
		if err != nil {
			c.t.Fatalf("decode message: %v", err)
		}
		messages = append(messages, m)
	}
}

// String returns the frame for failure messages.
func (f Frame) String() string { return fmt.Sprintf("kind %d %.200q", f.Kind, f.Data) }
