package sqldb

import (
	"strconv"
	"strings"
)

// Where collects conditions with their arguments.
type Where struct {
	Conds []string
	Args  []any
}

// Bind numbers the ? of a condition, which stand for args.
func (w *Where) Bind(cond string, args ...any) string {
	for _, a := range args {
		w.Args = append(w.Args, a)
		cond = strings.Replace(cond, "?", "$"+strconv.Itoa(len(w.Args)), 1)
	}
	return cond
}

// Add appends a condition whose ? stand for args.
func (w *Where) Add(cond string, args ...any) { w.Conds = append(w.Conds, w.Bind(cond, args...)) }

// AddIn appends a condition that a column has one of some values, which may be none.
func (w *Where) AddIn(column string, values []string) {
	w.Conds = append(w.Conds, w.In(column, values))
}

// Within is addIn for a restriction that there may not be: nil does not restrict.
func (w *Where) Within(column string, values []string) {
	if values != nil {
		w.AddIn(column, values)
	}
}

// In is a condition that a column has one of some values.
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

// String is the conditions as SQL, with WHERE before them.
func (w *Where) String() string { return " WHERE " + strings.Join(w.Conds, " AND ") }

// With is String with one more condition.
func (w *Where) With(cond string) string {
	if cond == "" {
		return w.String()
	}
	return w.String() + " AND " + cond
}

// Contains makes a LIKE pattern that finds text as it is.
func Contains(text string) string { return "%" + Literal(text) + "%" }

// Literal is text in a LIKE pattern, whose escape is the backslash.
func Literal(text string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(text)
}

// Names writes values that are names of ours, letters alone, as an SQL list.
func Names[T ~string](values []T) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = "'" + string(v) + "'"
	}
	return "(" + strings.Join(quoted, ", ") + ")"
}
