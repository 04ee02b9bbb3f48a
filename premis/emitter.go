package premis

import (
	"bytes"
	"encoding/xml"
	"strings"
	"unicode/utf8"
)

// emitter renders one entity. The first value that cannot be written is kept in err, and the
// rendering is void.
type emitter struct {
	b    bytes.Buffer
	open []string // the elements that are open, below the root
	err  error
}

func (e *emitter) reset() {
	e.b.Reset()
	e.open, e.err = e.open[:0], nil
}

func (e *emitter) raw(s string) { e.b.WriteString(s) }

func (e *emitter) header() {
	e.raw(xml.Header + `<premis xmlns="` + namespace + `" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="` +
		schemaLocation + `" version="3.0">` + "\n")
}

// attr is an attribute whose value is one of our own constants.
type attr struct{ name, value string }

func (e *emitter) indent() { e.raw(strings.Repeat("  ", len(e.open)+1)) }

func (e *emitter) start(name string, attrs ...attr) {
	e.raw("<" + name)
	for _, a := range attrs {
		e.raw(" " + a.name + `="` + a.value + `"`)
	}
	e.raw(">")
}

// nested writes an element that holds what children writes.
func (e *emitter) nested(name string, children func(), attrs ...attr) {
	e.indent()
	e.start(name, attrs...)
	e.raw("\n")
	e.open = append(e.open, name)
	children()
	e.open = e.open[:len(e.open)-1]
	e.indent()
	e.raw("</" + name + ">\n")
}

// leaf writes an element that must have a value.
func (e *emitter) leaf(name, value string, attrs ...attr) {
	switch {
	case strings.TrimSpace(value) == "":
		e.refuse(name, value, "it must have a value")
		return
	case !inXML(value):
		e.refuse(name, value, "it holds a character that XML cannot carry")
		return
	}
	e.indent()
	e.start(name, attrs...)
	if err := xml.EscapeText(&e.b, []byte(value)); err != nil {
		e.refuse(name, value, err.Error())
	}
	e.raw("</" + name + ">\n")
}

// optional writes an element if it has a value.
func (e *emitter) optional(name, value string, attrs ...attr) {
	if value != "" {
		e.leaf(name, value, attrs...)
	}
}

func (e *emitter) each(name string, values []string) {
	for _, v := range values {
		e.leaf(name, v)
	}
}

// identifier writes prefix, prefixType and prefixValue, and whatever more belongs into the element.
func (e *emitter) identifier(prefix string, id Identifier, more ...func()) {
	e.nested(prefix, func() {
		e.leaf(prefix+"Type", id.Type)
		e.leaf(prefix+"Value", id.Value)
		for _, m := range more {
			m()
		}
	})
}

// identifiers writes any number of identifiers, at least min.
func (e *emitter) identifiers(prefix string, ids []Identifier, least int) {
	if len(ids) < least {
		e.refuse(prefix, "", "there must be one at least")
	}
	for _, id := range ids {
		e.identifier(prefix, id)
	}
}

func (e *emitter) refuse(element, value, reason string) {
	if e.err == nil {
		e.err = &ValueError{Element: element, Value: value, Reason: reason}
	}
}

// inXML reports whether XML 1.0 can carry every character of s.
func inXML(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	return strings.IndexFunc(s, uncarriable) < 0
}

func uncarriable(r rune) bool {
	return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF
}

// Text returns a text as XML can carry it: what it cannot is U+FFFD. An Identifier must not be made so, or two might come to one.
func Text(s string) string {
	return strings.Map(func(r rune) rune {
		if uncarriable(r) {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
