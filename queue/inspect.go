package queue

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/nsqio/go-nsq"
)

// maxFrame bounds the answer to an IDENTIFY.
const maxFrame = 1 << 20

// Server describes an nsqd. NSQ does not report its other limits (max-msg-size, mem-queue-size).
type Server struct {
	Version       string
	MaxMsgTimeout time.Duration // how long a message may be in flight in total, touched or not
	MaxReady      int           // how many messages one connection may have in flight
	AuthRequired  bool          // it requires AUTH
}

// Inspect asks the nsqd at addr (host:port) for its version and limits. It authenticates with
// secret if nsqd requires that. It returns ErrRefused if the server is not an nsqd or does not
// accept the secret, and the network's error if it cannot be reached. (go-nsq does not pass on most
// of this answer.)
func Inspect(ctx context.Context, addr, secret string) (_ Server, err error) {
	dialer := net.Dialer{Timeout: lookupTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return Server{}, err
	}
	defer conn.Close()
	deadline := time.Now().Add(lookupTimeout)
	if sooner, ok := ctx.Deadline(); ok && sooner.Before(deadline) {
		deadline = sooner
	}
	if err := conn.SetDeadline(deadline); err != nil {
		return Server{}, err
	}
	command, err := nsq.Identify(map[string]any{"client_id": userAgent, "user_agent": userAgent, "feature_negotiation": true})
	if err != nil {
		return Server{}, fmt.Errorf("encode IDENTIFY: %w", err)
	}
	var out bytes.Buffer
	out.Write(nsq.MagicV2)
	if _, err := command.WriteTo(&out); err != nil {
		return Server{}, fmt.Errorf("encode IDENTIFY: %w", err)
	}
	if _, err := conn.Write(out.Bytes()); err != nil {
		return Server{}, err
	}
	kind, data, err := readFrame(conn)
	if err != nil {
		return Server{}, fmt.Errorf("read its answer to IDENTIFY: %w", err)
	}
	var answer struct {
		Version       string `json:"version"`
		MaxMsgTimeout int64  `json:"max_msg_timeout"` // milliseconds
		MaxRdyCount   int    `json:"max_rdy_count"`
		AuthRequired  bool   `json:"auth_required"`
	}
	if kind != nsq.FrameTypeResponse || json.Unmarshal(data, &answer) != nil {
		return Server{}, fmt.Errorf("%w: it answers IDENTIFY by %.100q", ErrRefused, data)
	}
	if answer.AuthRequired {
		if err := authenticate(conn, secret); err != nil {
			return Server{}, err
		}
	}
	return Server{
		Version: answer.Version, MaxReady: answer.MaxRdyCount, MaxMsgTimeout: time.Duration(answer.MaxMsgTimeout) * time.Millisecond,
		AuthRequired: answer.AuthRequired,
	}, nil
}

// authenticate sends the secret to an nsqd that requires one.
func authenticate(conn net.Conn, secret string) error {
	if secret == "" {
		return fmt.Errorf("%w: nsqd requires a secret, and none is set", ErrRefused)
	}
	command, err := nsq.Auth(secret)
	if err == nil {
		_, err = command.WriteTo(conn)
	}
	if err != nil {
		return fmt.Errorf("send AUTH: %w", err)
	}
	kind, data, err := readFrame(conn)
	if err != nil {
		return fmt.Errorf("read its answer to AUTH: %w", err)
	}
	if kind != nsq.FrameTypeResponse {
		return fmt.Errorf("%w: it answers AUTH by %.100q", ErrRefused, data)
	}
	return nil
}

// readFrame reads one frame. Unlike go-nsq's reader it limits the length: a web server's "HTTP"
// would be a huge one.
func readFrame(r io.Reader) (kind int32, data []byte, err error) {
	var size uint32
	if err := binary.Read(r, binary.BigEndian, &size); err != nil {
		return 0, nil, err
	}
	if size > maxFrame {
		return 0, nil, fmt.Errorf("%w: the server does not speak NSQ", ErrRefused)
	}
	data = make([]byte, size)
	if _, err := io.ReadFull(r, data); err != nil {
		return 0, nil, err
	}
	return nsq.UnpackResponse(data)
}
