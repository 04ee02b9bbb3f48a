package sqldb

import (
	"context"
	"database/sql"
)

// Reader is the pool of readers. Its errors are registry.ErrUnavailable if the database does not
// answer.
type Reader struct {
	*sql.DB
	Dialect Dialect
}

// QueryContext is sql.DB.QueryContext with classified errors.
func (r Reader) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	rows, err := r.DB.QueryContext(ctx, query, args...)
	if err != nil && r.Dialect.unstorable(err) {
		return nil, unstorable(err)
	}
	return rows, r.classify(err)
}

// QueryRowContext is sql.DB.QueryRowContext with classified errors.
func (r Reader) QueryRowContext(ctx context.Context, query string, args ...any) Scanner {
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
		return unavailable(err)
	case r.Dialect.unstorable(err):
		return sql.ErrNoRows // no row can have such a value
	}
	return err
}
