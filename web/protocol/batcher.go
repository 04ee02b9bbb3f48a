package protocol

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
)

const (
	// mostBatchBytes bounds the body of a request with several calls, in bytes. The server accepts
	// twice that.
	mostBatchBytes = 8 << 20
	// mostShared is the largest call that shares a request, in bytes. A larger one would delay
	// others.
	mostShared = 64 << 10
)

// batcher sends concurrent calls together. A call that finds no request under way is sent at once.
// Calls that come during a request are sent together in the next one, in their order. There is no
// timer.
type batcher struct {
	send  func(ctx context.Context, calls json.RawMessage) (answers json.RawMessage, err error)
	start func(func(context.Context)) error // runs a function in the background, until its context ends

	mu      sync.Mutex
	sending bool
	waiting []*batchedCall
}

// batchedCall is one call. Its fields belong to the batcher until done is closed.
type batchedCall struct {
	text json.RawMessage
	on   *sharedRequest // nil until it is sent
	done chan struct{}
	out  any // what the answer is decoded into
	err  error
}

// sharedRequest is a request under way. It is cancelled when its last caller gives up.
type sharedRequest struct {
	callers int
	cancel  context.CancelFunc
}

// do sends a call, alone or with others, and decodes its own answer into out. If ctx ends first, do
// returns ctx's cause, and whether the call took effect is unknown; out must not be read.
func (g *batcher) do(ctx context.Context, text json.RawMessage, out any) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	e := &batchedCall{text: text, out: out, done: make(chan struct{})}
	if err := g.join(e); err != nil {
		return err
	}
	select {
	case <-e.done:
		return e.err
	case <-ctx.Done():
	}
	if g.leave(e) {
		return fmt.Errorf("wait for the registry: %w", context.Cause(ctx))
	}
	return e.err
}

// join adds a call to the waiting ones and starts the sending goroutine if none runs.
func (g *batcher) join(e *batchedCall) error {
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
func (g *batcher) leave(e *batchedCall) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-e.done:
		return false
	default:
	}
	if e.on == nil {
		g.waiting = slices.DeleteFunc(g.waiting, func(w *batchedCall) bool { return w == e })
		return true
	}
	e.on.callers--
	if e.on.callers == 0 {
		e.on.cancel()
	}
	return true
}

// run sends requests until no call waits.
func (g *batcher) run(ctx context.Context) {
	for g.sendNext(ctx) {
	}
}

// sendNext sends the waiting calls in one request. It returns false if none waited.
func (g *batcher) sendNext(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	calls := g.takeCalls(cancel)
	if len(calls) == 0 {
		return false
	}
	texts := make([][]byte, len(calls))
	for i, e := range calls {
		texts[i] = e.text
	}
	answers, err := g.send(ctx, slices.Concat([]byte("["), bytes.Join(texts, []byte(",")), []byte("]")))
	if err == nil {
		if err = decodeAnswers(answers, calls); err != nil {
			err = &unansweredError{err}
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, e := range calls {
		e.err = cmp.Or(err, e.err)
		close(e.done)
	}
	return true
}

// decodeAnswers decodes each call's own answer, or sets its error. It returns an error if the text is
// not one answer for each call.
func decodeAnswers(text json.RawMessage, calls []*batchedCall) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if begin, err := d.Token(); err != nil || begin != json.Delim('[') {
		return fmt.Errorf("decode answers: %w", cmp.Or(err, errors.New("they are no list")))
	}
	for i, e := range calls {
		a := answer{Value: e.out}
		err := d.Decode(&a)
		switch {
		case err != nil:
			return fmt.Errorf("decode answer %d of %d: %w", i+1, len(calls), err)
		case a.Problem != nil:
			e.err = unlessAnswered(a.Problem)
		case !a.Done:
			e.err = fmt.Errorf("answer %d of %d is empty", i+1, len(calls))
		}
	}
	if end, err := d.Token(); err != nil || end != json.Delim(']') {
		return fmt.Errorf("decode %d answers: %w", len(calls), cmp.Or(err, errors.New("there are more")))
	}
	return nil
}

// takeCalls takes the calls of the next request. If it returns none, the sending goroutine must
// end.
func (g *batcher) takeCalls(cancel context.CancelFunc) []*batchedCall {
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
