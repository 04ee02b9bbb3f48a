package bagit

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
)

// Tag is one metadata element of bag-info.txt (section 2.2.2).
type Tag struct {
	Label string `json:"label"`
	// Value has a line feed where the value continues on a new line, without the indent.
	Value string `json:"value"`

	line        int
	labelSpaced bool // whitespace around the label, allowed before 1.0
	spaces      int  // after the colon; 1.0 requires one
}

// Labels of reserved elements that this package checks. They are compared without regard to case.
const (
	PayloadOxumLabel = "Payload-Oxum"
	BaggingDateLabel = "Bagging-Date"
	bagCountLabel    = "Bag-Count"
)

func (t Tag) decode(enc textEncoding) (Tag, error) {
	label, ok1 := enc.decode(t.Label)
	value, ok2 := enc.decode(t.Value)
	if !ok1 || !ok2 {
		return t, newLineError(t.line, "not "+enc.name, []byte(printable(t.Label+": "+t.Value)))
	}
	t.Label, t.Value = label, value
	return t, nil
}

func scanBagInfo(text io.Reader) iter.Seq2[Tag, error] {
	return func(yield func(Tag, error) bool) {
		lines := newLineScanner(text)
		var open *Tag    // the element that a following line may continue
		var value []byte // of it
		flush := func() bool {
			if open == nil {
				return true
			}
			tag := *open
			open = nil
			tag.Value = string(bytes.TrimRight(value, " \t\n"))
			return yield(tag, nil)
		}
		for line, ok := lines.next(); ok; line, ok = lines.next() {
			if len(line) > 0 && (line[0] == ' ' || line[0] == '\t') && open != nil {
				value = append(append(value, '\n'), bytes.Trim(line, " \t")...)
				if len(value) > maxLine {
					yield(Tag{}, newLineError(lines.n, errLineTooLong.Error(), nil))
					return
				}
				continue
			}
			if !flush() {
				return
			}
			if isBlank(line) {
				continue
			}
			tag, err := parseTagLine(line, lines.n)
			if err != nil {
				if !yield(Tag{}, err) {
					return
				}
				continue
			}
			open, value = &tag, append(value[:0], tag.Value...)
		}
		if !flush() {
			return
		}
		if err := lines.err(); err != nil {
			yield(Tag{}, err)
		}
	}
}

func parseTagLine(line []byte, n int) (Tag, error) {
	before, after, ok := bytes.Cut(line, []byte(":"))
	label := bytes.Trim(before, " \t")
	if !ok || len(label) == 0 {
		return Tag{}, newLineError(n, "not of the form label: value", line)
	}
	value := bytes.TrimLeft(after, " \t")
	return Tag{
		Label:       string(label),
		Value:       string(bytes.TrimRight(value, " \t")),
		line:        n,
		labelSpaced: len(label) != len(before),
		spaces:      len(after) - len(value),
	}, nil
}

// Oxum is the value of Payload-Oxum: the number of octets and files of the payload (section 2.2.2).
type Oxum struct {
	Bytes int64 `json:"bytes"`
	Files int64 `json:"files"`
}

// String returns the value as bag-info.txt spells it.
func (o Oxum) String() string { return fmt.Sprintf("%d.%d", o.Bytes, o.Files) }

// ParseOxum reads the value of Payload-Oxum. It returns false for anything but two decimal numbers
// around a dot.
func ParseOxum(s string) (Oxum, bool) {
	octets, files, ok := strings.Cut(s, ".")
	if !ok || !allDigits(octets) || !allDigits(files) {
		return Oxum{}, false
	}
	b, err1 := strconv.ParseInt(octets, 10, 64)
	n, err2 := strconv.ParseInt(files, 10, 64)
	return Oxum{Bytes: b, Files: n}, err1 == nil && err2 == nil
}
