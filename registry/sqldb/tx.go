package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"
)

// Tx is the open transaction of the writing connection. Statements are prepared once for each
// connection and kept.
type Tx struct {
	Now int64 // microseconds; one moment for the whole group

	db     *DB
	ctx    context.Context // of the transaction: a caller that gives up must not break its neighbours' writes
	giveUp context.CancelFunc
	conn   *sql.Conn // nil: there is none yet, or the last one is gone
	stmts  map[string]stmt
	mark   string      // by which the database tells what became of the transaction
	later  []statement // asked for and not yet sent
}

// Bit is a truth as the tables hold it.
func Bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// stmt is a prepared statement that lives as long as its connection.
type stmt struct{ *sql.Stmt }

// begin starts a transaction, on a new connection when the last one is gone.
func (t *Tx) begin(ctx context.Context) error {
	t.giveUp, t.mark, t.later = func() {}, "", nil
	t.db.above.Begin(t)
	if patience := t.db.Dialect.patience(); patience > 0 {
		ctx, t.giveUp = context.WithTimeout(ctx, patience)
	}
	t.ctx = ctx
	if t.conn == nil {
		conn, err := t.db.db.Conn(ctx)
		if err != nil {
			return t.over(fmt.Errorf("connect: %w", err))
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

// commit makes the transaction durable. When the answer is lost, the database is asked what became
// of it (R10).
func (t *Tx) commit(ctx context.Context) error {
	err := t.db.above.Flush()
	if err == nil {
		err = t.send()
	}
	if err != nil {
		return t.undo(err)
	}
	_, err = t.Exec("COMMIT")
	if err == nil {
		return t.over(nil)
	}
	if !t.db.Dialect.gone(err) {
		return t.undo(err)
	}
	t.disconnect()
	asked, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	for wait := askFirst; ; wait *= 2 {
		done, askErr := t.db.Dialect.committed(asked, t.db.db, t.mark)
		switch {
		case askErr == nil && done:
			return t.over(nil)
		case askErr == nil:
			return t.over(err)
		}
		select {
		case <-asked.Done():
			return t.over(errors.Join(err, askErr))
		case <-time.After(wait):
		}
	}
}

// How long, and at first how often, the database is asked what became of a transaction.
const (
	askFor   = 20 * time.Second
	askFirst = 20 * time.Millisecond
)

// undo rolls the transaction back after err, and lets go of a connection that is of no more use.
func (t *Tx) undo(err error) error {
	t.later = nil
	if t.db.Dialect.gone(err) {
		t.disconnect()
	} else if _, rollback := t.Exec("ROLLBACK"); rollback != nil {
		err = errors.Join(err, rollback)
		if t.db.Dialect.gone(rollback) {
			t.disconnect()
		}
	}
	return t.over(err)
}

// over is what every transaction ends with.
func (t *Tx) over(err error) error {
	t.giveUp()
	if err != nil && t.db.Dialect.gone(err) {
		return unavailable(err)
	}
	return err
}

// disconnect closes a connection that is gone, so that the next transaction gets a new one.
func (t *Tx) disconnect() {
	if t.conn == nil {
		return
	}
	// The pool must not hand it out again.
	_ = t.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = t.close() // nothing of it is left to save
}

// Among is the condition that a column is one of the texts of the first parameter, which list
// makes.
func (t *Tx) Among(column string) string { return t.db.Dialect.among(column, "$1") }

// List is a parameter for Among.
func (t *Tx) List(texts []string) any { return t.db.Dialect.list(texts) }

// bare runs writes as they are. The error of one, which it notes in it, means that the transaction
// has to be undone.
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

// together runs writes of one kind, one when they do not join.
func (t *Tx) together(ws []*Write) error {
	t.db.above.Next()
	for _, w := range ws {
		w.Err = nil
	}
	if together := ws[0].Kind.Together; together != nil {
		return together(t, ws)
	}
	return ws[0].Do(t)
}

// run runs a write, or several of one kind.
func (t *Tx) run(ws []*Write) error {
	err := t.together(ws)
	if err == nil {
		return nil
	}
	for _, w := range ws {
		w.Err = err
	}
	if t.db.Dialect.gone(err) {
		return err
	}
	return errOneFailed
}

// savepoints runs each write so that its error undoes it alone.
func (t *Tx) savepoints(ws []*Write) error {
	for _, w := range ws {
		if err := t.savepoint(w); err != nil {
			return err
		}
	}
	return nil
}

// savepoint runs one write so that its error, which it notes in w, undoes it alone. An error it
// returns means that the transaction cannot be trusted any more: SQLite ends it by itself on some
// errors, a full disk among them.
func (t *Tx) savepoint(w *Write) error {
	if _, err := t.Exec("SAVEPOINT w"); err != nil {
		return err
	}
	forget := t.db.above.Part()
	err := t.together([]*Write{w})
	if err == nil {
		err = t.send()
	}
	if err != nil {
		w.Err = err
		if t.db.Dialect.gone(w.Err) {
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

// statement is one whose result nobody waits for.
type statement struct {
	query string
	args  []any
}

// mostLater is how many statements are kept back.
const mostLater = 64

// Do runs a statement of which nothing but its success is of interest. Where a statement costs a
// trip over a network it is kept back and travels with the next one that is waited for, so that an
// error may come from there: it ends the write, or the transaction, all the same.
func (t *Tx) Do(query string, args ...any) error {
	if !t.db.Dialect.pipelines() {
		_, err := t.Exec(query, args...)
		return err
	}
	if err := t.hurt(query); err != nil {
		return err
	}
	t.later = append(t.later, statement{query, args})
	if len(t.later) < mostLater {
		return nil
	}
	return t.send()
}

// send runs what was kept back.
func (t *Tx) send() error {
	if len(t.later) == 0 {
		return nil
	}
	later := t.later
	t.later = nil
	return t.conn.Raw(func(driverConn any) error { return t.db.Dialect.run(t.ctx, driverConn, later) })
}

// hurt is the error that a test wants of a statement.
func (t *Tx) hurt(query string) error {
	if t.db.fault == nil {
		return nil
	}
	return t.db.fault(query)
}

func (t *Tx) prepare(query string) (stmt, error) {
	if err := t.send(); err != nil {
		return stmt{}, err
	}
	if err := t.hurt(query); err != nil {
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

// Exec returns how many rows the statement changed.
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

// Get scans the one row of a query into dest; sql.ErrNoRows when there is none.
func (t *Tx) Get(query string, args []any, dest ...any) error {
	return t.Row(query, args...).Scan(dest...)
}

// Row returns the one row of a query, to be scanned before the next statement.
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

// Query returns the rows of a query; the caller closes them before its next statement.
func (t *Tx) Query(query string, args ...any) (*sql.Rows, error) {
	st, err := t.prepare(query)
	if err != nil {
		return nil, err
	}
	return st.QueryContext(t.ctx, args...)
}

// Strings collects a query's single text column.
func (t *Tx) Strings(query string, args ...any) (out []string, err error) {
	return Collect(t.Ask(query, args...), "", value[string])
}

// Numbers collects a query's rows of a text and a number.
func (t *Tx) Numbers(query string, args ...any) (map[string]int64, error) {
	return Numbers(t.Ask(query, args...))
}

// Numbers collects a query's rows of a text and a number.
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

// close gives the connection back.
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
