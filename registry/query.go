package registry

import (
	"fmt"
	"strings"
	"unicode"
)

// Bounds of a query.
const (
	MaxQueryBytes = 2000
	MaxQueryTerms = 50
)

// Query is a parsed query (docs/query.md): terms that must all match. The zero value matches
// everything. Package registry/query parses it; String is the inverse.
type Query struct {
	Terms []Term `json:"terms"`
}

// Term is one condition.
type Term struct {
	Field string `json:"field"` // "" is free text
	Value string `json:"value"` // in normal form; commas separate several values
	Not   bool   `json:"not"`
}

// String returns the term in the query language.
func (t Term) String() string {
	var b strings.Builder
	if t.Not {
		b.WriteByte('-')
	}
	if t.Field != "" {
		b.WriteString(t.Field + ":")
	}
	bare := t.Value != "" && t.Value[0] != '"' && !strings.ContainsFunc(t.Value, unicode.IsSpace)
	if t.Field == "" && (strings.HasPrefix(t.Value, "-") || strings.Contains(t.Value, ":")) {
		bare = false
	}
	if bare {
		b.WriteString(t.Value)
	} else {
		b.WriteString(`"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(t.Value) + `"`)
	}
	return b.String()
}

// String returns the query in the query language. Parsing it returns the same query.
func (q Query) String() string {
	words := make([]string, len(q.Terms))
	for i, t := range q.Terms {
		words[i] = t.String()
	}
	return strings.Join(words, " ")
}

// QueryError says what is wrong in a query, and where.
type QueryError struct {
	Position int      `json:"position"` // of Word's first character, from 1
	Word     string   `json:"word"`     // the word in question
	Problem  string   `json:"problem"`  // a sentence without a full stop
	Known    []string `json:"known"`
}

// Error gives the place, the problem and the known values.
func (e *QueryError) Error() string {
	text := fmt.Sprintf("query, character %d: %s", e.Position, e.Problem)
	if len(e.Known) > 0 {
		text += "; known are " + strings.Join(e.Known, ", ")
	}
	return text
}
