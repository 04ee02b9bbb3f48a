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

// Query is a parsed query (docs/query.md): terms, all of which must match. The zero value matches
// everything. Package registry/query reads it from a text; String writes it so that it is read back
// unchanged.
type Query struct {
	Terms []Term `json:"terms"`
}

// Term is one condition.
type Term struct {
	Field string `json:"field"` // "" is free text
	Value string `json:"value"` // as registry/query spells it; several of a field that takes a list are separated by commas
	Not   bool   `json:"not"`
}

// String writes a term as registry/query reads it.
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

// String writes the query in words that registry/query reads back unchanged.
func (q Query) String() string {
	words := make([]string, len(q.Terms))
	for i, t := range q.Terms {
		words[i] = t.String()
	}
	return strings.Join(words, " ")
}

// QueryError says what is wrong with a query, and where.
type QueryError struct {
	Position int      `json:"position"` // of Word's first character, from 1
	Word     string   `json:"word"`     // what is wrong
	Problem  string   `json:"problem"`  // a sentence without its end
	Known    []string `json:"known"`
}

// Error names the word, its place and what is known instead.
func (e *QueryError) Error() string {
	text := fmt.Sprintf("query, character %d: %s", e.Position, e.Problem)
	if len(e.Known) > 0 {
		text += "; known are " + strings.Join(e.Known, ", ")
	}
	return text
}
