package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
)

// MostRows is the API's largest page.
const MostRows = 500

// ErrEnough ends EachRow early, without an error.
var ErrEnough = errors.New("enough rows")

// EachRow calls yield with each row of a paged list, at most limit of them (0: all). It returns
// whether there are more.
func EachRow[T any](ctx context.Context, limit int, page Fetch[T], yield func(T) error) (more bool, err error) {
	after, left := "", limit
	for {
		size := MostRows
		if limit > 0 {
			size = min(left, MostRows)
		}
		p, err := page(ctx, after, size)
		if err != nil {
			return false, err
		}
		for _, row := range p.Rows {
			if err := yield(row); errors.Is(err, ErrEnough) {
				return true, nil
			} else if err != nil {
				return false, err
			}
		}
		left -= len(p.Rows)
		switch {
		case p.Next == "" || p.Next == after: // a cursor that does not advance would loop for ever
			return false, nil
		case limit > 0 && left <= 0:
			return true, nil
		}
		after = p.Next
	}
}

// Lister prints the rows of a list: a table for people, JSON lines for programs.
type Lister[T any] struct {
	Columns []terminal.Column
	Row     func(T) []string
	None    string // printed if there are no rows
}

// Print prints each row that source yields. source returns whether there are more.
func (l Lister[T]) Print(a *App, source func(yield func(T) error) (more bool, err error)) error {
	t := terminal.NewTable(a.Out, terminal.Width(a.Out), l.Columns...)
	rows := 0
	more, err := source(func(v T) error {
		rows++
		if a.JSON {
			return a.PrintJSON(v)
		}
		return t.Row(l.Row(v)...)
	})
	// Print the rows found before an error, too.
	if err := errors.Join(t.End(), err); err != nil {
		return err
	}
	if rows == 0 && !a.JSON {
		a.Note("%s", l.None)
	}
	if more {
		a.Note("there are more; --limit 0 lists all")
	}
	return nil
}

// Whole returns a source for Print of rows that are all in memory.
func Whole[T any](rows []T) func(yield func(T) error) (bool, error) {
	return func(yield func(T) error) (bool, error) {
		for _, r := range rows {
			if err := yield(r); err != nil {
				return false, err
			}
		}
		return false, nil
	}
}

// LimitFlag adds --limit, with the default 50.
func LimitFlag(cmd *cobra.Command, limit *int) {
	*limit = 50
	cmd.Flags().Var((*most)(limit), "limit", "print at most this many rows; 0 for all")
}

// most is the value of --limit: 0 or more.
type most int

// String, Set and Type implement pflag.Value.
func (m *most) String() string { return strconv.Itoa(int(*m)) }

func (m *most) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return errors.New("it must be a whole number, 0 or more")
	}
	*m = most(n)
	return nil
}

func (m *most) Type() string { return "N" }

// Fetch returns one page of a list.
type Fetch[T any] func(ctx context.Context, after string, limit int) (registry.Page[T], error)

// PageOf makes a page of rows. A full page gets a cursor, the key of its last row.
func PageOf[T any](rows []T, err error, limit int, key func(T) string) (registry.Page[T], error) {
	p := registry.Page[T]{Rows: rows}
	if err == nil && len(rows) > 0 && len(rows) == limit {
		p.Next = key(rows[len(rows)-1])
	}
	return p, err
}

// Cursor parses a numeric cursor. The empty one is 0, the beginning.
func Cursor(after string) (int64, error) {
	if after == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(after, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read cursor: %w", err)
	}
	return n, nil
}
