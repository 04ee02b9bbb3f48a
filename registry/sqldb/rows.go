package sqldb

import (
	"regexp"
	"strconv"
	"strings"
)

// rowsInto is an INSERT statement for 1, 2, 4 and so on up to 32 rows. So few statements are
// prepared, whatever the number of rows.
type rowsInto struct {
	texts []string
	order []int // which value of a row each parameter is; a value may occur several times
}

// UpdateFrom returns statements that update many rows, for [Tx.InsertRows]. The head ends before FROM.
// The values of one row are v.column1 and so on in the head and in the condition, which says whose
// they are. PostgreSQL takes parameters for texts: the row must cast numbers.
func UpdateFrom(head, row, condition string) rowsInto {
	return InsertOr(head+" FROM (", row, ") AS v WHERE "+condition)
}

var parameter = regexp.MustCompile(`\$\d+`)

// InsertInto returns the statements for a head, which ends before VALUES, and the values of one
// row. The row's parameters are numbered from 1 and may repeat. In the statements each parameter
// occurs once, in order.
func InsertInto(head, row string) rowsInto { return InsertOr(head, row, "") }

// InsertNew is InsertInto for rows that may exist already; existing rows stay unchanged.
func InsertNew(head, row string) rowsInto { return InsertOr(head, row, " ON CONFLICT DO NOTHING") }

// InsertOr is InsertInto with a tail, which says what becomes of existing rows.
func InsertOr(head, row, tail string) (out rowsInto) {
	const sizes = 6
	for _, p := range parameter.FindAllString(row, -1) {
		n, _ := strconv.Atoi(p[1:]) // the pattern matches digits only
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

// InsertRows inserts rows with as few statements as possible.
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

// bareParameters replaces $1, $2 and so on by question marks if each occurs once and in order.
// SQLite's driver looks up the name of every parameter it binds, and SQLite searches all names
// before it. For the 800 parameters of a large insert that took most of the time.
func bareParameters(query string) string {
	for i, p := range parameter.FindAllString(query, -1) {
		if p != "$"+strconv.Itoa(i+1) {
			return query
		}
	}
	return parameter.ReplaceAllString(query, "?")
}

// Limit returns a LIMIT clause. The number is part of the text, because SQLite plans a query anew
// for each value of a parameter.
func Limit(n int) string { return " LIMIT " + strconv.Itoa(n) }

// PowerOfTwo returns the least power of two that is at least n. Limits use it so that there are few
// different statements.
func PowerOfTwo(n int) int {
	most := 1
	for most < n {
		most *= 2
	}
	return most
}
