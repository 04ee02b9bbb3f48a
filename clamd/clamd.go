// Package clamd scans streams for viruses by clamd, ClamAV's daemon.
//
// It never reports as clean what clamd did not scan. clamd refuses a stream above its
// StreamMaxLength. Beyond its other limits it reports streams as clean, unless clamd.conf has
// `AlertExceedsMax yes`; [Client.Engine] verifies that. One gap remains: inside archives, clamd
// reports files above its MaxFileSize as clean, whatever its settings. If that matters, unpack
// archives and scan their files one by one. The package does not know what a finding means for a
// deposit.
//
// Source: clamd(8), the commands PING, VERSION and INSTREAM, as of ClamAV 1.4.
package clamd

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/holdfast/holdfast/netfault"
)

const (
	// maxCommands is how many commands a Client sends concurrently; clamd usually has 10 or 12
	// threads.
	maxCommands = 8
	// dialTimeout, sendTimeout and answerTimeout limit the waits for a connection, for a chunk to
	// be accepted, and for the answer. clamd answers after at most 2 minutes (MaxScanTime).
	dialTimeout, sendTimeout, answerTimeout = 10 * time.Second, time.Minute, 5 * time.Minute
	// chunk is how many bytes are sent at a time.
	chunk = 64 << 10
	// maxAnswer is the longest answer, in bytes.
	maxAnswer = 4 << 10
)

// ErrTooLarge says that clamd did not scan a whole stream, since that exceeds one of its limits.
var ErrTooLarge = errors.New("it exceeds clamd's limits")

// ErrSilent says that clamd reports as clean what exceeds its limits.
var ErrSilent = errors.New("it reports as clean what exceeds its limits; set AlertExceedsMax yes in clamd.conf")

// Error says that clamd could not be reached, or gave an unexpected answer. It is a system fault.
type Error struct {
	Addr string
	Err  error
}

// Error says what happened and what to do.
func (e *Error) Error() string {
	return fmt.Sprintf("clamd at %s: %v; check that it runs, or correct HOLDFAST_CLAMD_ADDR", e.Addr, netfault.Word(e.Err))
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Client sends commands to one clamd. It may be used concurrently.
type Client struct {
	network, addr string
	free          chan struct{}
}

// New returns a Client for the clamd at host:port, or at a unix socket, whose path begins with a
// slash. It does not connect.
func New(addr string) *Client {
	c := &Client{network: "tcp", addr: addr, free: make(chan struct{}, maxCommands)}
	if strings.HasPrefix(addr, "/") {
		c.network = "unix"
	}
	return c
}

// Ping returns nil if clamd answers, else an *Error.
func (c *Client) Ping(ctx context.Context) error {
	answer, err := c.command(ctx, "PING", nil)
	if err == nil && answer != "PONG" {
		err = c.unexpected(answer)
	}
	return err
}

// Engine returns the versions of engine and signatures, as "ClamAV 1.4.6/27500/Sat Jan 3 ...". It
// also tests that clamd reports what exceeds its limits, and returns an *Error that wraps ErrSilent
// if it does not.
func (c *Client) Engine(ctx context.Context) (string, error) {
	version, err := c.command(ctx, "VERSION", nil)
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(version, "ClamAV ") {
		return "", c.unexpected(version)
	}
	_, err = c.Scan(ctx, bytes.NewReader(tooDeep()))
	switch {
	case err == nil:
		return "", &Error{Addr: c.addr, Err: ErrSilent}
	case errors.Is(err, ErrTooLarge):
		return version, nil
	}
	return "", err
}

// tooDeep returns a small archive with more nested archives than clamd ever opens (MaxRecursion is
// at most 100).
func tooDeep() []byte {
	data := []byte("x")
	for range 120 {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		_, _ = w.Write(data) // a buffer accepts everything
		_ = w.Close()
		data = out.Bytes()
	}
	return data
}

// Scan sends a stream to clamd and returns the name of the signature found, "" for none. It returns
// ErrTooLarge if clamd did not scan all of it, r's own error if r cannot be read, and else an
// *Error.
func (c *Client) Scan(ctx context.Context, r io.Reader) (found string, err error) {
	answer, err := c.command(ctx, "INSTREAM", r)
	if err != nil {
		return "", err
	}
	said, ok := strings.CutPrefix(answer, "stream: ")
	found, isFound := strings.CutSuffix(said, " FOUND")
	switch {
	case strings.HasPrefix(answer, "INSTREAM size limit exceeded"), isFound && strings.HasPrefix(found, "Heuristics.Limits.Exceeded"):
		return "", ErrTooLarge
	case !ok:
		return "", c.unexpected(answer)
	case said == "OK":
		return "", nil
	case isFound && found != "":
		return found, nil
	}
	return "", c.unexpected(answer)
}

func (c *Client) unexpected(answer string) error {
	return &Error{Addr: c.addr, Err: fmt.Errorf("unexpected answer %.200q", answer)}
}

// command sends a command, with a stream unless that is nil, and returns the answer.
func (c *Client) command(ctx context.Context, name string, stream io.Reader) (string, error) {
	select {
	case c.free <- struct{}{}:
		defer func() { <-c.free }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	conn, err := dialer.DialContext(ctx, c.network, c.addr)
	if err != nil {
		return "", c.connectionError(ctx, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if err := send(conn, []byte("z"+name+"\x00")); err != nil {
		return "", c.connectionError(ctx, err)
	}
	var unsent error
	if stream != nil {
		var unreadable error
		if unreadable, unsent = sendStream(conn, stream); unreadable != nil {
			return "", unreadable
		}
	}
	// clamd answers a too long stream before its end, and disconnects.
	answer, err := receive(conn)
	if err != nil {
		return "", c.connectionError(ctx, errors.Join(unsent, err))
	}
	if unsent != nil && !strings.Contains(answer, "size limit exceeded") {
		return "", c.connectionError(ctx, fmt.Errorf("%w; answer %.200q", unsent, answer))
	}
	return answer, nil
}

// connectionError returns the error of a broken connection: the cause of ctx if that has ended.
func (c *Client) connectionError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &Error{Addr: c.addr, Err: err}
}

// sendStream sends a stream in chunks, each after its length, and an empty one at the end.
func sendStream(conn net.Conn, r io.Reader) (unreadable, unsent error) {
	buf := make([]byte, 4+chunk)
	for {
		n, err := io.ReadFull(r, buf[4:])
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return err, nil
		}
		if n > 0 {
			binary.BigEndian.PutUint32(buf, uint32(n))
			if err := send(conn, buf[:4+n]); err != nil {
				return nil, err
			}
		}
		if err != nil {
			return nil, send(conn, make([]byte, 4))
		}
	}
}

func send(conn net.Conn, data []byte) error {
	if err := conn.SetWriteDeadline(time.Now().Add(sendTimeout)); err != nil {
		return err
	}
	_, err := conn.Write(data)
	return err
}

// receive reads an answer up to its NUL, or to the end of the connection.
func receive(conn net.Conn) (string, error) {
	if err := conn.SetReadDeadline(time.Now().Add(answerTimeout)); err != nil {
		return "", err
	}
	raw, err := io.ReadAll(io.LimitReader(conn, maxAnswer))
	text, _, whole := strings.Cut(string(raw), "\x00")
	switch {
	case whole:
		return text, nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "", errors.New("it does not answer")
	case err != nil:
		return "", err
	}
	return "", fmt.Errorf("it closed the connection: %w", io.ErrUnexpectedEOF)
}
