package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// tx is the open transaction of the writing connection. Statements are prepared once for each connection and kept.
type tx struct {
	store  *Store
	ctx    context.Context // of the transaction: a caller that gives up must not break its neighbours' writes
	giveUp context.CancelFunc
	conn   *sql.Conn // nil: there is none yet, or the last one is gone
	stmts  map[string]stmt
	now    int64       // microseconds; one moment for the whole group
	mark   string      // by which the database tells what became of the transaction
	wake   bool        // a message became due, or the relay may offer more
	wrote  bool        // an event
	taken  bool        // an attempt, from a worker that shall hear of it
	audit  string      // the bulk act that the events now written are a part of
	events [][]any     // noted and not yet written
	later  []statement // asked for and not yet sent

	// What many writes of a group ask, and only few of them change.
	promoted  bool            // nothing more becomes due by time
	open      map[lane]bool   // lanes that have been opened, and not closed since
	onWorkers []registry.Hold // the holds on workers; nil: not looked up
}

// bit is a truth as the tables hold it.
func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// stmt is a prepared statement that lives as long as its connection.
type stmt struct{ *sql.Stmt }

// begin starts a transaction, on a new connection when the last one is gone.
func (t *tx) begin(ctx context.Context) error {
	t.giveUp, t.wake, t.mark = func() {}, false, ""
	t.wrote, t.taken, t.events, t.later = false, false, nil, nil
	t.forget()
	if patience := t.store.dialect.patience(); patience > 0 {
		ctx, t.giveUp = context.WithTimeout(ctx, patience)
	}
	t.ctx = ctx
	if t.conn == nil {
		conn, err := t.store.db.Conn(ctx)
		if err != nil {
			return t.over(fmt.Errorf("connect: %w", err))
		}
		t.conn, t.stmts = conn, map[string]stmt{}
	}
	now, mark, err := t.store.dialect.begin(t)
	if err != nil {
		return t.undo(err)
	}
	t.now, t.mark = t.store.clock.begun(now), mark
	return nil
}

// commit makes the transaction durable. When the answer is lost, the database is asked what became of it (R10).
func (t *tx) commit(ctx context.Context) error {
	err := t.writeEvents()
	if err == nil {
		err = t.send()
	}
	if err != nil {
		return t.undo(err)
	}
	_, err = t.exec("COMMIT")
	if err == nil {
		return t.over(nil)
	}
	if !t.store.dialect.gone(err) {
		return t.undo(err)
	}
	t.disconnect()
	asked, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	for wait := askFirst; ; wait *= 2 {
		done, askErr := t.store.dialect.committed(asked, t.store.db, t.mark)
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
func (t *tx) undo(err error) error {
	t.later = nil
	if t.store.dialect.gone(err) {
		t.disconnect()
	} else if _, rollback := t.exec("ROLLBACK"); rollback != nil {
		err = errors.Join(err, rollback)
		if t.store.dialect.gone(rollback) {
			t.disconnect()
		}
	}
	return t.over(err)
}

// over is what every transaction ends with.
func (t *tx) over(err error) error {
	t.giveUp()
	if err != nil && t.store.dialect.gone(err) {
		return unavailable(err)
	}
	return err
}

// disconnect closes a connection that is gone, so that the next transaction gets a new one.
func (t *tx) disconnect() {
	if t.conn == nil {
		return
	}
	// The pool must not hand it out again.
	_ = t.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = t.close() // nothing of it is left to save
}

// forget makes the transaction look anew at what it keeps of answers.
func (t *tx) forget() { t.promoted, t.open, t.onWorkers = false, nil, nil }

// among is the condition that a column is one of the texts of the first parameter, which list makes.
func (t *tx) among(column string) string { return t.store.dialect.among(column, "$1") }

func (t *tx) list(texts []string) any { return t.store.dialect.list(texts) }

// bare runs writes as they are. The error of one, which it notes in it, means that the transaction has to be undone.
func (t *tx) bare(ws []*write) error {
	for first := 0; first < len(ws); {
		last := first + 1
		for ws[first].kind.joins() && last < len(ws) && ws[last].kind == ws[first].kind {
			last++
		}
		if err := t.run(ws[first:last]); err != nil {
			return err
		}
		first = last
	}
	return nil
}

// run runs a write, or several of one kind.
func (t *tx) run(ws []*write) error {
	err := together(t, ws)
	if err == nil {
		return nil
	}
	for _, w := range ws {
		w.err = err
	}
	if t.store.dialect.gone(err) {
		return err
	}
	return errOneFailed
}

// savepoints runs each write so that its error undoes it alone.
func (t *tx) savepoints(ws []*write) error {
	for _, w := range ws {
		if err := t.savepoint(w); err != nil {
			return err
		}
	}
	return nil
}

// savepoint runs one write so that its error, which it notes in w, undoes it alone. An error it returns means that the
// transaction cannot be trusted any more: SQLite ends it by itself on some errors, a full disk among them.
func (t *tx) savepoint(w *write) error {
	if _, err := t.exec("SAVEPOINT w"); err != nil {
		return err
	}
	noted := len(t.events)
	err := together(t, []*write{w})
	if err == nil {
		err = t.send()
	}
	if err != nil {
		w.err = err
		if t.store.dialect.gone(w.err) {
			return w.err
		}
		t.later = nil
		t.forget()
		t.events = t.events[:min(noted, len(t.events))]
		if _, err := t.exec("ROLLBACK TO SAVEPOINT w"); err != nil {
			return errors.Join(w.err, err)
		}
	}
	_, err = t.exec("RELEASE SAVEPOINT w")
	return err
}

// statement is one whose result nobody waits for.
type statement struct {
	query string
	args  []any
}

// mostLater is how many statements are kept back.
const mostLater = 64

// do runs a statement of which nothing but its success is of interest. Where a statement costs a trip over a network it is
// kept back and travels with the next one that is waited for, so that an error may come from there: it ends the write, or
// the transaction, all the same.
func (t *tx) do(query string, args ...any) error {
	if !t.store.dialect.pipelines() {
		_, err := t.exec(query, args...)
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
func (t *tx) send() error {
	if len(t.later) == 0 {
		return nil
	}
	later := t.later
	t.later = nil
	return t.conn.Raw(func(driverConn any) error { return t.store.dialect.run(t.ctx, driverConn, later) })
}

// hurt is the error that a test wants of a statement.
func (t *tx) hurt(query string) error {
	if t.store.fault == nil {
		return nil
	}
	return t.store.fault(query)
}

func (t *tx) prepare(query string) (stmt, error) {
	if err := t.send(); err != nil {
		return stmt{}, err
	}
	if err := t.hurt(query); err != nil {
		return stmt{}, err
	}
	if st, ok := t.stmts[query]; ok {
		return st, nil
	}
	prepared, err := t.conn.PrepareContext(t.ctx, t.store.dialect.statement(query))
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
	return collect(t.ask(query, args...), "", value[string])
}

// numbers collects a query's rows of a text and a number.
func (t *tx) numbers(query string, args ...any) (map[string]int64, error) {
	return numbers(t.ask(query, args...))
}

// numbers collects a query's rows of a text and a number.
func numbers(ask asking) (map[string]int64, error) {
	out := map[string]int64{}
	err := each(ask, "", func(row scanner) error {
		var name string
		var n int64
		err := row.Scan(&name, &n)
		out[name] = n
		return err
	})
	return out, err
}

// close gives the connection back.
func (t *tx) close() error {
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
