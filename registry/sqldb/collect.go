package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
)

// Asking is a query that is run when it is called.
type Asking func() (*sql.Rows, error)

// Ask is a query inside the transaction.
func (t *Tx) Ask(query string, args ...any) Asking {
	return func() (*sql.Rows, error) { return t.Query(query, args...) }
}

// Ask is a query on the reading connections.
func (r Reader) Ask(ctx context.Context, query string, args ...any) Asking {
	return func() (*sql.Rows, error) { return r.QueryContext(ctx, query, args...) }
}

// Each runs a query and gives its rows to scan, one after the other, until one of them is an error.
// When it returns, the rows are closed and the next statement may come. The error says what it was
// about; "" is for callers that say so themselves.
func Each(ask Asking, about string, scan func(Scanner) error) error {
	err := eachRow(ask, scan)
	if err != nil && about != "" {
		return fmt.Errorf("%s: %w", about, err)
	}
	return err
}

func eachRow(ask Asking, scan func(Scanner) error) (err error) {
	rows, err := ask()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Collect is as each, and returns what scan makes of the rows; nil when there are none.
func Collect[T any](ask Asking, about string, scan func(Scanner) (T, error)) (out []T, err error) {
	err = Each(ask, about, func(row Scanner) error {
		one, err := scan(row)
		if err == nil {
			out = append(out, one)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// value reads a row's only column.
func value[T any](row Scanner) (v T, err error) {
	err = row.Scan(&v)
	return v, err
}

// PageOf makes a page of at most limit rows of what a query for one more has found. next is where
// the page after the last row of a full one begins.
func PageOf[T any](rows []T, limit int, next func(last T) string) (page registry.Page[T]) {
	if len(rows) > limit {
		rows = rows[:limit]
		page.Next = next(rows[limit-1])
	}
	page.Rows = rows
	return page
}

// Scanner is a row that is read.
type Scanner interface{ Scan(dest ...any) error }

// WithMore is a row of which the last columns are scanned into more, behind what whoever scans it
// knows of.
func WithMore(row Scanner, more ...any) Scanner { return withMore{row, more} }

type withMore struct {
	row  Scanner
	more []any
}

// Scan implements Scanner.
func (r withMore) Scan(dest ...any) error { return r.row.Scan(append(dest, r.more...)...) }
