package premis

import (
	"bytes"
	"encoding/xml"
	"strings"
	"unicode/utf8"
)

// emitter renders one entity. It keeps the first invalid value in err; the rendering is then
// discarded.
type emitter struct {
	b    bytes.Buffer
	open []string // the open elements below the root
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

// attr is an attribute. Its value is always one of our constants.
type attr struct{ name, value string }

func (e *emitter) indent() { e.raw(strings.Repeat("  ", len(e.open)+1)) }

func (e *emitter) start(name string, attrs ...attr) {
	e.raw("<" + name)
	for _, a := range attrs {
		e.raw(" " + a.name + `="` + a.value + `"`)
	}
	e.raw(">")
}

// nested writes an element with the content that children writes.
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

// leaf writes an element with a value. An empty value is an error.
func (e *emitter) leaf(name, value string, attrs ...attr) {
	switch {
	case strings.TrimSpace(value) == "":
		e.refuse(name, value, "a value is required")
		return
	case !inXML(value):
		e.refuse(name, value, "XML cannot carry one of its characters")
		return
	}
	e.indent()
	e.start(name, attrs...)
	if err := xml.EscapeText(&e.b, []byte(value)); err != nil {
		e.refuse(name, value, err.Error())
	}
	e.raw("</" + name + ">\n")
}

// optional writes an element unless its value is empty.
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

// identifier writes the element prefix with prefixType, prefixValue, and what more writes.
func (e *emitter) identifier(prefix string, id Identifier, more ...func()) {
	e.nested(prefix, func() {
		e.leaf(prefix+"Type", id.Type)
		e.leaf(prefix+"Value", id.Value)
		for _, m := range more {
			m()
		}
	})
}

// identifiers writes identifiers. Fewer than least is an error.
func (e *emitter) identifiers(prefix string, ids []Identifier, least int) {
	if len(ids) < least {
		e.refuse(prefix, "", "at least one is required")
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

// inXML says whether XML 1.0 can carry every character of s.
func inXML(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	return strings.IndexFunc(s, uncarriable) < 0
}

func uncarriable(r rune) bool {
	return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF
}

// Text replaces each character that XML cannot carry with U+FFFD. Never use it for an Identifier:
// two of them could become the same.
func Text(s string) string {
	return strings.Map(func(r rune) rune {
		if uncarriable(r) {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
