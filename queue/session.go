package queue

import (
	"context"
	"fmt"
	"strings"

	"github.com/nsqio/go-nsq"
)

// receiveFunc processes a message of a session.
type receiveFunc func(*session, *nsq.Message)

// session is one connection to one nsqd, and receives go-nsq's callbacks.
//
// It uses go-nsq's Conn, not its Consumer. That reconnects only when every unanswered message is
// answered, which here may take hours. It does not report a lost connection. It counts as stopped
// after 30 s although handlers still run.
type session struct {
	ending
	consumer   *Consumer
	receive    receiveFunc
	conn       *nsq.Conn
	maxReady   int
	subscribed signal // SUB was answered

	// Guarded by the consumer's mutex.
	number int // position in the order of subscribing
	ready  int // the RDY count last sent
	inHand int // unanswered deliveries
}

// subscribe connects to an nsqd and joins the channel. From then on messages come.
func (c *Consumer) subscribe(ctx context.Context, addr string, receive receiveFunc) (*session, error) {
	s := &session{ending: newEnding(), consumer: c, receive: receive, subscribed: newSignal()}
	s.conn = newConn(ctx, addr, c.config, s, c.cfg.Log)
	features, err := s.conn.Connect()
	if err != nil {
		_ = s.conn.Close() // the error is that of Connect
		return nil, fmt.Errorf("connect: %w", err)
	}
	s.maxReady = 1
	if features != nil {
		s.maxReady = int(features.MaxRdyCount)
	}
	if s.conn.WriteCommand(nsq.Subscribe(c.cfg.Topic, c.cfg.Channel)) == nil {
		select {
		case <-s.subscribed.done:
			c.join(s)
			return s, nil
		case <-s.closed.done:
		case <-ctx.Done():
			s.fail(context.Cause(ctx))
			s.close()
		}
	}
	<-s.closed.done
	return nil, fmt.Errorf("subscribe to %s: %w", c.cfg.Topic, s.cause())
}

// join adds the session and its share of slots.
func (c *Consumer) join(s *session) {
	c.mu.Lock()
	c.joined++
	s.number = c.joined
	c.sessions[s] = struct{}{}
	c.mu.Unlock()
	c.balance()
}

func (s *session) setReady(n int) {
	_ = s.conn.WriteCommand(nsq.Ready(n)) // an error comes as OnIOError, too
}

// startClose asks the server to send nothing more. The server answers CLOSE_WAIT; after the last
// answer the connection is closed.
func (s *session) startClose() {
	s.consumer.mu.Lock()
	delete(s.consumer.sessions, s)
	s.consumer.mu.Unlock()
	_ = s.conn.WriteCommand(nsq.StartClose()) // an error comes as OnIOError, too
	s.consumer.balance()
}

// close closes the connection, after the last unanswered message is answered.
func (s *session) close() {
	_ = s.conn.Close() // fails only if it was already closed
}

// OnResponse implements nsq.ConnDelegate.
func (s *session) OnResponse(c *nsq.Conn, data []byte) {
	switch string(data) {
	case "OK":
		s.subscribed.fire()
	case "CLOSE_WAIT":
		_ = c.Close() // as in close
	}
}

// OnError implements nsq.ConnDelegate. The codes named here mean that a message had timed out
// before it was answered. After any other error the server closes the connection.
func (s *session) OnError(_ *nsq.Conn, data []byte) {
	err := nsq.ErrProtocol{Reason: string(data)}
	switch code, _, _ := strings.Cut(err.Reason, " "); code {
	case "E_FIN_FAILED", "E_REQ_FAILED", "E_TOUCH_FAILED":
		s.consumer.report.warn(context.Background(), err)
	default:
		s.fail(err)
	}
}

// OnMessage implements nsq.ConnDelegate.
func (s *session) OnMessage(_ *nsq.Conn, m *nsq.Message) { s.receive(s, m) }

// OnClose implements nsq.ConnDelegate.
func (s *session) OnClose(*nsq.Conn) { s.closed.fire() }

var _ nsq.ConnDelegate = (*session)(nil)
