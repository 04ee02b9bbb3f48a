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
	gone      chan struct{} // closed when the socket is
	room      chan struct{} // has a token when a full outbox was written

	// heartbeat is the interval in nanoseconds, 0 for none; IDENTIFY changes it while the writer
	// runs.
	heartbeat   atomic.Int64
	rescheduled chan struct{} // has a token when heartbeat changed

	turn  int64       // counts connections in the order in which they came; the broker's lock guards it
	known atomic.Bool // it has said the secret

	// Of the reading goroutine alone.
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

// stranger says whether the client has yet to say the secret that the broker asks for.
func (c *conn) stranger() bool { return c.broker.opts.AuthSecret != "" && !c.known.Load() }

// close ends the connection at once. It may be called from anywhere, several times.
func (c *conn) close() {
	c.closeOnce.Do(func() {
		close(c.gone)
		_ = c.net.Close() // nothing to save: what was not finished is delivered again
	})
}

// run serves the connection until either side closes it, and returns when both goroutines have
// ended and what the client held is back in its channel.
func (c *conn) run() {
	defer c.close()
	if c.stranger() {
		late := time.AfterFunc(c.broker.opts.AuthTime, func() {
			if c.stranger() {
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

// linger lets the client read why it was refused: a socket that is closed with bytes unread (the
// body of the refused command) is reset, and the answer is lost with it.
func (c *conn) linger() {
	if tcp, ok := c.net.(*net.TCPConn); ok && tcp.CloseWrite() == nil {
		_ = c.net.SetReadDeadline(time.Now().Add(lingerTime))
		_, _ = io.Copy(io.Discard, io.LimitReader(c.net, c.broker.opts.MaxBodySize)) // ends as it may
	}
}

// read executes commands until the connection ends or a command is refused for good.
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

// waitForRoom holds back a client that sends commands and does not read the answers.
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

// readLine is the next command without its end of line. It is valid until the next read.
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

// setReadDeadline gives the client two heartbeats' time for its next command.
func (c *conn) setReadDeadline() {
	deadline := time.Time{}
	if beat := time.Duration(c.heartbeat.Load()); beat > 0 {
		deadline = time.Now().Add(2 * beat)
	}
	_ = c.net.SetReadDeadline(deadline) // fails only on a closed socket, which the read then reports
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
				c.close() // the reader must not go on without a writer
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

// beatInterval is the time between two heartbeats, or between two looks whether there are any.
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
	_ = c.net.SetWriteDeadline(time.Now().Add(c.broker.opts.MaxHeartbeatInterval)) // as with reading
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
