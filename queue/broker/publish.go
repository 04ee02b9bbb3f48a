package broker

import (
	"bytes"
	"encoding/binary"
	"io"
	"strconv"
	"time"
)

func (c *conn) publish(args []string) (string, error) {
	if err := c.mayPublish("PUB", args, 1); err != nil {
		return "", err
	}
	size, err := c.readMessageSize("PUB")
	if err != nil {
		return "", err
	}
	return c.publishBody("PUB", args[0], size, 0, singleMessage)
}

func (c *conn) publishDeferred(args []string) (string, error) {
	if err := c.mayPublish("DPUB", args, 2); err != nil {
		return "", err
	}
	delay, err := parseMillis("DPUB", args[1])
	if err != nil {
		return "", err
	}
	if delay < 0 || delay > c.broker.opts.MaxReqTimeout {
		return "", refuse(codeInvalid, "DPUB delay %s out of range 0-%s", delay, c.broker.opts.MaxReqTimeout)
	}
	size, err := c.readMessageSize("DPUB")
	if err != nil {
		return "", err
	}
	return c.publishBody("DPUB", args[0], size, delay, singleMessage)
}

func (c *conn) publishMany(args []string) (string, error) {
	if err := c.mayPublish("MPUB", args, 1); err != nil {
		return "", err
	}
	size, err := c.readSize()
	if err != nil {
		return "", err
	}
	if size <= 0 || size > c.broker.opts.MaxBodySize {
		return "", refuse(codeBadBody, "MPUB invalid body size %d", size)
	}
	return c.publishBody("MPUB", args[0], size, 0, func(body []byte) ([][]byte, error) {
		return splitMessages(body, c.broker.opts.MaxMsgSize)
	})
}

// singleMessage returns a body that is one message.
func singleMessage(body []byte) ([][]byte, error) { return [][]byte{body}, nil }

// publishBody reserves memory for a body, reads it, and publishes its messages.
func (c *conn) publishBody(command, topic string, size int64, delay time.Duration, split func([]byte) ([][]byte, error)) (string, error) {
	h := c.broker.hub
	full := refuseFull(codePubFailed, command)
	if command == "MPUB" {
		full.code = codeManyPubFailed
	}
	if !h.reserve(size) {
		if _, err := io.CopyN(io.Discard, c.in, size); err != nil {
			return "", err
		}
		return "", full
	}
	defer h.unreserve(size)
	body := make([]byte, size)
	if _, err := io.ReadFull(c.in, body); err != nil {
		return "", err
	}
	bodies, err := split(body)
	if err != nil {
		return "", err
	}
	if !h.publish(topic, bodies, delay) {
		return "", full
	}
	return responseOK, nil
}

// splitMessages splits the body of an MPUB: count (4 bytes), then size (4 bytes) and bytes of each
// message.
func splitMessages(body []byte, maxSize int64) ([][]byte, error) {
	if len(body) < 4 {
		return nil, refuse(codeBadBody, "MPUB body is too short for a count")
	}
	count := int64(binary.BigEndian.Uint32(body))
	rest := body[4:]
	if count < 1 || count > int64(len(rest))/4 { // each message has at least the 4 bytes of its size
		return nil, refuse(codeBadBody, "MPUB invalid message count %d", count)
	}
	bodies := make([][]byte, 0, count)
	for i := range count {
		if len(rest) < 4 {
			return nil, refuse(codeBadMessage, "MPUB message %d has no size", i)
		}
		size := int64(int32(binary.BigEndian.Uint32(rest)))
		rest = rest[4:]
		if size <= 0 || size > maxSize {
			return nil, refuse(codeBadMessage, "MPUB invalid message(%d) body size %d", i, size)
		}
		if size > int64(len(rest)) {
			return nil, refuse(codeBadMessage, "MPUB message %d is cut off", i)
		}
		// A copy, so that one queued message does not keep the whole body in memory.
		bodies = append(bodies, bytes.Clone(rest[:size]))
		rest = rest[size:]
	}
	if len(rest) > 0 {
		return nil, refuse(codeBadBody, "MPUB has %d bytes after its last message", len(rest))
	}
	return bodies, nil
}

// readMessageSize reads the size of the body of a PUB or DPUB.
func (c *conn) readMessageSize(command string) (int64, error) {
	size, err := c.readSize()
	if err != nil {
		return 0, err
	}
	if size <= 0 {
		return 0, refuse(codeBadMessage, "%s invalid message body size %d", command, size)
	}
	if size > c.broker.opts.MaxMsgSize {
		return 0, refuse(codeBadMessage, "%s message too big %d > %d", command, size, c.broker.opts.MaxMsgSize)
	}
	return size, nil
}

func (c *conn) readSize() (int64, error) {
	var size [4]byte
	if _, err := io.ReadFull(c.in, size[:]); err != nil {
		return 0, err
	}
	return int64(int32(binary.BigEndian.Uint32(size[:]))), nil
}

// mayPublish refuses a client that has not authenticated, and an invalid topic.
func (c *conn) mayPublish(command string, args []string, want int) error {
	if err := c.requireAuth(command); err != nil {
		return err
	}
	return checkTopic(command, args, want)
}

func checkTopic(command string, args []string, want int) error {
	if len(args) < want {
		return refuse(codeInvalid, "%s insufficient number of parameters", command)
	}
	if !validName(args[0]) {
		return refuse(codeBadTopic, "%s topic name %q is not valid", command, args[0])
	}
	return nil
}

// parseMillis parses a delay in milliseconds, limited to the range of time.Duration.
func parseMillis(command, text string) (time.Duration, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, refuse(codeInvalid, "%s could not parse timeout %q", command, text)
	}
	const limit = int64(1<<63-1) / int64(time.Millisecond)
	return time.Duration(min(max(n, -limit), limit)) * time.Millisecond, nil
}
