package sqldb

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
	GroupWrites = 500
	groupTime   = 50 * time.Millisecond
)

// ErrClosed is the error of writes after Close.
var ErrClosed = errors.New("registry is closed")

// atOnce is how many writes join a group before the group's time is checked again.
const atOnce = 128

// Kind is a kind of writes, which decides how they run in a group.
type Kind struct {
	// Order is the kind's place in a group. Kinds that others depend on come first.
	Order int
	// Together runs several writes of the kind with common statements. If it returns an error, all
	// of them are undone and run again one by one. An error that it sets in a write is that write's
	// own, which must have changed nothing. If Together is nil, each write runs by itself.
	Together func(t *Tx, ws []*Write) error
}

// Write is one caller's write on its way into a group.
type Write struct {
	Ctx  context.Context
	Kind *Kind
	Do   func(*Tx) error // for kinds without Together; it may run twice
	Of   any             // argument for Together
	Err  error
	done chan struct{}
}

// givenUp returns why the caller no longer wants the write, or nil.
func (w *Write) givenUp() error { return context.Cause(w.Ctx) }

// Queue hands a write to the writer. It returns the outcome after the write is committed or rolled
// back.
func (d *DB) Queue(w *Write) error {
	w.done = make(chan struct{})
	select {
	case d.writes <- w:
	case <-w.Ctx.Done():
		return w.givenUp()
	case <-d.closed:
		return ErrClosed
	}
	// The writer has the write, so wait for its outcome. Returning early would leave the caller
	// without knowing it.
	<-w.done
	if w.Err != nil && d.Dialect.unstorable(w.Err) {
		return unstorable(w.Err)
	}
	return w.Err
}

// unstorable marks the error of an argument that the database can never store.
func unstorable(err error) error { return fmt.Errorf("%w: %w", registry.ErrInvalid, err) }

// writer owns the only writing connection until Close.
func (d *DB) writer(ctx context.Context) {
	defer close(d.done)
	t := &Tx{db: d}
	defer func() {
		if err := t.close(); err != nil {
			d.Log.WarnContext(ctx, "registry connection did not close cleanly", "err", err)
		}
	}()
	for {
		select {
		case w := <-d.writes:
			d.group(ctx, t, w)
		case <-d.closed:
			return
		}
	}
}

// group commits first, and other writes that have arrived, in one transaction. If one of several
// fails, nothing is committed: all run again with a savepoint each, which undoes only the failing
// one. If the transaction itself fails, each write gets its own transaction (R10). If the database
// does not answer, all writes fail.
func (d *DB) group(ctx context.Context, t *Tx, first *Write) {
	ws, err := d.transact(ctx, t, []*Write{first}, d.writes, (*Tx).bare)
	if errors.Is(err, errOneFailed) {
		_, err = d.transact(ctx, t, ws, nil, (*Tx).savepoints)
	}
	if err != nil {
		for _, w := range ws {
			if len(ws) > 1 && !errors.Is(err, registry.ErrUnavailable) {
				_, err = d.transact(ctx, t, []*Write{w}, nil, (*Tx).bare)
			}
			if err != nil && !errors.Is(err, errOneFailed) {
				w.Err = fmt.Errorf("commit to the registry: %w", err)
			}
		}
	}
	for _, w := range ws {
		if w.Err != nil && d.Dialect.diskFull(w.Err) {
			w.Err = unavailable(w.Err)
		}
		close(w.done)
	}
}

// errOneFailed: a write of the group failed, and nothing was committed. The write has its own
// error.
var errOneFailed = errors.New("a write of the group failed")

// transact runs ws and further writes that arrive meanwhile in one transaction. It returns all of
// them. An error means that nothing was committed, or that the outcome is unknown. A write's own
// error is in the write.
func (d *DB) transact(ctx context.Context, t *Tx, ws []*Write, more <-chan *Write, run func(*Tx, []*Write) error) ([]*Write, error) {
	begun := time.Now()
	if err := t.begin(ctx); err != nil {
		return ws, err
	}
	ws = addWaiting(ws, more, atOnce)
	for ran := 0; ran < len(ws); {
		next := notGivenUp(ws[ran:])
		ran = len(ws)
		if err := run(t, next); err != nil {
			return ws, exceptOwn(ws, t.undo(err))
		}
		if time.Since(begun) <= groupTime { // otherwise the group is closed
			ws = addWaiting(ws, more, min(GroupWrites, ran+atOnce))
		}
	}
	if err := t.commit(ctx); err != nil {
		return ws, err
	}
	d.state.Committed()
	return ws, nil
}

// addWaiting adds waiting writes until there are enough.
func addWaiting(ws []*Write, door <-chan *Write, enough int) []*Write {
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

// notGivenUp returns the writes whose callers still wait, in the order in which they run.
func notGivenUp(ws []*Write) []*Write {
	var out []*Write
	for _, w := range ws {
		if w.Err = w.givenUp(); w.Err == nil {
			out = append(out, w)
		}
	}
	slices.SortStableFunc(out, func(a, b *Write) int { return cmp.Compare(a.Kind.Order, b.Kind.Order) })
	return out
}

// exceptOwn returns nil for a single write that failed by itself: it was undone, and no other write
// must run again.
func exceptOwn(ws []*Write, err error) error {
	if len(ws) == 1 && errors.Is(err, errOneFailed) {
		return nil
	}
	return err
}
