package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/metrics"
)

// Tx is the open transaction of the writing connection. Each statement is prepared once per
// connection. It is for one goroutine at a time.
type Tx struct {
	Now int64 // microseconds; the same for the whole group

	db     *DB
	ctx    context.Context // the transaction's: a caller that gives up must not break the writes of others
	giveUp context.CancelFunc
	conn   *sql.Conn // nil: none yet, or the last one is lost
	stmts  map[string]stmt
	mark   string      // identifies the transaction for Dialect.committed
	later  []statement // kept back, not yet sent
}

// Bit returns a boolean as tables store it.
func Bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// stmt is a prepared statement, which lives as long as its connection.
type stmt struct{ *sql.Stmt }

// begin starts a transaction, on a new connection if the last one was lost.
func (t *Tx) begin(ctx context.Context) error {
	t.giveUp, t.mark, t.later = func() {}, "", nil
	t.db.state.Begin(t)
	if patience := t.db.Dialect.patience(); patience > 0 {
		ctx, t.giveUp = context.WithTimeout(ctx, patience)
	}
	t.ctx = ctx
	if t.conn == nil {
		conn, err := t.db.db.Conn(ctx)
		if err != nil {
			return t.finish(fmt.Errorf("connect: %w", err))
		}
		t.conn, t.stmts = conn, map[string]stmt{}
	}
	now, mark, err := t.db.Dialect.begin(t)
	if err != nil {
		return t.undo(err)
	}
	t.Now, t.mark = t.db.clock.begun(now), mark
	return nil
}

// commit makes the transaction durable. If the answer is lost, commit asks the database for the
// outcome (R10).
func (t *Tx) commit(ctx context.Context) error {
	if err := t.db.state.Flush(); err != nil {
		return t.undo(err)
	}
	err := t.Do("COMMIT")
	if err == nil {
		err = t.send()
	}
	if err == nil {
		return t.finish(nil)
	}
	if !t.db.Dialect.connLost(err) {
		return t.undo(err)
	}
	t.disconnect()
	asked, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	for wait := askFirst; ; wait *= 2 {
		done, askErr := t.db.Dialect.committed(asked, t.db.db, t.mark)
		switch {
		case askErr == nil && done:
			return t.finish(nil)
		case askErr == nil:
			return t.finish(err)
		}
		select {
		case <-asked.Done():
			return t.finish(errors.Join(err, askErr))
		case <-time.After(wait):
		}
	}
}

// How long commit asks for an outcome, and its first interval.
const (
	askFor   = 20 * time.Second
	askFirst = 20 * time.Millisecond
)

// undo rolls the transaction back after err, and drops a lost connection.
func (t *Tx) undo(err error) error {
	t.later = nil
	if t.db.Dialect.connLost(err) {
		t.disconnect()
	} else if _, rollback := t.Exec("ROLLBACK"); rollback != nil {
		err = errors.Join(err, rollback)
		if t.db.Dialect.connLost(rollback) {
			t.disconnect()
		}
	}
	return t.finish(err)
}

// finish ends every transaction.
func (t *Tx) finish(err error) error {
	t.giveUp()
	if err != nil && t.db.Dialect.connLost(err) {
		metrics.DatabaseErrors.Add(1, "write")
		return unavailable(err)
	}
	return err
}

// disconnect drops a lost connection, so that the next transaction opens a new one.
func (t *Tx) disconnect() {
	if t.conn == nil {
		return
	}
	// The pool must not reuse it.
	_ = t.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = t.close() // nothing of it can be saved
}

// Among returns the condition that a column is one of the texts of the first parameter, which List
// makes.
func (t *Tx) Among(column string) string { return t.db.Dialect.among(column, "$1") }

// List returns a parameter for Among.
func (t *Tx) List(texts []string) any { return t.db.Dialect.list(texts) }

// Among is as in [Tx.Among], for reading connections.
func (d *DB) Among(column string) string { return d.Dialect.among(column, "$1") }

// List is as in [Tx.List], for reading connections.
func (d *DB) List(texts []string) any { return d.Dialect.list(texts) }

// bare runs writes without savepoints. If one fails, the transaction must be undone; the write has
// its own error.
func (t *Tx) bare(ws []*Write) error {
	for first := 0; first < len(ws); {
		last := first + 1
		for ws[first].Kind.Together != nil && last < len(ws) && ws[last].Kind == ws[first].Kind {
			last++
		}
		if err := t.run(ws[first:last]); err != nil {
			return err
		}
		first = last
	}
	return nil
}

// together runs several writes of one kind, or a single write.
func (t *Tx) together(ws []*Write) error {
	t.db.state.Next()
	for _, w := range ws {
		w.Err = nil
	}
	if together := ws[0].Kind.Together; together != nil {
		return together(t, ws)
	}
	return ws[0].Do(t)
}

// run runs several writes of one kind, or a single write, and sets their errors.
func (t *Tx) run(ws []*Write) error {
	err := t.together(ws)
	if err == nil {
		return nil
	}
	for _, w := range ws {
		w.Err = err
	}
	if t.db.Dialect.connLost(err) {
		return err
	}
	return errOneFailed
}

// savepoints runs each write in a savepoint, so that its error undoes it alone.
func (t *Tx) savepoints(ws []*Write) error {
	for _, w := range ws {
		if err := t.savepoint(w); err != nil {
			return err
		}
	}
	return nil
}

// savepoint runs one write in a savepoint; the write's error undoes it alone. An error that
// savepoint returns means that the transaction is broken: SQLite itself ends a transaction on some
// errors, such as a full disk.
func (t *Tx) savepoint(w *Write) error {
	if _, err := t.Exec("SAVEPOINT w"); err != nil {
		return err
	}
	forget := t.db.state.Part()
	err := t.together([]*Write{w})
	if err == nil {
		err = t.send()
	}
	if err != nil {
		w.Err = err
		if t.db.Dialect.connLost(w.Err) {
			return w.Err
		}
		t.later = nil
		forget()
		if _, err := t.Exec("ROLLBACK TO SAVEPOINT w"); err != nil {
			return errors.Join(w.Err, err)
		}
	}
	_, err = t.Exec("RELEASE SAVEPOINT w")
	return err
}

// statement is a statement whose result no caller waits for.
type statement struct {
	query string
	args  []any
}

// mostLater is how many statements are kept back at most.
const mostLater = 64

// Do runs a statement for which only success matters. Where statements travel over a network, it
// keeps the statement back and sends it with the next one. So the error may come from a later call;
// it still fails the write or the transaction.
func (t *Tx) Do(query string, args ...any) error {
	if !t.db.Dialect.pipelines() {
		_, err := t.Exec(query, args...)
		return err
	}
	if err := t.injectedFault(query); err != nil {
		return err
	}
	t.later = append(t.later, statement{query, args})
	if len(t.later) < mostLater {
		return nil
	}
	return t.send()
}

// send runs the statements that were kept back.
func (t *Tx) send() error {
	if len(t.later) == 0 {
		return nil
	}
	later := t.later
	t.later = nil
	return t.conn.Raw(func(driverConn any) error { return t.db.Dialect.run(t.ctx, driverConn, later) })
}

// injectedFault returns the error that a test wants for a statement.
func (t *Tx) injectedFault(query string) error {
	if t.db.fault == nil {
		return nil
	}
	return t.db.fault(query)
}

func (t *Tx) prepare(query string) (stmt, error) {
	if err := t.send(); err != nil {
		return stmt{}, err
	}
	if err := t.injectedFault(query); err != nil {
		return stmt{}, err
	}
	if st, ok := t.stmts[query]; ok {
		return st, nil
	}
	prepared, err := t.conn.PrepareContext(t.ctx, t.db.Dialect.statement(query))
	if err != nil {
		return stmt{}, fmt.Errorf("prepare %q: %w", query, err)
	}
	t.stmts[query] = stmt{prepared}
	return t.stmts[query], nil
}

// Exec runs a statement and returns how many rows it changed.
func (t *Tx) Exec(query string, args ...any) (int64, error) {
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

// Get scans the only row of a query into dest. Without a row it returns sql.ErrNoRows.
func (t *Tx) Get(query string, args []any, dest ...any) error {
	return t.Row(query, args...).Scan(dest...)
}

// Row returns the only row of a query. Scan it before the next statement.
func (t *Tx) Row(query string, args ...any) Scanner {
	st, err := t.prepare(query)
	if err != nil {
		return failedRow{err}
	}
	return st.QueryRowContext(t.ctx, args...)
}

// failedRow is the row of a statement that could not be prepared.
type failedRow struct{ err error }

func (r failedRow) Scan(...any) error { return r.err }

// Query returns the rows of a query. The caller closes them before its next statement.
func (t *Tx) Query(query string, args ...any) (*sql.Rows, error) {
	st, err := t.prepare(query)
	if err != nil {
		return nil, err
	}
	return st.QueryContext(t.ctx, args...)
}

// Strings returns the values of a query with one text column.
func (t *Tx) Strings(query string, args ...any) (out []string, err error) {
	return Collect(t.Ask(query, args...), "", value[string])
}

// Numbers returns the rows of a query with a text and a number column, by text.
func (t *Tx) Numbers(query string, args ...any) (map[string]int64, error) {
	return Numbers(t.Ask(query, args...))
}

// Numbers returns the rows of a query with a text and a number column, by text.
func Numbers(ask Asking) (map[string]int64, error) {
	out := map[string]int64{}
	err := Each(ask, "", func(row Scanner) error {
		var name string
		var n int64
		err := row.Scan(&name, &n)
		out[name] = n
		return err
	})
	return out, err
}

// close closes the connection with its statements.
func (t *Tx) close() error {
	if t.conn == nil {
		return nil
	}
	var errs []error
	for _, st := range t.stmts {
		errs = append(errs, st.Close())
	}
	errs = append(errs, t.conn.Close())
	t.conn, t.stmts = nil, nil
	return errors.Join(errs...)
}
