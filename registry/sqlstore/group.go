package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
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
	return w.err
}

// writer owns the one writing connection until Close.
func (s *Store) writer(ctx context.Context, conn *sql.Conn) {
	defer close(s.done)
	t := &tx{ctx: ctx, conn: conn, stmts: map[string]stmt{}, fault: func(q string) error {
		if s.fault != nil {
			return s.fault(q)
		}
		return nil
	}}
	defer func() {
		if err := t.close(); err != nil {
			s.log.WarnContext(ctx, "registry connection did not close cleanly", "err", err)
		}
	}()
	for {
		select {
		case w := <-s.writes:
			s.group(t, w)
		case <-s.closed:
			return
		}
	}
}

// group commits first and whatever else has arrived, each in a savepoint, in one transaction. When that fails as a
// whole, each write gets a transaction of its own, so that only the culprit fails (R10): nothing of it was committed.
func (s *Store) group(t *tx, first *write) {
	ws, err := s.together(t, []*write{first}, s.writes)
	if err != nil {
		for _, w := range ws {
			if len(ws) > 1 {
				_, err = s.together(t, []*write{w}, nil)
			}
			if err != nil {
				w.err = fmt.Errorf("commit to the registry: %w", err)
			}
		}
	}
	for _, w := range ws {
		close(w.done)
	}
}

// together runs ws, and what more arrives meanwhile, in one transaction, and returns them all. An error means that
// nothing was committed; a write's own error is in the write.
func (s *Store) together(t *tx, ws []*write, more <-chan *write) ([]*write, error) {
	begun := time.Now()
	if err := t.begin(s.now()); err != nil {
		return ws, err
	}
	for i := 0; i < len(ws); i++ {
		if gone := context.Cause(ws[i].ctx); gone != nil {
			ws[i].err = gone
		} else if err := t.savepoint(ws[i]); err != nil {
			return ws, errors.Join(err, t.rollback())
		}
		if len(ws) == groupWrites || time.Since(begun) > groupTime {
			break
		}
		select {
		case w := <-more:
			ws = append(ws, w)
		default:
		}
	}
	if err := t.commit(); err != nil {
		return ws, errors.Join(err, t.rollback())
	}
	if t.wake {
		s.wake()
	}
	s.news.ring()
	return ws, nil
}
