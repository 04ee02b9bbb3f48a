// Package clamd sends streams to clamd, ClamAV's daemon, to be scanned for viruses.
//
// It never calls clean what clamd did not scan. clamd refuses a stream above its StreamMaxLength.
// Beyond its other limits it passes streams as clean, unless clamd.conf has `AlertExceedsMax yes`,
// which [Client.Engine] verifies. One gap is clamd's own: it passes files in an archive that are
// larger than its MaxFileSize, whatever is set. Where that matters, unpack archives and scan their
// files one by one.
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
)

const (
	// slots is how many commands a Client has under way at a time; clamd's own threads are 10 or 12
	// as a rule.
	slots = 8
	// dialing, sending and answering bound the waits for a connection, for a chunk to be taken, and
	// for the answer, which clamd gives after 2 minutes at the latest (MaxScanTime).
	dialing, sending, answering = 10 * time.Second, time.Minute, 5 * time.Minute
	// chunk is how many bytes are sent at a time.
	chunk = 64 << 10
	// longest is how long an answer may be.
	longest = 4 << 10
)

// ErrTooLarge says that clamd did not look at all of a stream, since it goes past one of its
// limits.
var ErrTooLarge = errors.New("it goes past clamd's limits")

// ErrSilent says that clamd passes as clean what goes past its limits.
var ErrSilent = errors.New("it passes unseen what goes past its limits; set AlertExceedsMax yes in clamd.conf")

// Error says that clamd could not be asked, or answered something else. It is the system's fault.
type Error struct {
	Addr string
	Err  error
}

// Error says what to do.
func (e *Error) Error() string {
	return fmt.Sprintf("clamd at %s: %v; see that it runs, or correct HOLDFAST_CLAMD_ADDR", e.Addr, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Client asks one clamd. It may be used concurrently.
type Client struct {
	network, addr string
	free          chan struct{}
}

// New returns a Client of the clamd at host:port, or at a unix socket, whose path begins with a
// slash. It asks nothing.
func New(addr string) *Client {
	c := &Client{network: "tcp", addr: addr, free: make(chan struct{}, slots)}
	if strings.HasPrefix(addr, "/") {
		c.network = "unix"
	}
	return c
}

// Ping returns nil when clamd answers, else an *Error.
func (c *Client) Ping(ctx context.Context) error {
	answer, err := c.command(ctx, "PING", nil)
	if err == nil && answer != "PONG" {
		err = c.unexpected(answer)
	}
	return err
}

// Engine returns the versions of engine and signatures, as "ClamAV 1.4.6/27500/Sat Jan 3 ...", once
// clamd has shown that it tells what goes past its limits; an *Error that wraps ErrSilent when it
// does not.
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

// tooDeep is a small archive of more archives within each other than clamd ever opens (MaxRecursion
// is 100 at most).
func tooDeep() []byte {
	data := []byte("x")
	for range 120 {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		_, _ = w.Write(data) // a buffer takes everything
		_ = w.Close()
		data = out.Bytes()
	}
	return data
}

// Scan sends a stream to clamd and returns the name of the signature that it found, "" for none.
// ErrTooLarge when clamd did not look at all of it, r's own error when r cannot be read, else an
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
	return &Error{Addr: c.addr, Err: fmt.Errorf("it answers %.200q", answer)}
}

// command sends a command, with a stream unless that is nil, and returns the answer.
func (c *Client) command(ctx context.Context, name string, stream io.Reader) (string, error) {
	select {
	case c.free <- struct{}{}:
		defer func() { <-c.free }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	dialer := net.Dialer{Timeout: dialing}
	conn, err := dialer.DialContext(ctx, c.network, c.addr)
	if err != nil {
		return "", c.failed(ctx, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	if err := send(conn, []byte("z"+name+"\x00")); err != nil {
		return "", c.failed(ctx, err)
	}
	var unsent error
	if stream != nil {
		var unreadable error
		if unreadable, unsent = pour(conn, stream); unreadable != nil {
			return "", unreadable
		}
	}
	// clamd answers a stream that is too long before its end, and hangs up.
	answer, err := receive(conn)
	if err != nil {
		return "", c.failed(ctx, errors.Join(unsent, err))
	}
	if unsent != nil && !strings.Contains(answer, "size limit exceeded") {
		return "", c.failed(ctx, fmt.Errorf("%w, and it answers %.200q", unsent, answer))
	}
	return answer, nil
}

// failed is what an error of the connection comes to.
func (c *Client) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &Error{Addr: c.addr, Err: err}
}

// pour sends a stream in chunks, each with its length before it, and an empty one at the end.
func pour(conn net.Conn, r io.Reader) (unreadable, unsent error) {
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
	if err := conn.SetWriteDeadline(time.Now().Add(sending)); err != nil {
		return err
	}
	_, err := conn.Write(data)
	return err
}

// receive reads an answer up to its NUL, or to clamd's hanging up.
func receive(conn net.Conn) (string, error) {
	if err := conn.SetReadDeadline(time.Now().Add(answering)); err != nil {
		return "", err
	}
	raw, err := io.ReadAll(io.LimitReader(conn, longest))
	text, _, whole := strings.Cut(string(raw), "\x00")
	switch {
	case whole:
		return text, nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "", errors.New("it does not answer")
	case err != nil:
		return "", err
	}
	return "", fmt.Errorf("it hangs up: %w", io.ErrUnexpectedEOF)
}
