package queue

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/nsqio/go-nsq"
)

// errGone is the cause when a connection was closed without an error.
var errGone = errors.New("connection closed")

// newConn makes a connection of go-nsq, not yet connected, that logs to log.
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

// signal is an event that happens once.
type signal struct {
	done chan struct{}
	give func()
}

func newSignal() signal {
	done := make(chan struct{})
	return signal{done: done, give: sync.OnceFunc(func() { close(done) })}
}

// ending is what both kinds of connection need to know of their end, and go-nsq's callbacks that
// mean nothing here.
type ending struct {
	lost   signal // the connection broke; messages in hand may still keep it from being closed
	closed signal // go-nsq has let go of it

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

// cause is why the connection ended.
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
	_ = c.Close() // its error says only that it was closed before
	e.lost.give()
}

// OnMessageFinished implements nsq.ConnDelegate.
func (e *ending) OnMessageFinished(*nsq.Conn, *nsq.Message) {}

// OnMessageRequeued implements nsq.ConnDelegate.
func (e *ending) OnMessageRequeued(*nsq.Conn, *nsq.Message) {}

// OnBackoff implements nsq.ConnDelegate. There is none (R21).
func (e *ending) OnBackoff(*nsq.Conn) {}

// OnContinue implements nsq.ConnDelegate.
func (e *ending) OnContinue(*nsq.Conn) {}

// OnResume implements nsq.ConnDelegate.
func (e *ending) OnResume(*nsq.Conn) {}

// OnHeartbeat implements nsq.ConnDelegate. go-nsq answers it.
func (e *ending) OnHeartbeat(*nsq.Conn) {}
