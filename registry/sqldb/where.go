package sqldb

import (
	"strconv"
	"strings"
)

// Where collects conditions and their arguments.
type Where struct {
	Conds []string
	Args  []any
}

// Bind replaces each ? in a condition by the number of its argument, adds the arguments, and
// returns the condition.
func (w *Where) Bind(cond string, args ...any) string {
	for _, a := range args {
		w.Args = append(w.Args, a)
		cond = strings.Replace(cond, "?", "$"+strconv.Itoa(len(w.Args)), 1)
	}
	return cond
}

// Add appends a condition, whose ? stand for args.
func (w *Where) Add(cond string, args ...any) { w.Conds = append(w.Conds, w.Bind(cond, args...)) }

// AddIn appends the condition that a column has one of some values. Without values nothing matches.
func (w *Where) AddIn(column string, values []string) {
	w.Conds = append(w.Conds, w.In(column, values))
}

// Within is AddIn for an optional restriction: nil restricts nothing.
func (w *Where) Within(column string, values []string) {
	if values != nil {
		w.AddIn(column, values)
	}
}

// In returns the condition that a column has one of some values.
func (w *Where) In(column string, values []string) string {
	if len(values) == 0 {
		return "(1 = 0)"
	}
	marks := make([]string, len(values))
	for i, v := range values {
		marks[i] = w.Bind("?", v)
	}
	return "(" + column + " IN (" + strings.Join(marks, ", ") + "))"
}

// String returns the WHERE clause.
func (w *Where) String() string { return " WHERE " + strings.Join(w.Conds, " AND ") }

// With returns the WHERE clause with one more condition, unless that is empty.
func (w *Where) With(cond string) string {
	if cond == "" {
		return w.String()
	}
	return w.String() + " AND " + cond
}

// Contains returns a LIKE pattern that finds text literally.
func Contains(text string) string { return "%" + Literal(text) + "%" }

// Literal escapes text for a LIKE pattern, with the backslash as escape.
func Literal(text string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(text)
}

// Names returns constants of ours, which are letters only, as an SQL list.
func Names[T ~string](values []T) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = "'" + string(v) + "'"
	}
	return "(" + strings.Join(quoted, ", ") + ")"
}
