package queue

import (
	"context"
	"fmt"
	"sync"

	"github.com/nsqio/go-nsq"
)

// pipe is one connection over which is published. It stands on go-nsq's Conn and not on its
// Producer, which has a data race in reconnecting and does not say when it does so.
type pipe struct {
	ending
	conn *nsq.Conn

	turn chan struct{} // holds a token while somebody writes: answers come in the order of the commands

	mu      sync.Mutex
	waiting []chan error // for whom the next answers are, the first first
	over    bool         // no more answers come
}

// openPipe connects.
func openPipe(ctx context.Context, connecting func(context.Context, *pipe) *nsq.Conn) (*pipe, error) {
	p := &pipe{ending: newEnding(), turn: make(chan struct{}, 1)}
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
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	answer := make(chan error, 1)
	if !p.expect(answer) {
		<-p.turn
		return p.cause()
	}
	err := p.conn.WriteCommand(command) // bounded by go-nsq's WriteTimeout
	<-p.turn
	if err != nil {
		return err // the connection is lost, and with it the place in the queue
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

// answer is for the one who has waited longest. An answer that nobody waits for has no meaning
// here.
func (p *pipe) answer(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) > 0 {
		p.waiting[0] <- err
		p.waiting = p.waiting[1:]
	}
}

// wait returns why the connection was closed, and closes it when ctx ends.
func (p *pipe) wait(ctx context.Context) error {
	select {
	case <-p.closed.done:
	case <-ctx.Done():
		p.fail(ErrClosed)
		_ = p.conn.Close() // go-nsq's error says only that it was closed before
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
	p.closed.give()
}

var _ nsq.ConnDelegate = (*pipe)(nil)
