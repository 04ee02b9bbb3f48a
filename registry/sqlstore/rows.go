package sqlstore

import (
	"regexp"
	"strconv"
	"strings"
)

// rowsInto is a statement that writes rows, for 1, 2, 4 and so on up to 32 of them: few statements are prepared, however many
// rows there are.
type rowsInto []string

var parameter = regexp.MustCompile(`\$\d+`)

// insertInto makes the statements from what stands before VALUES and the values of a row, whose parameters are numbered
// from 1 to as many as there are.
func insertInto(head, row string, parameters int) (out rowsInto) {
	const sizes = 6
	var b strings.Builder
	b.WriteString(head + " VALUES ")
	rows := 0
	for size := range sizes {
		for ; rows < 1<<size; rows++ {
			if rows > 0 {
				b.WriteString(", ")
			}
			b.WriteString(parameter.ReplaceAllStringFunc(row, func(p string) string {
				n, _ := strconv.Atoi(p[1:]) // it is digits
				return "$" + strconv.Itoa(rows*parameters+n)
			}))
		}
		out = append(out, b.String())
	}
	return out
}

// insertRows writes rows, as many a statement as can be.
func (t *tx) insertRows(into rowsInto, rows [][]any) error {
	for size := len(into) - 1; len(rows) > 0; {
		for 1<<size > len(rows) {
			size--
		}
		var args []any
		for _, r := range rows[:1<<size] {
			args = append(args, r...)
		}
		if err := t.do(into[size], args...); err != nil {
			return err
		}
		rows = rows[1<<size:]
	}
	return nil
}

// limit ends a query after n rows. It is a part of the text: SQLite would plan the query anew for each value of a parameter.
func limit(n int) string { return " LIMIT " + strconv.Itoa(n) }

// doubled is the least power of two that is not below n, for limits of which there shall not be too many.
func doubled(n int) int {
	most := 1
	for most < n {
		most *= 2
	}
	return most
}
