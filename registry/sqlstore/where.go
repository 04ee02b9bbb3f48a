package sqlstore

import (
	"strconv"
	"strings"
)

// where collects conditions with their arguments.
type where struct {
	conds []string
	args  []any
}

// bind numbers the ? of a condition, which stand for args.
func (w *where) bind(cond string, args ...any) string {
	for _, a := range args {
		w.args = append(w.args, a)
		cond = strings.Replace(cond, "?", "$"+strconv.Itoa(len(w.args)), 1)
	}
	return cond
}

// add appends a condition whose ? stand for args.
func (w *where) add(cond string, args ...any) { w.conds = append(w.conds, w.bind(cond, args...)) }

// addIn appends a condition that a column has one of some values, which may be none.
func (w *where) addIn(column string, values []string) {
	w.conds = append(w.conds, w.in(column, values))
}

func (w *where) in(column string, values []string) string {
	if len(values) == 0 {
		return "(1 = 0)"
	}
	marks := make([]string, len(values))
	for i, v := range values {
		marks[i] = w.bind("?", v)
	}
	return "(" + column + " IN (" + strings.Join(marks, ", ") + "))"
}

// String is the conditions as SQL, with WHERE before them.
func (w *where) String() string { return " WHERE " + strings.Join(w.conds, " AND ") }

// with is String with one more condition.
func (w *where) with(cond string) string {
	if cond == "" {
		return w.String()
	}
	return w.String() + " AND " + cond
}

// contains makes a LIKE pattern that finds text as it is.
func contains(text string) string { return "%" + literal(text) + "%" }

// literal is text in a LIKE pattern, whose escape is the backslash.
func literal(text string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(text)
}

// names writes values that are names of ours, letters alone, as an SQL list.
func names[T ~string](values []T) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = "'" + string(v) + "'"
	}
	return "(" + strings.Join(quoted, ", ") + ")"
}
