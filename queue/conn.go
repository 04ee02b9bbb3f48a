package queue

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/nsqio/go-nsq"
)

// errGone is the cause if a connection was closed without an error.
var errGone = errors.New("connection closed")

// newConn returns a go-nsq connection, not yet connected, that logs to log.
func newConn(
	ctx context.Context, addr string, config *nsq.Config, delegate nsq.ConnDelegate, log *slog.Logger,
) *nsq.Conn {
	conn := nsq.NewConn(addr, config, delegate)
	lowest, logs := clientLogs(ctx, log)
	for level, logger := range logs {
		conn.SetLoggerForLevel(logger, level, "")
	}
	conn.SetLoggerLevel(lowest)
	return conn
}

// signal is an event that happens once. Further calls of fire do nothing.
type signal struct {
	done chan struct{}
	fire func()
}

func newSignal() signal {
	done := make(chan struct{})
	return signal{done: done, fire: sync.OnceFunc(func() { close(done) })}
}

// ending records why and when a connection ended, and implements the go-nsq callbacks that both
// kinds of connection ignore.
type ending struct {
	lost   signal // the connection broke; unanswered messages may still keep go-nsq from closing it
	closed signal // go-nsq has closed it

	errMu sync.Mutex
	err   error // the first error
}

func newEnding() ending { return ending{lost: newSignal(), closed: newSignal()} }

func (e *ending) fail(err error) {
	e.errMu.Lock()
	defer e.errMu.Unlock()
	if e.err == nil {
		e.err = err
	}
}

// cause returns why the connection ended.
func (e *ending) cause() error {
	e.errMu.Lock()
	defer e.errMu.Unlock()
	if e.err == nil {
		return errGone
	}
	return e.err
}

// OnIOError implements nsq.ConnDelegate.
func (e *ending) OnIOError(c *nsq.Conn, err error) {
	e.fail(err)
	_ = c.Close() // fails only if it was already closed
	e.lost.fire()
}

// OnMessageFinished implements nsq.ConnDelegate.
func (e *ending) OnMessageFinished(*nsq.Conn, *nsq.Message) {}

// OnMessageRequeued implements nsq.ConnDelegate.
func (e *ending) OnMessageRequeued(*nsq.Conn, *nsq.Message) {}

// OnBackoff implements nsq.ConnDelegate. Backoff is disabled (R21).
func (e *ending) OnBackoff(*nsq.Conn) {}

// OnContinue implements nsq.ConnDelegate.
func (e *ending) OnContinue(*nsq.Conn) {}

// OnResume implements nsq.ConnDelegate.
func (e *ending) OnResume(*nsq.Conn) {}

// OnHeartbeat implements nsq.ConnDelegate. go-nsq answers heartbeats itself.
func (e *ending) OnHeartbeat(*nsq.Conn) {}
