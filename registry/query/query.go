// Package query parses the query language of lists (docs/query.md) into registry.Query: words, and
// fields with values. Its errors say what is wrong in a text, and where. Package registry/search
// executes queries.
package query

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast/holdfast/registry"
)

// Values returns the values of a term, any of which may match: several for a field that takes a
// list, otherwise one.
func Values(t registry.Term) []string {
	if f, ok := fieldNamed(t.Field); ok && f.list {
		return strings.Split(t.Value, ",")
	}
	return []string{t.Value}
}

// Parse parses a query: words separated by spaces, each a text or field:value. A text or value that
// contains spaces stands in quotes, in which a backslash escapes a quote or a backslash. A minus
// sign in front of a word negates it. Fields and states may be upper or lower case; [Fields] lists
// them. An empty text matches everything. Errors are *registry.QueryError.
func Parse(text string) (registry.Query, error) {
	if len(text) > registry.MaxQueryBytes {
		return registry.Query{}, &registry.QueryError{Position: 1, Problem: fmt.Sprintf("the query is %d bytes long; the limit is %d bytes", len(text), registry.MaxQueryBytes)}
	}
	if !utf8.ValidString(text) {
		return registry.Query{}, &registry.QueryError{Position: 1, Problem: "the query is not UTF-8"}
	}
	p := parser{text: text}
	var q registry.Query
	for p.skipSpace(); p.at < len(p.text); p.skipSpace() {
		start := p.at
		if len(q.Terms) == registry.MaxQueryTerms {
			return registry.Query{}, p.fault(start, fmt.Sprintf("the query has more than %d words", registry.MaxQueryTerms))
		}
		t, err := p.term()
		if err != nil {
			return registry.Query{}, err
		}
		q.Terms = append(q.Terms, t)
	}
	// The normal form may be longer, because of quotes.
	if n := len(q.String()); n > registry.MaxQueryBytes {
		return registry.Query{}, &registry.QueryError{Position: 1, Problem: fmt.Sprintf("the query is %d bytes long in its normal form; the limit is %d bytes", n, registry.MaxQueryBytes)}
	}
	return q, nil
}

// parser reads the text of a query.
type parser struct {
	text string
	at   int // index of the next byte
}

func (p *parser) skipSpace() {
	for p.at < len(p.text) {
		r, size := utf8.DecodeRuneInString(p.text[p.at:])
		if !unicode.IsSpace(r) {
			return
		}
		p.at += size
	}
}

// fault returns an error about the word that begins at a byte and ends at the parser's position, or
// at the word's end if that is later.
func (p *parser) fault(start int, problem string, known ...string) error {
	end := max(p.at, start)
	for end < len(p.text) && p.text[end] != ' ' {
		end++
	}
	return &registry.QueryError{
		Position: utf8.RuneCountInString(p.text[:start]) + 1, Word: strings.TrimSpace(p.text[start:end]), Problem: problem, Known: known,
	}
}

// term parses one word.
func (p *parser) term() (registry.Term, error) {
	start := p.at
	var t registry.Term
	if p.text[p.at] == '-' {
		t.Not = true
		p.at++
	}
	name := p.fieldName()
	field, known := fieldNamed(name)
	if name != "" && !known {
		if strings.HasPrefix(p.text[p.at+len(name)+1:], "/") {
			name = "" // an ARK or a URL is text
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
		return t, p.fault(start, "the word is empty")
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

// fieldName returns the letters before a colon at the parser's position, or "".
func (p *parser) fieldName() string {
	rest := p.text[p.at:]
	n := strings.IndexFunc(rest, func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '-' && r != '_' })
	if n < 1 || rest[n] != ':' {
		return ""
	}
	return rest[:n]
}

// value parses what a term looks for, and stops behind it.
func (p *parser) value() (string, error) {
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
				return "", p.fault(start, "a space is missing after the closing quote")
			}
			return b.String(), nil
		default:
			b.WriteByte(c)
		}
	}
	return "", p.fault(start, "the quote is not closed")
}

func (p *parser) unknownField(start int, name string) error {
	problem := fmt.Sprintf("unknown field %q", strings.ToLower(name))
	if near := registry.Nearest(strings.ToLower(name), fieldNames()); near != "" {
		problem += fmt.Sprintf("; did you mean %s?", near)
	} else {
		problem += "; to search for text that contains a colon, quote it"
	}
	return p.fault(start, problem, fieldNames()...)
}

func fieldNames() []string {
	fields := Fields()
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
	}
	slices.Sort(names)
	return names
}
