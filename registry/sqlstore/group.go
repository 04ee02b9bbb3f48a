package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// Bounds of one group of writes (R25).
const (
	groupWrites = 500
	groupTime   = 50 * time.Millisecond
)

// errClosed answers writes after Close.
var errClosed = errors.New("registry is closed")

// atOnce is how many writes are taken into a group before it is looked at the time again.
const atOnce = 128

// kind is what a write is, in the order in which a group runs its writes: no lease shall run out behind other work (R25), and
// settles come before claims, whose items and locks they may be about to free (R11).
type kind int

const (
	renews kind = iota
	settles
	claims
	others
)

// joins says that writes of the kind are run together, with statements for all of them.
func (k kind) joins() bool { return k == settles || k == claims }

// write is one caller's transaction on its way into a group.
type write struct {
	ctx    context.Context
	kind   kind
	fn     func(*tx) error // of renews and others; it may run twice
	settle *settling       // of settles
	claim  *claiming       // of claims
	err    error
	done   chan struct{}
}

// givenUp is why its caller does not want it any more, nil while they do.
func (w *write) givenUp() error { return context.Cause(w.ctx) }

// together runs writes of one kind, one when they do not join. Its error is one that nobody knows whose it is, and undoes
// them; what it notes in a write is that write's own, which has changed nothing.
func together(t *tx, ws []*write) error {
	t.audit = ""
	for _, w := range ws {
		w.err = nil
	}
	switch ws[0].kind {
	case settles:
		return t.settleAll(ws)
	case claims:
		return t.claimAll(ws)
	case renews, others:
	}
	return ws[0].fn(t)
}

// write runs fn in a transaction and returns when it is committed, or fn's error when it was rolled back.
func (s *Store) write(ctx context.Context, fn func(*tx) error) error {
	return s.queue(&write{ctx: ctx, kind: others, fn: fn})
}

// queue hands a write to the writer and returns its outcome.
func (s *Store) queue(w *write) error {
	w.done = make(chan struct{})
	select {
	case s.writes <- w:
	case <-w.ctx.Done():
		return w.givenUp()
	case <-s.closed:
		return errClosed
	}
	// Once the writer has it, its outcome is waited for: giving up here would leave the caller not knowing.
	<-w.done
	if w.err != nil && s.dialect.unfit(w.err) {
		return unfit(w.err)
	}
	return w.err
}

// unfit is the error of an argument that the database cannot hold, which it would refuse again.
func unfit(err error) error { return fmt.Errorf("%w: %w", registry.ErrInvalid, err) }

// writer owns the one writing connection until Close.
func (s *Store) writer(ctx context.Context) {
	defer close(s.done)
	t := &tx{store: s}
	defer func() {
		if err := t.close(); err != nil {
			s.log.WarnContext(ctx, "registry connection did not close cleanly", "err", err)
		}
	}()
	for {
		select {
		case w := <-s.writes:
			s.group(ctx, t, w)
		case <-s.closed:
			return
		}
	}
}

// group commits first and whatever else has arrived in one transaction. When one of several fails, none was committed, and
// they run again with a savepoint each, which undoes the culprit alone; when the transaction fails as a whole, each
// gets one of its own (R10). A database that does not answer is no write's fault, and all of them are told.
func (s *Store) group(ctx context.Context, t *tx, first *write) {
	ws, err := s.transact(ctx, t, []*write{first}, s.writes, (*tx).bare)
	if errors.Is(err, errOneFailed) {
		_, err = s.transact(ctx, t, ws, nil, (*tx).savepoints)
	}
	if err != nil {
		for _, w := range ws {
			if len(ws) > 1 && !errors.Is(err, registry.ErrUnavailable) {
				_, err = s.transact(ctx, t, []*write{w}, nil, (*tx).bare)
			}
			if err != nil && !errors.Is(err, errOneFailed) {
				w.err = fmt.Errorf("commit to the registry: %w", err)
			}
		}
	}
	for _, w := range ws {
		if w.err != nil && s.dialect.full(w.err) {
			w.err = unavailable(w.err)
		}
		close(w.done)
	}
}

// errOneFailed says that a write failed, which says why itself, and that nothing was committed.
var errOneFailed = errors.New("a write of the group failed")

// transact runs ws, and what more arrives meanwhile, in one transaction, and returns them all. An error means that
// nothing was committed, or that nobody knows; a write's own error is in the write.
func (s *Store) transact(ctx context.Context, t *tx, ws []*write, more <-chan *write, run func(*tx, []*write) error) ([]*write, error) {
	begun := time.Now()
	if err := t.begin(ctx); err != nil {
		return ws, err
	}
	ws = waiting(ws, more, atOnce)
	for ran := 0; ran < len(ws); {
		next := wanted(ws[ran:])
		ran = len(ws)
		if err := run(t, next); err != nil {
			return ws, finished(ws, t.undo(err))
		}
		if time.Since(begun) <= groupTime { // else no more are taken
			ws = waiting(ws, more, min(groupWrites, ran+atOnce))
		}
	}
	if err := t.commit(ctx); err != nil {
		return ws, err
	}
	if t.wake {
		s.wake()
	}
	s.tell(t)
	return ws, nil
}

// waiting adds what stands at the writer's door, until there are enough.
func waiting(ws []*write, door <-chan *write, enough int) []*write {
	for len(ws) < enough {
		select {
		case w := <-door:
			ws = append(ws, w)
		default:
			return ws
		}
	}
	return ws
}

// wanted are those writes whose callers have not given up, in the order in which they are run.
func wanted(ws []*write) []*write {
	var out []*write
	for _, w := range ws {
		if w.err = w.givenUp(); w.err == nil {
			out = append(out, w)
		}
	}
	slices.SortStableFunc(out, func(a, b *write) int { return cmp.Compare(a.kind, b.kind) })
	return out
}

// finished is nil for a single write that failed by itself: it was undone, and there is nobody to run again.
func finished(ws []*write, err error) error {
	if len(ws) == 1 && errors.Is(err, errOneFailed) {
		return nil
	}
	return err
}
