package sqlstore

import (
	"context"
	"errors"
	"fmt"
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

// write is one caller's transaction on its way into a group.
type write struct {
	ctx  context.Context
	fn   func(*tx) error
	err  error
	done chan struct{}
}

// givenUp is why its caller does not want it any more, nil while they do.
func (w *write) givenUp() error { return context.Cause(w.ctx) }

// write runs fn in a transaction and returns when it is committed, or fn's error when it was rolled back.
func (s *Store) write(ctx context.Context, fn func(*tx) error) error {
	w := &write{ctx: ctx, fn: fn, done: make(chan struct{})}
	select {
	case s.writes <- w:
	case <-ctx.Done():
		return context.Cause(ctx)
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
	ws, err := s.together(ctx, t, []*write{first}, s.writes, (*tx).bare)
	if errors.Is(err, errOneFailed) {
		_, err = s.together(ctx, t, ws, nil, (*tx).savepoint)
	}
	if err != nil {
		for _, w := range ws {
			if len(ws) > 1 && !errors.Is(err, registry.ErrUnavailable) {
				_, err = s.together(ctx, t, []*write{w}, nil, (*tx).bare)
			}
			if err != nil && !errors.Is(err, errOneFailed) {
				w.err = fmt.Errorf("commit to the registry: %w", err)
			}
		}
	}
	for _, w := range ws {
		close(w.done)
	}
}

// errOneFailed says that a write failed, which says why itself, and that nothing was committed.
var errOneFailed = errors.New("a write of the group failed")

// together runs ws, and what more arrives meanwhile, in one transaction, and returns them all. An error means that
// nothing was committed, or that nobody knows; a write's own error is in the write.
func (s *Store) together(ctx context.Context, t *tx, ws []*write, more <-chan *write, run func(*tx, *write) error) ([]*write, error) {
	begun := time.Now()
	if err := t.begin(ctx); err != nil {
		return ws, err
	}
	for i := 0; i < len(ws); i++ {
		if gone := ws[i].givenUp(); gone != nil {
			ws[i].err = gone
		} else if err := run(t, ws[i]); err != nil {
			return ws, finished(ws, t.undo(err))
		}
		if len(ws) >= groupWrites || time.Since(begun) > groupTime {
			continue // no more are taken; those that were are all run
		}
		select {
		case w := <-more:
			ws = append(ws, w)
		default:
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

// finished is nil for a single write that failed by itself: it was undone, and there is nobody to run again.
func finished(ws []*write, err error) error {
	if len(ws) == 1 && errors.Is(err, errOneFailed) {
		return nil
	}
	return err
}
