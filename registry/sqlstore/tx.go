package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// tx is the open transaction of the writing connection. Statements are prepared once and kept.
type tx struct {
	ctx   context.Context // the store's own: a caller that gives up must not break its neighbours' writes
	conn  *sql.Conn
	stmts map[string]stmt
	fault func(query string) error // of Store
	now   int64                    // microseconds; one moment for the whole group
	wake  bool                     // a message became due, or the relay may offer more
	audit string                   // the act on many items that the events of this write are parts of; "" for none
}

// stmt is a prepared statement that lives as long as its connection.
type stmt struct{ *sql.Stmt }

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

// savepoint runs one write so that its error, which it notes in w, undoes it alone. An error it returns means that the
// transaction cannot be trusted any more: SQLite ends it by itself on some errors, a full disk among them.
func (t *tx) savepoint(w *write) error {
	if _, err := t.exec("SAVEPOINT w"); err != nil {
		return err
	}
	t.audit = ""
	if w.err = w.fn(t); w.err != nil {
		if _, err := t.exec("ROLLBACK TO w"); err != nil {
			return errors.Join(w.err, err)
		}
	}
	_, err := t.exec("RELEASE w")
	return err
}

func (t *tx) prepare(query string) (stmt, error) {
	if err := t.fault(query); err != nil {
		return stmt{}, err
	}
	if st, ok := t.stmts[query]; ok {
		return st, nil
	}
	prepared, err := t.conn.PrepareContext(t.ctx, query)
	if err != nil {
		return stmt{}, fmt.Errorf("prepare %q: %w", query, err)
	}
	t.stmts[query] = stmt{prepared}
	return t.stmts[query], nil
}

// exec returns how many rows the statement changed.
func (t *tx) exec(query string, args ...any) (int64, error) {
	st, err := t.prepare(query)
	if err != nil {
		return 0, err
	}
	res, err := st.ExecContext(t.ctx, args...)
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
	return st.QueryRowContext(t.ctx, args...)
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
	return st.QueryContext(t.ctx, args...)
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
