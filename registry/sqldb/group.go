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

// ErrClosed answers writes after Close.
var ErrClosed = errors.New("registry is closed")

// atOnce is how many writes are taken into a group before it is looked at the time again.
const atOnce = 128

// Kind is what a write is, beside others of its group.
type Kind struct {
	// Order is the place of the kind in a group: what others wait for goes first.
	Order int
	// Together runs writes of the kind with statements for all of them. Its error is one that
	// nobody knows whose it is, and undoes them; what it notes in a write is that write's own,
	// which has changed nothing. nil: each is run by itself.
	Together func(t *Tx, ws []*Write) error
}

// Write is one caller's transaction on its way into a group.
type Write struct {
	Ctx  context.Context
	Kind *Kind
	Do   func(*Tx) error // of a kind without Together; it may run twice
	Of   any             // what Together runs
	Err  error
	done chan struct{}
}

// givenUp is why its caller does not want it any more, nil while they do.
func (w *Write) givenUp() error { return context.Cause(w.Ctx) }

// Queue hands a write to the writer and returns its outcome, once it is committed or was rolled
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
	// Once the writer has it, its outcome is waited for: giving up here would leave the caller not
	// knowing.
	<-w.done
	if w.Err != nil && d.Dialect.unfit(w.Err) {
		return unfit(w.Err)
	}
	return w.Err
}

// unfit is the error of an argument that the database cannot hold, which it would refuse again.
func unfit(err error) error { return fmt.Errorf("%w: %w", registry.ErrInvalid, err) }

// writer owns the one writing connection until Close.
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

// group commits first and whatever else has arrived in one transaction. When one of several fails,
// none was committed, and they run again with a savepoint each, which undoes the culprit alone;
// when the transaction fails as a whole, each gets one of its own (R10). A database that does not
// answer is no write's fault, and all of them are told.
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
		if w.Err != nil && d.Dialect.full(w.Err) {
			w.Err = unavailable(w.Err)
		}
		close(w.done)
	}
}

// errOneFailed says that a write failed, which says why itself, and that nothing was committed.
var errOneFailed = errors.New("a write of the group failed")

// transact runs ws, and what more arrives meanwhile, in one transaction, and returns them all. An
// error means that nothing was committed, or that nobody knows; a write's own error is in the
// write.
func (d *DB) transact(ctx context.Context, t *Tx, ws []*Write, more <-chan *Write, run func(*Tx, []*Write) error) ([]*Write, error) {
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
			ws = waiting(ws, more, min(GroupWrites, ran+atOnce))
		}
	}
	if err := t.commit(ctx); err != nil {
		return ws, err
	}
	d.above.Committed()
	return ws, nil
}

// waiting adds what stands at the writer's door, until there are enough.
func waiting(ws []*Write, door <-chan *Write, enough int) []*Write {
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
func wanted(ws []*Write) []*Write {
	var out []*Write
	for _, w := range ws {
		if w.Err = w.givenUp(); w.Err == nil {
			out = append(out, w)
		}
	}
	slices.SortStableFunc(out, func(a, b *Write) int { return cmp.Compare(a.Kind.Order, b.Kind.Order) })
	return out
}

// finished is nil for a single write that failed by itself: it was undone, and there is nobody to
// run again.
func finished(ws []*Write, err error) error {
	if len(ws) == 1 && errors.Is(err, errOneFailed) {
		return nil
	}
	return err
}
