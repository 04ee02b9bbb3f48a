package queue

import (
	"context"
	"fmt"
	"sync"

	"github.com/nsqio/go-nsq"
)

// pipe is one connection for publishing. It uses go-nsq's Conn, not its Producer: that has a data
// race when reconnecting and does not report reconnections.
type pipe struct {
	ending
	conn *nsq.Conn

	writing chan struct{} // has a token while a command is written: answers come in the order of the commands

	mu      sync.Mutex
	waiting []chan error // receivers of the next answers, in order
	over    bool         // no more answers will come
}

// openPipe connects.
func openPipe(ctx context.Context, connecting func(context.Context, *pipe) *nsq.Conn) (*pipe, error) {
	p := &pipe{ending: newEnding(), writing: make(chan struct{}, 1)}
	p.conn = connecting(ctx, p)
	if _, err := p.conn.Connect(); err != nil {
		_ = p.conn.Close() // the error is that of Connect
		return nil, fmt.Errorf("connect: %w", err)
	}
	return p, nil
}

// request sends a command and returns its answer: nil, the server's nsq.ErrProtocol, why the
// connection broke, or the cause of ctx.
func (p *pipe) request(ctx context.Context, command *nsq.Command) error {
	select {
	case p.writing <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	answer := make(chan error, 1)
	if !p.expect(answer) {
		<-p.writing
		return p.cause()
	}
	err := p.conn.WriteCommand(command) // bounded by go-nsq's WriteTimeout
	<-p.writing
	if err != nil {
		return err // the connection is lost, and every waiting request fails with it
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (p *pipe) expect(answer chan error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return false
	}
	p.waiting = append(p.waiting, answer)
	return true
}

// answer passes an answer to the request that has waited longest. Other answers are dropped.
func (p *pipe) answer(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) > 0 {
		p.waiting[0] <- err
		p.waiting = p.waiting[1:]
	}
}

// wait returns why the connection was closed. It closes the connection when ctx ends.
func (p *pipe) wait(ctx context.Context) error {
	select {
	case <-p.closed.done:
	case <-ctx.Done():
		p.fail(ErrClosed)
		_ = p.conn.Close() // fails only if it was already closed
		<-p.closed.done
	}
	return p.cause()
}

// OnResponse implements nsq.ConnDelegate.
func (p *pipe) OnResponse(*nsq.Conn, []byte) { p.answer(nil) }

// OnError implements nsq.ConnDelegate.
func (p *pipe) OnError(_ *nsq.Conn, data []byte) { p.answer(nsq.ErrProtocol{Reason: string(data)}) }

// OnMessage implements nsq.ConnDelegate. None come without a SUB.
func (p *pipe) OnMessage(*nsq.Conn, *nsq.Message) {}

// OnClose implements nsq.ConnDelegate.
func (p *pipe) OnClose(*nsq.Conn) {
	p.mu.Lock()
	for _, answer := range p.waiting {
		answer <- p.cause()
	}
	p.waiting, p.over = nil, true
	p.mu.Unlock()
	p.closed.fire()
}

var _ nsq.ConnDelegate = (*pipe)(nil)
