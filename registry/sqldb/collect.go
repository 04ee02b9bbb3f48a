package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
)

// Asking is a query that runs when it is called.
type Asking func() (*sql.Rows, error)

// Ask returns a query in the transaction.
func (t *Tx) Ask(query string, args ...any) Asking {
	return func() (*sql.Rows, error) { return t.Query(query, args...) }
}

// Ask returns a query on the reading connections.
func (r Reader) Ask(ctx context.Context, query string, args ...any) Asking {
	return func() (*sql.Rows, error) { return r.QueryContext(ctx, query, args...) }
}

// Each runs a query and calls scan for each row, until a call fails. It closes the rows before it
// returns. about is the text in front of errors; leave it empty if the caller adds its own.
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

// Collect is [Each], and returns the values that scan returned. Without rows it returns nil.
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

// value reads the only column of a row.
func value[T any](row Scanner) (v T, err error) {
	err = row.Scan(&v)
	return v, err
}

// PageOf returns a page of at most limit rows. rows come from a query with a limit of one more.
// next returns the cursor behind the last row of a full page.
func PageOf[T any](rows []T, limit int, next func(last T) string) (page registry.Page[T]) {
	if len(rows) > limit {
		rows = rows[:limit]
		page.Next = next(rows[limit-1])
	}
	page.Rows = rows
	return page
}

// Scanner is a row that can be scanned.
type Scanner interface{ Scan(dest ...any) error }

// WithMore returns a row that scans its last columns into more. Its caller scans only the columns
// before them.
func WithMore(row Scanner, more ...any) Scanner { return withMore{row, more} }

type withMore struct {
	row  Scanner
	more []any
}

// Scan implements Scanner.
func (r withMore) Scan(dest ...any) error { return r.row.Scan(append(dest, r.more...)...) }
