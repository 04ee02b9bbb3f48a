package checkm

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Draft writes a manifest of rows as somebody typed them, right or wrong: Check judges it then. Use a
// [Writer] for rows that must be right. It is not safe for concurrent use.
type Draft struct {
	w    *bufio.Writer
	kind Kind
	line int // of the last line written
}

// NewDraft returns a Draft of a manifest of kind k to w. Write and Close return errors of w.
func NewDraft(w io.Writer, k Kind) *Draft {
	return &Draft{w: bufio.NewWriterSize(w, 16<<10), kind: k}
}

// Fields returns the names of a manifest's columns, such as nfo:fileUrl, in their order.
func (k Kind) Fields() []string {
	var names []string
	for _, c := range k.columns() {
		names = append(names, c.field())
	}
	return names
}

// Cells returns the text of each column of a row, in the order of Fields, as manifests have it: with
// escapes. A name that can only come from the address is left out.
func (k Kind) Cells(row Row) []string {
	// A name with an escape in it is read as another one.
	if unescape(row.Name) != row.Name {
		row.Name = ""
	}
	var cells []string
	for _, c := range k.columns() {
		cells = append(cells, cell(row, c))
	}
	return cells
}

// Write adds a row, with the text of its columns in the order of Fields. Cells that are left out at
// the end are empty. It returns the row's line. A pipe is escaped, and a line break becomes a space.
func (d *Draft) Write(cells []string) (line int, err error) {
	if d.line == 0 {
		if err := d.header(); err != nil {
			return 0, err
		}
	}
	cells = slices.Clone(cells)
	for i, text := range cells {
		pipe := "%7c"
		if i == 0 && d.kind.key() == colURL {
			pipe = "%7C"
		}
		cells[i] = strings.TrimSpace(strings.NewReplacer("|", pipe, "\r\n", " ", "\n", " ", "\r", " ").Replace(text))
	}
	text := strings.TrimRight(strings.Join(cells, " | "), " |")
	if text == "" || text[0] == '#' {
		text = " | " // a row without an address, not a comment or a blank line
	}
	if _, err := d.w.WriteString(text + "\n"); err != nil {
		return 0, fmt.Errorf("write manifest row: %w", err)
	}
	d.line++
	return d.line, nil
}

func (d *Draft) header() error {
	if d.kind.ProfileURI() == "" {
		return fmt.Errorf("kind %q: %w", string(d.kind), ErrInexpressible)
	}
	n, err := writeHeader(d.w, d.kind)
	d.line = n
	return err
}

// Close writes #%eof and flushes. It does not close the underlying writer. Without rows it returns
// ErrNoRows.
func (d *Draft) Close() error {
	if d.line == 0 {
		return ErrNoRows
	}
	_, err := d.w.WriteString("#%eof\n")
	if err := errors.Join(err, d.w.Flush()); err != nil {
		return fmt.Errorf("write manifest end: %w", err)
	}
	return nil
}
