package terminal

import (
	"bufio"
	"io"
	"math"
	"strings"
)

// Column is one column of a table. A table that is too wide for the terminal is narrowed in this
// order: text goes below its row, ids are cut, spare columns are hidden, flexible columns are
// shortened.
type Column struct {
	Name  string
	Right bool // numbers
	ID    bool // an item's id, which may be cut to its beginning
	Flex  bool // may be shortened to fit the terminal; not for identifiers, which people copy
	Below int  // if positive, the text may go below its row, in at most this many lines
	Spare int  // if positive, the column may be hidden for want of room, the highest first
	// Meaning gives a value its colour on a terminal; nil: none has one.
	Meaning func(value string) Meaning
}

// tableBuffer is the number of rows that determine the widths. Later rows may be wider.
const tableBuffer = 500

// No column becomes narrower than flexLeast. Spare columns are hidden before any column becomes
// narrower than flexGood.
const (
	flexLeast = 8
	flexGood  = 16
)

// table writes aligned rows. It holds back the first rows to find the widths, and writes the others
// as they come, so it may have any length.
type table struct {
	w       *bufio.Writer
	limit   int // columns of the terminal; 0: no limit
	paint   Paint
	columns []Column
	hidden  []bool // hidden columns
	under   bool   // text goes below its row
	short   bool   // ids are cut
	exact   bool   // no line is longer than limit, whatever is in it
	pending [][]string
	widths  []int
}

// NewTable returns a table for w with the width limit in columns, 0 for no limit.
func NewTable(w io.Writer, limit int, columns ...Column) *table {
	return &table{w: bufio.NewWriter(w), limit: limit, paint: PaintFor(w), columns: columns}
}

// ForScreen makes the table fit a Screen: it uses colours, or not, whatever it writes to, and cuts long
// words below rows, too. It returns the table.
func (t *table) ForScreen(p Paint) *table {
	t.paint, t.exact = p, true
	return t
}

// Row adds a row: one value for each column.
func (t *table) Row(values ...string) error {
	for i := range values {
		values[i] = Clean(values[i])
	}
	if t.widths != nil {
		return t.write(values)
	}
	t.pending = append(t.pending, values)
	if len(t.pending) < tableBuffer {
		return nil
	}
	return t.begin()
}

// End writes the remaining rows. A table without rows writes nothing.
func (t *table) End() error {
	if t.widths == nil && len(t.pending) > 0 {
		if err := t.begin(); err != nil {
			return err
		}
	}
	return t.w.Flush()
}

// begin determines the widths, and writes the head and the rows held back.
func (t *table) begin() error {
	t.widths, t.hidden = make([]int, len(t.columns)), make([]bool, len(t.columns))
	head := make([]string, len(t.columns))
	for i, c := range t.columns {
		head[i] = strings.ToUpper(c.Name)
		t.measure(i)
	}
	t.fit()
	if err := t.line(head, false); err != nil {
		return err
	}
	for _, row := range t.pending {
		if err := t.write(row); err != nil {
			return err
		}
	}
	t.pending = nil
	return nil
}

// measure determines the width of a column.
func (t *table) measure(i int) {
	t.widths[i] = Cells(t.columns[i].Name)
	for _, row := range t.pending {
		t.widths[i] = max(t.widths[i], Cells(t.cell(i, row[i])))
	}
}

// cell returns a value as its column shows it.
func (t *table) cell(i int, value string) string {
	if t.short && t.columns[i].ID {
		return ShortID(value)
	}
	return value
}

// fit narrows the table to the terminal.
func (t *table) fit() {
	if t.limit <= 0 || t.total(math.MaxInt) <= t.limit {
		return
	}
	for i, c := range t.columns {
		if c.Below > 0 {
			t.under, t.hidden[i] = true, true
		}
	}
	if t.total(math.MaxInt) > t.limit && t.distinct() {
		t.short = true
		for i, c := range t.columns {
			if c.ID {
				t.measure(i)
			}
		}
	}
	for t.total(flexGood) > t.limit && t.leaveOut() {
	}
	for total := t.total(math.MaxInt); total > t.limit; total-- {
		widest := -1
		for i, c := range t.columns {
			if c.Flex && !t.hidden[i] && t.widths[i] > flexLeast && (widest < 0 || t.widths[i] > t.widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		t.widths[widest]--
	}
}

// total returns the width of the table if flexible columns have at most flex.
func (t *table) total(flex int) int {
	total := -2
	for i, c := range t.columns {
		switch {
		case t.hidden[i]:
			continue
		case c.Flex:
			total += min(t.widths[i], flex)
		default:
			total += t.widths[i]
		}
		total += 2
	}
	return total
}

// leaveOut hides the column with the highest Spare. It returns false if there is none.
func (t *table) leaveOut() bool {
	first := -1
	for i, c := range t.columns {
		if c.Spare > 0 && !t.hidden[i] && (first < 0 || c.Spare > t.columns[first].Spare) {
			first = i
		}
	}
	if first >= 0 {
		t.hidden[first] = true
	}
	return first >= 0
}

// distinct reports whether the cut ids of the rows differ.
func (t *table) distinct() bool {
	whole := map[string]string{}
	for _, row := range t.pending {
		for i, c := range t.columns {
			if !c.ID {
				continue
			}
			if other, ok := whole[ShortID(row[i])]; ok && other != row[i] {
				return false
			}
			whole[ShortID(row[i])] = row[i]
		}
	}
	return true
}

// write writes a row and the text below it.
func (t *table) write(values []string) error {
	if err := t.line(values, true); err != nil || !t.under {
		return err
	}
	for i, c := range t.columns {
		if c.Below == 0 || values[i] == "" {
			continue
		}
		lines := Wrapped(c.Name+": "+values[i], t.limit-len(belowIndent), c.Below)
		for j := range lines {
			if t.exact {
				lines[j] = cut(lines[j], t.limit-len(belowIndent))
			}
		}
		if _, err := t.w.WriteString(belowIndent + strings.Join(lines, "\n"+belowIndent) + "\n"); err != nil {
			return err
		}
	}
	return nil
}

// belowIndent precedes the text below a row.
const belowIndent = "    "

// Wrapped breaks text into at most most lines (0: any number) of at most width columns. The last
// line ends in an ellipsis if there is more. A word longer than a line, such as an address, stays
// whole, so that people can copy it.
func Wrapped(text string, width, most int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case Cells(line)+1+Cells(word) <= width:
			line += " " + word
		case len(lines) == most-1:
			return append(lines, cut(line+" "+word, width))
		default:
			lines, line = append(lines, line), word
		}
	}
	return append(lines, line)
}

// line writes one line of cells, in the colours of their meanings unless it is the head.
func (t *table) line(values []string, colours bool) error {
	var line strings.Builder
	for i, v := range values {
		if t.hidden[i] {
			continue
		}
		meaning := Plain
		if colours && t.columns[i].Meaning != nil {
			meaning = t.columns[i].Meaning(v)
		}
		v = t.cell(i, v)
		if t.limit > 0 && t.columns[i].Flex {
			v = cut(v, t.widths[i])
		}
		gap := strings.Repeat(" ", max(0, t.widths[i]-Cells(v)))
		if line.Len() > 0 {
			line.WriteString("  ")
		}
		if v = t.paint.Word(meaning, v); t.columns[i].Right {
			line.WriteString(gap + v)
		} else {
			line.WriteString(v + gap)
		}
	}
	_, err := t.w.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	return err
}
