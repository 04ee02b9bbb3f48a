package protocol

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/holdfast/holdfast/web/wire"
)

// mostBatchBytes bounds the body of a request with several calls, in bytes. The server accepts
// twice that.
const mostBatchBytes = 8 << 20

// batcher sends concurrent calls together. A call that finds no request under way is sent at once.
// Calls that come during a request are sent together in the next one, in their order. There is no
// timer.
type batcher[I, O any] struct {
	send  func(context.Context, []json.RawMessage) ([]answer[O], error)
	start func(func(context.Context)) error // runs a function in the background, until its context ends

	mu      sync.Mutex
	sending bool
	waiting []*batchedCall[O]
}

// batchedCall is one call. Its fields belong to the batcher until done is closed.
type batchedCall[O any] struct {
	text json.RawMessage
	on   *sharedRequest // nil until it is sent
	done chan struct{}
	out  O
	err  error
}

// newBatcher returns a batcher that sends with send, in goroutines that start starts.
func newBatcher[I, O any](start func(func(context.Context)) error, send func(context.Context, []json.RawMessage) ([]answer[O], error)) *batcher[I, O] {
	return &batcher[I, O]{start: start, send: send}
}

// sharedRequest is a request under way. It is cancelled when its last caller gives up.
type sharedRequest struct {
	callers int
	cancel  context.CancelFunc
}

// do sends in, alone or with other calls, and returns its own answer. If ctx ends first, do returns
// ctx's cause, and whether the call took effect is unknown.
func (g *batcher[I, O]) do(ctx context.Context, in I) (O, error) {
	var zero O
	if ctx.Err() != nil {
		return zero, context.Cause(ctx)
	}
	text, err := wire.Encode(in)
	if err != nil {
		return zero, err
	}
	e := &batchedCall[O]{text: text, done: make(chan struct{})}
	if err := g.join(e); err != nil {
		return zero, err
	}
	select {
	case <-e.done:
		return e.out, e.err
	case <-ctx.Done():
	}
	if g.leave(e) {
		return zero, fmt.Errorf("wait for the registry: %w", context.Cause(ctx))
	}
	return e.out, e.err
}

// join adds a call to the waiting ones and starts the sending goroutine if none runs.
func (g *batcher[I, O]) join(e *batchedCall[O]) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.sending {
		if err := g.start(g.run); err != nil {
			return err
		}
		g.sending = true
	}
	g.waiting = append(g.waiting, e)
	return nil
}

// leave withdraws a call whose caller has given up. It returns false if the answer has already
// come.
func (g *batcher[I, O]) leave(e *batchedCall[O]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-e.done:
		return false
	default:
	}
	if e.on == nil {
		g.waiting = slices.DeleteFunc(g.waiting, func(w *batchedCall[O]) bool { return w == e })
		return true
	}
	e.on.callers--
	if e.on.callers == 0 {
		e.on.cancel()
	}
	return true
}

// run sends requests until no call waits.
func (g *batcher[I, O]) run(ctx context.Context) {
	for g.sendNext(ctx) {
	}
}

// sendNext sends the waiting calls in one request. It returns false if none waited.
func (g *batcher[I, O]) sendNext(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	calls := g.takeCalls(cancel)
	if len(calls) == 0 {
		return false
	}
	texts := make([]json.RawMessage, len(calls))
	for i, e := range calls {
		texts[i] = e.text
	}
	answers, err := g.send(ctx, texts)
	if err == nil && len(answers) != len(calls) {
		err = fmt.Errorf("%d answers to %d calls", len(answers), len(calls))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, e := range calls {
		switch {
		case err != nil:
			e.err = err
		case answers[i].Problem != nil:
			e.err = answers[i].Problem
		case answers[i].Value == nil:
			e.err = fmt.Errorf("answer %d of %d is empty", i+1, len(answers))
		default:
			e.out = *answers[i].Value
		}
		close(e.done)
	}
	return true
}

// takeCalls takes the calls of the next request. If it returns none, the sending goroutine must
// end.
func (g *batcher[I, O]) takeCalls(cancel context.CancelFunc) []*batchedCall[O] {
	g.mu.Lock()
	defer g.mu.Unlock()
	n, size := 0, 0
	for n < min(len(g.waiting), mostBatched) && (n == 0 || size+len(g.waiting[n].text) <= mostBatchBytes) {
		size += len(g.waiting[n].text)
		n++
	}
	g.sending = n > 0
	calls := slices.Clone(g.waiting[:n])
	g.waiting = slices.Delete(g.waiting, 0, n)
	f := &sharedRequest{callers: n, cancel: cancel}
	for _, e := range calls {
		e.on = f
	}
	return calls
}
