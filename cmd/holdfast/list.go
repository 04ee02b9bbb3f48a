package main

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
)

// mostRows is the longest page that the API gives.
const mostRows = 500

// errEnough ends a walk through pages early.
var errEnough = errors.New("enough rows")

// eachRow calls yield with every row of a paged list, at most limit of them; 0 is all. more says that there are others.
func eachRow[T any](ctx context.Context, limit int, page fetch[T], yield func(T) error) (more bool, err error) {
	after, left := "", limit
	for {
		size := mostRows
		if limit > 0 {
			size = min(left, mostRows)
		}
		p, err := page(ctx, after, size)
		if err != nil {
			return false, err
		}
		for _, row := range p.Rows {
			if err := yield(row); errors.Is(err, errEnough) {
				return true, nil
			} else if err != nil {
				return false, err
			}
		}
		left -= len(p.Rows)
		switch {
		case p.Next == "" || p.Next == after: // a list that does not move on would never end
			return false, nil
		case limit > 0 && left <= 0:
			return true, nil
		}
		after = p.Next
	}
}

// lister prints the rows of a list: a table for people, JSON lines for programs.
type lister[T any] struct {
	columns []column
	row     func(T) []string
	none    string // what to say when there are none
}

// print prints every row that source yields. source says whether there would have been more.
func (l lister[T]) print(a *app, source func(yield func(T) error) (more bool, err error)) error {
	t := newTable(a.out, width(a.out), l.columns...)
	rows := 0
	more, err := source(func(v T) error {
		rows++
		if a.json {
			return a.printJSON(v)
		}
		return t.row(l.row(v)...)
	})
	// What was found before an error is shown, too.
	if err := errors.Join(t.end(), err); err != nil {
		return err
	}
	if rows == 0 && !a.json {
		a.note("%s", l.none)
	}
	if more {
		a.note("there are more; --limit 0 lists all")
	}
	return nil
}

// whole is a list that comes in one piece.
func whole[T any](rows []T) func(yield func(T) error) (bool, error) {
	return func(yield func(T) error) (bool, error) {
		for _, r := range rows {
			if err := yield(r); err != nil {
				return false, err
			}
		}
		return false, nil
	}
}

func limitFlag(cmd *cobra.Command, limit *int) {
	*limit = 50
	cmd.Flags().Var((*most)(limit), "limit", "print at most this many rows; 0 for all")
}

// most is a flag's number of rows: 0 or more.
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

func sorted(names []string) []string {
	slices.Sort(names)
	return names
}
