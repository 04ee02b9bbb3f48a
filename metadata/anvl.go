package metadata

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// maxFaults bounds the faults that a reader reports for one file.
const maxFaults = 100

// Element is one name and value of an ANVL record.
type Element struct {
	Label string
	Value string
	Line  int // in the file that was read, from 1; writers ignore it
}

// Record is an ANVL record: elements in order. Labels may repeat.
type Record []Element

// Add returns the record with an element appended.
func (r Record) Add(label, value string) Record {
	return append(r, Element{Label: label, Value: value})
}

// First returns the first value with this label, ignoring case, and whether there is one.
func (r Record) First(label string) (string, bool) {
	for _, e := range r {
		if strings.EqualFold(e.Label, label) {
			return e.Value, true
		}
	}
	return "", false
}

// Separator is the text between the colon and the value.
type Separator string

// The separators in Merritt's files.
const (
	Space Separator = " "
	Tab   Separator = "\t"
)

// ReadANVL reads all records of an ANVL text. A record ends at a blank line. A line that begins
// with white space continues the value above, joined by one space. A line that begins with "#" is a
// comment. Lines end with LF, CRLF or CR.
//
// Escapes %XX in labels and values are decoded. Exceptions are %00 and escapes that would not give
// UTF-8, which were meant literally.
//
// Faults are *SyntaxError, up to 100 of them joined; then no records are returned. A text above
// MaxSize is ErrTooLarge.
func ReadANVL(r io.Reader) ([]Record, error) {
	text, err := readAll(r, MaxSize)
	if err != nil {
		return nil, err
	}
	var p anvlParser
	for i, line := range splitLines(text) {
		p.line(i+1, line)
	}
	p.endRecord()
	if len(p.faults) > 0 {
		return nil, errors.Join(p.faults...)
	}
	return p.records, nil
}

type anvlParser struct {
	records []Record
	record  Record
	value   []string // lines of the current value
	faults  []error
	// skipping is set after a faulty line, so that its continuation lines are not further faults.
	skipping bool
}

func (p *anvlParser) line(n int, line string) {
	blank := strings.Trim(line, " \t") == ""
	switch {
	case blank:
		p.endRecord()
	case !utf8.ValidString(line):
		p.fault(n, "it is not UTF-8")
	case strings.ContainsRune(line, 0):
		p.fault(n, "it holds a NUL")
	case line[0] == '#':
	case line[0] == ' ' || line[0] == '\t':
		switch {
		case p.skipping:
		case len(p.record) == 0:
			p.fault(n, "it is indented but continues nothing")
		default:
			p.value = append(p.value, strings.Trim(line, " \t"))
		}
	default:
		p.element(n, line)
	}
}

func (p *anvlParser) element(n int, line string) {
	p.endValue()
	label, value, found := strings.Cut(line, ":")
	label = strings.Trim(label, " \t")
	switch {
	case !found:
		p.fault(n, "it has no colon after the label")
	case label == "":
		p.fault(n, "it has no label before the colon")
	default:
		p.skipping = false
		p.record = append(p.record, Element{Label: unescape(label), Line: n})
		p.value = append(p.value[:0], strings.Trim(value, " \t"))
	}
}

func (p *anvlParser) endValue() {
	if len(p.record) > 0 && len(p.value) > 0 {
		joined := strings.Trim(strings.Join(p.value, " "), " ")
		p.record[len(p.record)-1].Value = unescape(joined)
	}
	p.value = p.value[:0]
}

func (p *anvlParser) endRecord() {
	p.endValue()
	if len(p.record) > 0 {
		p.records = append(p.records, p.record)
	}
	p.record, p.skipping = nil, false
}

func (p *anvlParser) fault(n int, reason string) {
	p.skipping = true
	if len(p.faults) < maxFaults {
		p.faults = append(p.faults, &SyntaxError{Line: n, Reason: reason})
	}
}

// WriteANVL writes one record, one line per element, without a blank line at the end. It escapes
// values with EscapeValue and labels with EscapeLabel, so ReadANVL returns them unchanged. An empty
// value gives just "label:".
//
// For a value that cannot be written (not UTF-8, or with a NUL) it returns a *FieldError and writes
// nothing.
func WriteANVL(w io.Writer, sep Separator, r Record) error {
	return writeANVL(w, "ANVL", sep, r)
}

func writeANVL(w io.Writer, file string, sep Separator, r Record) error {
	var b strings.Builder
	for _, e := range r {
		switch {
		case e.Label == "":
			return &FieldError{File: file, Field: "label", Reason: "is empty"}
		case !carriable(e.Label):
			return &FieldError{File: file, Field: fmt.Sprintf("label %q", e.Label), Reason: "is not UTF-8 or holds a NUL"}
		case !carriable(e.Value):
			return &FieldError{File: file, Field: e.Label, Reason: "is not UTF-8 or holds a NUL"}
		}
		b.WriteString(EscapeLabel(e.Label) + ":")
		if e.Value != "" {
			b.WriteString(string(sep) + EscapeValue(e.Value))
		}
		b.WriteByte('\n')
	}
	return writeWhole(w, file, b.String())
}

// writeWhole writes the finished text in one call, so that a refused value never leaves half a
// file.
func writeWhole(w io.Writer, file, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}

func carriable(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// EscapeValue escapes s for an ANVL value: "%", control characters, and white space at either end
// become %XX.
func EscapeValue(s string) string { return escape(s, false) }

// EscapeLabel escapes s for an ANVL label: like EscapeValue, and also ":", a leading "#" and a
// leading byte order mark, which at the start of a file would not count as part of the label.
func EscapeLabel(s string) string { return escape(s, true) }

func escape(s string, label bool) string {
	first := len(s) - len(strings.TrimLeft(s, " "))
	end := len(strings.TrimRight(s, " "))
	mark := 0
	if label && strings.HasPrefix(s, byteOrderMark) {
		mark = len(byteOrderMark)
	}
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		edge := c == ' ' && (i < first || i >= end)
		if c == '%' || c < ' ' || c == 0x7f || edge || i < mark || label && (c == ':' || c == '#' && i == 0) {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

func unescape(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if hi, lo := hexValue(s[i+1]), hexValue(s[i+2]); hi >= 0 && lo >= 0 && hi+lo > 0 {
				b = append(b, byte(hi<<4|lo))
				i += 2
				continue
			}
		}
		b = append(b, s[i])
	}
	if !utf8.Valid(b) {
		return s
	}
	return string(b)
}

func hexValue(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	default:
		return -1
	}
}
