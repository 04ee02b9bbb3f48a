package terminal

import (
	"io"
	"strings"
)

// Facts writes aligned lines of name and value, and omits empty values.
type Facts struct{ lines [][2]string }

// Add adds a line, unless value is empty. A line without a name continues the one above.
func (f *Facts) Add(name, value string) {
	if value != "" {
		f.lines = append(f.lines, [2]string{name, Clean(value)})
	}
}

// Write writes the lines to w.
func (f *Facts) Write(w io.Writer) error {
	longest := 0
	for _, l := range f.lines {
		longest = max(longest, Cells(l[0]))
	}
	var b strings.Builder
	for _, l := range f.lines {
		name := l[0]
		if name != "" { // else the line belongs to the one above
			name += ":"
		}
		b.WriteString(name + strings.Repeat(" ", max(1, longest+3-Cells(name))) + l[1] + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
