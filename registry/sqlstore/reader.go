package sqlstore

import (
	"context"
	"database/sql"
)

// reader is the readers' pool. Its errors tell a database that does not answer from other trouble.
type reader struct {
	*sql.DB
	dialect dialect
}

// QueryContext is as of sql.DB.
func (r reader) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	rows, err := r.DB.QueryContext(ctx, query, args...)
	if err != nil && r.dialect.unfit(err) {
		return nil, unfit(err)
	}
	return rows, r.told(err)
}

// QueryRowContext is as of sql.DB.
func (r reader) QueryRowContext(ctx context.Context, query string, args ...any) scanner {
	return readRow{r.DB.QueryRowContext(ctx, query, args...), r}
}

type readRow struct {
	row    *sql.Row
	reader reader
}

// Scan is as of sql.Row.
func (r readRow) Scan(dest ...any) error { return r.reader.told(r.row.Scan(dest...)) }

func (r reader) told(err error) error {
	switch {
	case err == nil:
		return nil
	case r.dialect.gone(err):
		return unavailable(err)
	case r.dialect.unfit(err):
		return sql.ErrNoRows // nothing is called so
	}
	return err
}
