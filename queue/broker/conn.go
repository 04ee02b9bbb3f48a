package broker

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// The states of a connection. IDENTIFY and SUB are only allowed in the first.
type state int

const (
	stateInit state = iota
	stateSubscribed
	stateClosing
)

var (
	magicV2       = []byte("  V2")
	errNotReading = errors.New("client does not read what it is sent")
)

// conn is one client's connection: one goroutine reads commands and executes them, another writes
// the outbox and the heartbeats.
type conn struct {
	broker *Broker
	net    net.Conn
	in     *bufio.Reader
	out    *outbox
	client *client

	closeOnce sync.Once
	gone      chan struct{} // closed with the socket
	room      chan struct{} // has a token after a full outbox was written

	// heartbeat is the interval in nanoseconds, 0 for none. IDENTIFY changes it while the writer
	// runs.
	heartbeat   atomic.Int64
	rescheduled chan struct{} // has a token after heartbeat changed

	number        int64       // position in the order of connecting; guarded by the broker's mutex
	authenticated atomic.Bool // AUTH succeeded

	// Used by the reading goroutine only.
	state state
}

func newConn(b *Broker, nc net.Conn) *conn {
	c := &conn{
		broker:      b,
		net:         nc,
		in:          bufio.NewReader(nc),
		out:         newOutbox(),
		gone:        make(chan struct{}),
		room:        make(chan struct{}, 1),
		rescheduled: make(chan struct{}, 1),
	}
	c.heartbeat.Store(int64(b.opts.HeartbeatInterval))
	c.client = &client{out: c.out, msgTimeout: b.opts.MsgTimeout, remote: nc.RemoteAddr().String()}
	return c
}

// unauthenticated reports whether the broker requires a secret that the client has not sent yet.
func (c *conn) unauthenticated() bool {
	return c.broker.opts.AuthSecret != "" && !c.authenticated.Load()
}

// close ends the connection at once. Repeated and concurrent calls are safe.
func (c *conn) close() {
	c.closeOnce.Do(func() {
		close(c.gone)
		_ = c.net.Close() // nothing is lost: unfinished messages are delivered again
	})
}

// run serves the connection until either side closes it. It returns when both goroutines have ended
// and the client's messages are back in its channel.
func (c *conn) run() {
	defer c.close()
	if c.unauthenticated() {
		late := time.AfterFunc(c.broker.opts.AuthTime, func() {
			if c.unauthenticated() {
				c.close()
			}
		})
		defer late.Stop()
	}
	var writer sync.WaitGroup
	writer.Go(c.write)
	err := c.read()
	c.broker.hub.leave(c.client)
	c.out.close() // the last answer still goes out
	writer.Wait()
	if refused := (*commandError)(nil); errors.As(err, &refused) {
		c.linger()
	}
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
		c.broker.log.Debug("close NSQ client", "client", c.client.remote, "err", err)
	}
}

// linger lets the client read why it was refused. Closing a socket with unread bytes (the body of
// the refused command) resets it, and the answer would be lost.
func (c *conn) linger() {
	if tcp, ok := c.net.(*net.TCPConn); ok && tcp.CloseWrite() == nil {
		_ = c.net.SetReadDeadline(time.Now().Add(lingerTime))
		_, _ = io.Copy(io.Discard, io.LimitReader(c.net, c.broker.opts.MaxBodySize)) // any end will do
	}
}

// read executes commands until the connection ends or a command fails for good.
func (c *conn) read() error {
	if err := c.readMagic(); err != nil {
		return err
	}
	for {
		if err := c.waitForRoom(); err != nil {
			return err
		}
		line, err := c.readLine()
		if err != nil {
			return err
		}
		answer, err := c.execute(line)
		if refused := (*commandError)(nil); errors.As(err, &refused) {
			c.out.frame(frameError, refused.Error())
			if refused.fatal {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if answer != "" {
			c.out.frame(frameResponse, answer)
		}
	}
}

func (c *conn) readMagic() error {
	c.setReadDeadline()
	var magic [4]byte
	if _, err := io.ReadFull(c.in, magic[:]); err != nil {
		return err
	}
	if !bytes.Equal(magic[:], magicV2) {
		c.out.frame(frameError, codeBadProtocol)
		return refuse(codeBadProtocol, "protocol magic %q is not known", magic)
	}
	return nil
}

// waitForRoom blocks a client that sends commands without reading the answers.
func (c *conn) waitForRoom() error {
	for c.out.full() {
		select {
		case <-c.room:
		case <-c.gone:
			return errNotReading
		}
	}
	return nil
}

// readLine returns the next command without its end of line. It is valid until the next read.
func (c *conn) readLine() ([]byte, error) {
	c.setReadDeadline()
	line, err := c.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		refused := refuse(codeInvalid, "command is too long")
		c.out.frame(frameError, refused.Error())
		return nil, refused
	}
	if err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(line[:len(line)-1], []byte("\r")), nil
}

// setReadDeadline gives the client two heartbeat intervals for its next command.
func (c *conn) setReadDeadline() {
	deadline := time.Time{}
	if beat := time.Duration(c.heartbeat.Load()); beat > 0 {
		deadline = time.Now().Add(2 * beat)
	}
	_ = c.net.SetReadDeadline(deadline) // fails only on a closed socket, and then the read fails too
}

// write sends the outbox and the heartbeats until the outbox is closed and empty, or the connection
// breaks.
func (c *conn) write() {
	beat := time.NewTicker(c.beatInterval())
	defer beat.Stop()
	var buf []byte
	for {
		select {
		case <-c.out.wake:
			var closed bool
			buf, closed = c.out.take(buf)
			if !c.send(buf) {
				c.close() // the reader must not continue without a writer
				return
			}
			if closed {
				return
			}
			if cap(buf) > maxOutbox {
				buf = nil
			}
		case <-beat.C:
			if c.heartbeat.Load() > 0 {
				c.out.frame(frameResponse, responseHeartbeat)
			}
		case <-c.rescheduled:
			beat.Reset(c.beatInterval())
		case <-c.gone:
			return
		}
	}
}

// beatInterval returns the heartbeat interval, or a long one if there are no heartbeats.
func (c *conn) beatInterval() time.Duration {
	if beat := time.Duration(c.heartbeat.Load()); beat > 0 {
		return beat
	}
	return time.Hour
}

func (c *conn) send(buf []byte) bool {
	if len(buf) == 0 {
		return true
	}
	_ = c.net.SetWriteDeadline(time.Now().Add(c.broker.opts.MaxHeartbeatInterval)) // as in setReadDeadline
	if _, err := c.net.Write(buf); err != nil {
		return false
	}
	if c.out.written(len(buf)) {
		select {
		case c.room <- struct{}{}:
		default:
		}
		c.broker.hub.drained(c.client)
	}
	return true
}

func (c *conn) setHeartbeat(d time.Duration) {
	c.heartbeat.Store(int64(d))
	select {
	case c.rescheduled <- struct{}{}:
	default:
	}
}
