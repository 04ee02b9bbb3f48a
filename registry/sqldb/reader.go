package sqldb

import (
	"context"
	"database/sql"
)

// Reader is the readers' pool. Its errors tell a database that does not answer from other trouble.
type Reader struct {
	*sql.DB
	Dialect Dialect
}

// QueryContext is as of sql.DB.
func (r Reader) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	rows, err := r.DB.QueryContext(ctx, query, args...)
	if err != nil && r.Dialect.unfit(err) {
		return nil, unfit(err)
	}
	return rows, r.told(err)
}

// QueryRowContext is as of sql.DB.
func (r Reader) QueryRowContext(ctx context.Context, query string, args ...any) Scanner {
	return readRow{r.DB.QueryRowContext(ctx, query, args...), r}
}

type readRow struct {
	row    *sql.Row
	reader Reader
}

// Scan is as of sql.Row.
func (r readRow) Scan(dest ...any) error { return r.reader.told(r.row.Scan(dest...)) }

func (r Reader) told(err error) error {
	switch {
	case err == nil:
		return nil
	case r.Dialect.gone(err):
		return unavailable(err)
	case r.Dialect.unfit(err):
		return sql.ErrNoRows // nothing is called so
	}
	return err
}
