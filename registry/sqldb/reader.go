package sqldb

import (
	"context"
	"database/sql"
	"sync"

	"github.com/holdfast/holdfast/metrics"
)

// Reader is the pool of readers. Its errors are registry.ErrUnavailable if the database does not
// answer.
type Reader struct {
	*sql.DB
	Dialect  Dialect
	prepared *prepared // nil where the driver keeps what it prepared, as pgx does
}

// prepared are statements by their text. SQLite takes longer to prepare most queries than to run them.
type prepared struct {
	mu         sync.Mutex
	statements map[string]*sql.Stmt
}

func newPrepared() *prepared { return &prepared{statements: map[string]*sql.Stmt{}} }

// mostPrepared bounds what is kept: some texts depend on filters, so there is no end of them. The
// first ones stay. The queries that workers make all the time come soon after the start.
const mostPrepared = 256

// statement returns a prepared query, or nil if the query is to run as it is: when as many are kept
// as may be, or it cannot be prepared, so that running it tells why.
func (r Reader) statement(ctx context.Context, query string) *sql.Stmt {
	if r.prepared == nil {
		return nil
	}
	r.prepared.mu.Lock()
	st, full := r.prepared.statements[query], len(r.prepared.statements) >= mostPrepared
	r.prepared.mu.Unlock()
	if st != nil || full {
		return st
	}
	st, err := r.PrepareContext(ctx, r.Dialect.statement(query))
	if err != nil {
		return nil
	}
	return r.prepared.keep(query, st)
}

// keep keeps a statement, and returns what is kept for its text: nil, if as many are kept as may be.
// It closes the statement that it does not keep.
func (p *prepared) keep(query string, st *sql.Stmt) *sql.Stmt {
	p.mu.Lock()
	defer p.mu.Unlock()
	if other := p.statements[query]; other != nil || len(p.statements) >= mostPrepared { // concurrent calls were first
		defer func() { _ = st.Close() }() // nobody uses it
		return other
	}
	p.statements[query] = st
	return st
}

// QueryContext is sql.DB.QueryContext with classified errors.
func (r Reader) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	rows, err := r.rows(ctx, query, args)
	if err != nil && r.Dialect.unstorable(err) {
		return nil, unstorable(err)
	}
	return rows, r.classify(err)
}

func (r Reader) rows(ctx context.Context, query string, args []any) (*sql.Rows, error) {
	if st := r.statement(ctx, query); st != nil { //nolint:sqlclosecheck // DB.Close closes it
		return st.QueryContext(ctx, args...)
	}
	return r.DB.QueryContext(ctx, query, args...)
}

// QueryRowContext is sql.DB.QueryRowContext with classified errors.
func (r Reader) QueryRowContext(ctx context.Context, query string, args ...any) Scanner {
	if st := r.statement(ctx, query); st != nil { //nolint:sqlclosecheck // DB.Close closes it
		return readRow{st.QueryRowContext(ctx, args...), r}
	}
	return readRow{r.DB.QueryRowContext(ctx, query, args...), r}
}

type readRow struct {
	row    *sql.Row
	reader Reader
}

// Scan is sql.Row.Scan with classified errors.
func (r readRow) Scan(dest ...any) error { return r.reader.classify(r.row.Scan(dest...)) }

func (r Reader) classify(err error) error {
	switch {
	case err == nil:
		return nil
	case r.Dialect.connLost(err):
		metrics.DatabaseErrors.Add(1, "read")
		return unavailable(err)
	case r.Dialect.unstorable(err):
		return sql.ErrNoRows // no row can have such a value
	}
	return err
}
