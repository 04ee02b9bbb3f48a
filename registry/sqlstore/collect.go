package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
)

// asking is a query that is run when it is called.
type asking func() (*sql.Rows, error)

// ask is a query inside the transaction.
func (t *tx) ask(query string, args ...any) asking {
	return func() (*sql.Rows, error) { return t.query(query, args...) }
}

// ask is a query on the reading connections.
func (r reader) ask(ctx context.Context, query string, args ...any) asking {
	return func() (*sql.Rows, error) { return r.QueryContext(ctx, query, args...) }
}

// each runs a query and gives its rows to scan, one after the other, until one of them is an error. When it returns, the rows
// are closed and the next statement may come. The error says what it was about; "" is for callers that say so themselves.
func each(ask asking, about string, scan func(scanner) error) error {
	err := eachRow(ask, scan)
	if err != nil && about != "" {
		return fmt.Errorf("%s: %w", about, err)
	}
	return err
}

func eachRow(ask asking, scan func(scanner) error) (err error) {
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

// collect is as each, and returns what scan makes of the rows; nil when there are none.
func collect[T any](ask asking, about string, scan func(scanner) (T, error)) (out []T, err error) {
	err = each(ask, about, func(row scanner) error {
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
func value[T any](row scanner) (v T, err error) {
	err = row.Scan(&v)
	return v, err
}

// pageOf makes a page of at most limit rows of what a query for one more has found. next is where the page after the last row
// of a full one begins.
func pageOf[T any](rows []T, limit int, next func(last T) string) (page registry.Page[T]) {
	if len(rows) > limit {
		rows = rows[:limit]
		page.Next = next(rows[limit-1])
	}
	page.Rows = rows
	return page
}
