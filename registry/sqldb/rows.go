package sqldb

import (
	"regexp"
	"strconv"
	"strings"
)

// rowsInto is a statement that writes rows, for 1, 2, 4 and so on up to 32 of them: few statements
// are prepared, however many rows there are.
type rowsInto struct {
	texts []string
	order []int // which value of a row each parameter has: one may stand in several places
}

var parameter = regexp.MustCompile(`\$\d+`)

// InsertInto makes the statements from what stands before VALUES and the values of a row, whose
// parameters are numbered from 1. In the statements they are numbered by their places, each once.
func InsertInto(head, row string) rowsInto { return rowsStatements(head, row, "") }

// InsertNew is as insertInto; rows that are there already stay as they are.
func InsertNew(head, row string) rowsInto {
	return rowsStatements(head, row, " ON CONFLICT DO NOTHING")
}

func rowsStatements(head, row, tail string) (out rowsInto) {
	const sizes = 6
	for _, p := range parameter.FindAllString(row, -1) {
		n, _ := strconv.Atoi(p[1:]) // it is digits
		out.order = append(out.order, n-1)
	}
	var b strings.Builder
	b.WriteString(head + " VALUES ")
	rows, at := 0, 0
	for size := range sizes {
		for ; rows < 1<<size; rows++ {
			if rows > 0 {
				b.WriteString(", ")
			}
			b.WriteString(parameter.ReplaceAllStringFunc(row, func(string) string {
				at++
				return "$" + strconv.Itoa(at)
			}))
		}
		out.texts = append(out.texts, b.String()+tail)
	}
	return out
}

// InsertRows writes rows, as many a statement as can be.
func (t *Tx) InsertRows(into rowsInto, rows [][]any) error {
	for size := len(into.texts) - 1; len(rows) > 0; {
		for 1<<size > len(rows) {
			size--
		}
		args := make([]any, 0, len(into.order)<<size)
		for _, r := range rows[:1<<size] {
			for _, i := range into.order {
				args = append(args, r[i])
			}
		}
		if err := t.Do(into.texts[size], args...); err != nil {
			return err
		}
		rows = rows[1<<size:]
	}
	return nil
}

// bareParameters writes the parameters of a statement as question marks where each stands once, and
// in order. The driver of SQLite asks for the name of every parameter that it binds, and SQLite
// goes through all names before it: with the 800 of a large insert that took more time than
// anything else.
func bareParameters(query string) string {
	for i, p := range parameter.FindAllString(query, -1) {
		if p != "$"+strconv.Itoa(i+1) {
			return query
		}
	}
	return parameter.ReplaceAllString(query, "?")
}

// Limit ends a query after n rows. It is a part of the text: SQLite would plan the query anew for
// each value of a parameter.
func Limit(n int) string { return " LIMIT " + strconv.Itoa(n) }

// Doubled is the least power of two that is not below n, for limits of which there shall not be too
// many.
func Doubled(n int) int {
	most := 1
	for most < n {
		most *= 2
	}
	return most
}
