package registry

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of a query.
const (
	MaxQueryBytes = 2000
	MaxQueryTerms = 50
)

// Query is a parsed query (docs/query.md): terms, all of which must match. The zero value matches everything. It is
// made by [ParseQuery] and told by String, which ParseQuery takes back unchanged.
type Query struct {
	Terms []Term `json:"terms"`
}

// Term is one condition.
type Term struct {
	Field string `json:"field"` // "" is free text
	Value string `json:"value"` // as [ParseQuery] spells it; several of a field that takes a list are separated by commas
	Not   bool   `json:"not"`
}

// Values are the values of a term, any of which matches: several for a field that takes a list, otherwise one.
func (t Term) Values() []string {
	if f, ok := queryField(t.Field); ok && f.list {
		return strings.Split(t.Value, ",")
	}
	return []string{t.Value}
}

// String writes a term as ParseQuery reads it.
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

// String writes the query in words that ParseQuery takes back unchanged.
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

// ParseQuery reads a query: words that are separated by spaces, each a piece of text to be found or field:value. A value,
// or a text, with spaces stands in quotes, in which a backslash makes a quote or a backslash literal; a minus sign in front
// of a word turns it round. What stands for a field or a state is read without regard to case. [QueryFields] lists the
// fields. An empty text is the query that matches everything. The error is a *QueryError.
func ParseQuery(text string) (Query, error) {
	if len(text) > MaxQueryBytes {
		return Query{}, &QueryError{Position: 1, Problem: fmt.Sprintf("it is %d bytes long; at most %d are taken", len(text), MaxQueryBytes)}
	}
	if !utf8.ValidString(text) {
		return Query{}, &QueryError{Position: 1, Problem: "it is not UTF-8"}
	}
	p := queryParser{text: text}
	var q Query
	for p.skipSpace(); p.at < len(p.text); p.skipSpace() {
		start := p.at
		if len(q.Terms) == MaxQueryTerms {
			return Query{}, p.fault(start, fmt.Sprintf("it has more than %d words", MaxQueryTerms))
		}
		t, err := p.term()
		if err != nil {
			return Query{}, err
		}
		q.Terms = append(q.Terms, t)
	}
	// Quotes may make what is said longer than what was read.
	if n := len(q.String()); n > MaxQueryBytes {
		return Query{}, &QueryError{Position: 1, Problem: fmt.Sprintf("it is %d bytes long when it is written out; at most %d are taken", n, MaxQueryBytes)}
	}
	return q, nil
}

// queryParser walks over the text of a query.
type queryParser struct {
	text string
	at   int // the next byte
}

func (p *queryParser) skipSpace() {
	for p.at < len(p.text) {
		r, size := utf8.DecodeRuneInString(p.text[p.at:])
		if !unicode.IsSpace(r) {
			return
		}
		p.at += size
	}
}

// fault is an error about the word that begins at a byte and ends where the parser stands, or with the word.
func (p *queryParser) fault(start int, problem string, known ...string) error {
	end := max(p.at, start)
	for end < len(p.text) && p.text[end] != ' ' {
		end++
	}
	return &QueryError{
		Position: utf8.RuneCountInString(p.text[:start]) + 1, Word: strings.TrimSpace(p.text[start:end]), Problem: problem, Known: known,
	}
}

// term reads one word.
func (p *queryParser) term() (Term, error) {
	start := p.at
	var t Term
	if p.text[p.at] == '-' {
		t.Not = true
		p.at++
	}
	name := p.fieldName()
	field, known := queryField(name)
	if name != "" && !known {
		if strings.HasPrefix(p.text[p.at+len(name)+1:], "/") {
			name = "" // an ARK or an address is text
		} else {
			return t, p.unknownField(start, name)
		}
	}
	if name != "" {
		p.at += len(name) + 1
		t.Field = field.name
	}
	from := p.at
	value, err := p.value()
	switch {
	case err != nil:
		return t, err
	case value == "" && t.Field != "":
		return t, p.fault(start, fmt.Sprintf("%s needs a value, such as %s:%s", t.Field, t.Field, field.example))
	case value == "":
		return t, p.fault(start, "there is nothing to look for")
	}
	if bad := strings.IndexFunc(value, unicode.IsControl); bad >= 0 {
		return t, p.fault(start, fmt.Sprintf("%q has a control character", value))
	}
	t.Value = value
	if t.Field != "" {
		var wrong *valueError
		if t.Value, wrong = field.read(value); wrong != nil {
			return t, p.fault(from, wrong.problem, wrong.known...)
		}
	}
	return t, nil
}

// fieldName returns the letters before a colon at which the parser stands, "" when there are none.
func (p *queryParser) fieldName() string {
	rest := p.text[p.at:]
	n := strings.IndexFunc(rest, func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '-' && r != '_' })
	if n < 1 || rest[n] != ':' {
		return ""
	}
	return rest[:n]
}

// value reads what a term looks for, and stops behind it.
func (p *queryParser) value() (string, error) {
	start := p.at
	if p.at == len(p.text) || p.text[p.at] != '"' {
		n := strings.IndexFunc(p.text[p.at:], unicode.IsSpace)
		if n < 0 {
			n = len(p.text) - p.at
		}
		p.at += n
		return p.text[start:p.at], nil
	}
	var b strings.Builder
	for p.at++; p.at < len(p.text); p.at++ {
		c := p.text[p.at]
		switch {
		case c == '\\' && p.at+1 < len(p.text) && (p.text[p.at+1] == '"' || p.text[p.at+1] == '\\'):
			p.at++
			b.WriteByte(p.text[p.at])
		case c == '"':
			p.at++
			if r, _ := utf8.DecodeRuneInString(p.text[p.at:]); p.at < len(p.text) && !unicode.IsSpace(r) {
				return "", p.fault(start, "there is no space behind the closing quote")
			}
			return b.String(), nil
		default:
			b.WriteByte(c)
		}
	}
	return "", p.fault(start, "the quote is not closed")
}

func (p *queryParser) unknownField(start int, name string) error {
	problem := fmt.Sprintf("%q is no field", strings.ToLower(name))
	if near := Nearest(strings.ToLower(name), queryFieldNames()); near != "" {
		problem += fmt.Sprintf("; did you mean %s?", near)
	} else {
		problem += "; text with a colon stands in quotes"
	}
	return p.fault(start, problem, queryFieldNames()...)
}

// Nearest returns the name that differs least from a word, "" when none is near.
func Nearest(word string, names []string) string {
	best, least := "", 3
	for _, n := range names {
		if d := distance(word, n); d < least && d < len(n) {
			best, least = n, d
		}
	}
	return best
}

// distance counts the letters that must be added, left out or replaced to make one word of another (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := before
			if a[i] != b[j] {
				cost++
			}
			before = row[j+1]
			row[j+1] = min(cost, row[j]+1, before+1)
		}
	}
	return row[len(b)]
}

func queryFieldNames() []string {
	fields := QueryFields()
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
	}
	slices.Sort(names)
	return names
}
