package protocol

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/holdfast/holdfast/web/wire"
)

// mostGathered bounds the body of a request that brings several calls, in bytes; the server takes
// twice that.
const mostGathered = 8 << 20

// gathering sends calls together that come while an earlier request is under way. There is no
// timer: a call that finds none under way goes at once. Calls keep their order.
type gathering[I, O any] struct {
	send  func(context.Context, []json.RawMessage) ([]answer[O], error)
	start func(func(context.Context)) error // in the background, until the context ends

	mu      sync.Mutex
	sending bool
	waiting []*gathered[O]
}

// gathered is one call. Its fields are its gathering's until done is closed.
type gathered[O any] struct {
	text json.RawMessage
	on   *flight // nil while it waits
	done chan struct{}
	out  O
	err  error
}

// gather returns a gathering that sends by send, in the background that start starts.
func gather[I, O any](start func(func(context.Context)) error, send func(context.Context, []json.RawMessage) ([]answer[O], error)) *gathering[I, O] {
	return &gathering[I, O]{start: start, send: send}
}

// flight is a request under way, for as long as anybody waits for it.
type flight struct {
	callers int
	cancel  context.CancelFunc
}

// do sends in, with others or alone, and returns its own answer. When ctx ends first it returns
// ctx's cause: then it is not known whether the call was carried out.
func (g *gathering[I, O]) do(ctx context.Context, in I) (O, error) {
	var zero O
	if ctx.Err() != nil {
		return zero, context.Cause(ctx)
	}
	text, err := wire.Encode(in)
	if err != nil {
		return zero, err
	}
	e := &gathered[O]{text: text, done: make(chan struct{})}
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

// join lines a call up, and sees to it that somebody sends.
func (g *gathering[I, O]) join(e *gathered[O]) error {
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

// leave takes a call out whose caller waits no more; false when its answer is there.
func (g *gathering[I, O]) leave(e *gathered[O]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-e.done:
		return false
	default:
	}
	if e.on == nil {
		g.waiting = slices.DeleteFunc(g.waiting, func(w *gathered[O]) bool { return w == e })
		return true
	}
	e.on.callers--
	if e.on.callers == 0 {
		e.on.cancel()
	}
	return true
}

// run sends until nobody waits.
func (g *gathering[I, O]) run(ctx context.Context) {
	for g.fly(ctx) {
	}
}

// fly sends what waits in one request; false when nothing did.
func (g *gathering[I, O]) fly(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	calls := g.board(cancel)
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
			e.err = fmt.Errorf("answer %d of %d says nothing", i+1, len(answers))
		default:
			e.out = *answers[i].Value
		}
		close(e.done)
	}
	return true
}

// board takes what goes in one request. With none, nobody sends any more.
func (g *gathering[I, O]) board(cancel context.CancelFunc) []*gathered[O] {
	g.mu.Lock()
	defer g.mu.Unlock()
	n, size := 0, 0
	for n < min(len(g.waiting), mostTogether) && (n == 0 || size+len(g.waiting[n].text) <= mostGathered) {
		size += len(g.waiting[n].text)
		n++
	}
	g.sending = n > 0
	calls := slices.Clone(g.waiting[:n])
	g.waiting = slices.Delete(g.waiting, 0, n)
	f := &flight{callers: n, cancel: cancel}
	for _, e := range calls {
		e.on = f
	}
	return calls
}
