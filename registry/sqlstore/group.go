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
func (s *Store) writer(conn *sql.Conn) {
	defer close(s.done)
	t := &tx{conn: conn, stmts: map[string]*sql.Stmt{}}
	defer func() {
		if err := t.close(); err != nil {
			s.log.Warn("registry connection did not close cleanly", "err", err)
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

// group commits first and whatever else has arrived, each in a savepoint, in one transaction.
func (s *Store) group(t *tx, first *write) {
	begun := time.Now()
	ws := []*write{first}
	err := t.begin(s.now())
	if err == nil {
		first.err = t.savepoint(first)
	more:
		for len(ws) < groupWrites && time.Since(begun) < groupTime {
			select {
			case w := <-s.writes:
				w.err = t.savepoint(w)
				ws = append(ws, w)
			default:
				break more
			}
		}
		err = t.commit()
	}
	if err != nil {
		err = fmt.Errorf("commit to the registry: %w", errors.Join(err, t.rollback()))
	} else if t.wake {
		s.wake()
	}
	for _, w := range ws {
		if err != nil && w.err == nil {
			w.err = err
		}
		close(w.done)
	}
}

// tx is the open transaction of the writing connection. Statements are prepared once and kept.
type tx struct {
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
	now   int64 // microseconds; one moment for the whole group
	wake  bool  // a message became due
}

// The transaction runs under its own context: a caller that gives up must not break its neighbours' writes.
func (t *tx) ctx() context.Context { return context.Background() }

func (t *tx) begin(now time.Time) error {
	t.now, t.wake = now.UnixMicro(), false
	_, err := t.exec("BEGIN IMMEDIATE")
	return err
}

func (t *tx) commit() error {
	_, err := t.exec("COMMIT")
	return err
}

func (t *tx) rollback() error {
	_, err := t.exec("ROLLBACK")
	return err
}

// savepoint runs one write so that its error undoes it alone.
func (t *tx) savepoint(w *write) error {
	if err := context.Cause(w.ctx); err != nil {
		return err
	}
	if _, err := t.exec("SAVEPOINT w"); err != nil {
		return err
	}
	err := w.fn(t)
	if err != nil {
		if _, undo := t.exec("ROLLBACK TO w"); undo != nil {
			return errors.Join(err, undo)
		}
	}
	if _, release := t.exec("RELEASE w"); release != nil {
		return errors.Join(err, release)
	}
	return err
}

func (t *tx) prepare(query string) (*sql.Stmt, error) {
	if st, ok := t.stmts[query]; ok {
		return st, nil
	}
	st, err := t.conn.PrepareContext(t.ctx(), query)
	if err != nil {
		return nil, fmt.Errorf("prepare %q: %w", query, err)
	}
	t.stmts[query] = st
	return st, nil
}

// exec returns how many rows the statement changed.
func (t *tx) exec(query string, args ...any) (int64, error) {
	st, err := t.prepare(query)
	if err != nil {
		return 0, err
	}
	res, err := st.ExecContext(t.ctx(), args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// get scans the one row of a query into dest; sql.ErrNoRows when there is none.
func (t *tx) get(query string, args []any, dest ...any) error {
	return t.row(query, args...).Scan(dest...)
}

// row returns the one row of a query, to be scanned before the next statement.
func (t *tx) row(query string, args ...any) scanner {
	st, err := t.prepare(query)
	if err != nil {
		return failedRow{err}
	}
	return st.QueryRowContext(t.ctx(), args...)
}

// failedRow is the row of a statement that could not be prepared.
type failedRow struct{ err error }

func (r failedRow) Scan(...any) error { return r.err }

// query returns the rows of a query; the caller closes them before its next statement.
func (t *tx) query(query string, args ...any) (*sql.Rows, error) {
	st, err := t.prepare(query)
	if err != nil {
		return nil, err
	}
	return st.QueryContext(t.ctx(), args...)
}

// strings collects a query's single text column.
func (t *tx) strings(query string, args ...any) (out []string, err error) {
	rows, err := t.query(query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, rows.Err()
}

func (t *tx) close() error {
	var errs []error
	for _, st := range t.stmts {
		errs = append(errs, st.Close())
	}
	return errors.Join(append(errs, t.conn.Close())...)
}
