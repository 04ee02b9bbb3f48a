package terminal

import (
	"io"
	"strings"
)

// Facts writes aligned lines of name and value, and omits empty values.
type Facts struct{ lines []fact }

type fact struct {
	name, value string
	meaning     Meaning
}

// Add adds a line, unless value is empty. A line without a name continues the one above.
func (f *Facts) Add(name, value string) { f.AddAs(Plain, name, value) }

// AddAs is Add for a value that has the colour of its meaning on a terminal.
func (f *Facts) AddAs(m Meaning, name, value string) {
	if value != "" {
		f.lines = append(f.lines, fact{name: name, value: Clean(value), meaning: m})
	}
}

// Write writes the lines to w.
func (f *Facts) Write(w io.Writer) error {
	longest, paint := 0, PaintFor(w)
	for _, l := range f.lines {
		longest = max(longest, Cells(l.name))
	}
	var b strings.Builder
	for _, l := range f.lines {
		name := l.name
		if name != "" { // else the line belongs to the one above
			name += ":"
		}
		b.WriteString(name + strings.Repeat(" ", max(1, longest+3-Cells(name))) + paint.Word(l.meaning, l.value) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
