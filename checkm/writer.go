package checkm

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Errors of a Writer. For a row that breaks a rule, Write returns its [Fault] instead.
var (
	// ErrNoRows is returned by Close if nothing was written, because readers refuse a manifest
	// without entries.
	ErrNoRows = errors.New("manifest has no entries")
	// ErrInexpressible is wrapped by Write for a value that the format cannot hold.
	ErrInexpressible = errors.New("value cannot be expressed in checkm")
	// ErrClosed is returned by Write after Close.
	ErrClosed = errors.New("checkm writer is closed")
)

// Writer writes a manifest. It is not safe for concurrent use.
//
// After the first error it writes nothing more, not even #%eof, and every later call returns that
// error. Readers then see a truncated manifest, never a shorter one.
type Writer struct {
	w      *bufio.Writer
	kind   Kind
	judge  *judge
	rows   int
	closed bool
	err    error
}

// NewWriter returns a Writer of a manifest of kind k to w. The first Write refuses an Unknown kind.
func NewWriter(w io.Writer, k Kind) *Writer {
	return &Writer{w: bufio.NewWriterSize(w, 16<<10), kind: k, judge: newJudge(k)}
}

// Write adds a row. The header goes before the first one.
//
// Write reads each row back before it writes it, so that a [Reader] returns the same row: with the
// canonical name of the algorithm, the digest in lower case, the time in UTC, each local identifier
// once, and the last part of the URL for an empty name. row.Line is ignored. A Size of 0 means an
// empty file, -1 an unknown size.
//
// The error is the first [Fault] of a row that would be refused, or wraps [ErrInexpressible].
func (w *Writer) Write(row Row) error {
	if w.closed && w.err == nil {
		return ErrClosed
	}
	if w.err != nil {
		return w.err
	}
	if err := w.write(row); err != nil {
		w.err = fmt.Errorf("write manifest row %d: %w", w.rows+1, err)
	}
	return w.err
}

func (w *Writer) write(row Row) error {
	if w.kind.ProfileURI() == "" {
		return fmt.Errorf("kind %q: %w", string(w.kind), ErrInexpressible)
	}
	text, err := w.encode(row)
	if err != nil {
		return err
	}
	if w.rows == 0 {
		if _, err := writeHeader(w.w, w.kind); err != nil {
			return err
		}
	}
	if _, err := w.w.WriteString(text + "\n"); err != nil {
		return err
	}
	w.rows++
	return nil
}

// Close writes #%eof and flushes. It does not close the underlying writer. A second Close returns
// the same error.
func (w *Writer) Close() error {
	if w.closed {
		return w.err
	}
	w.closed = true
	switch {
	case w.err != nil:
	case w.rows == 0:
		w.err = ErrNoRows
	default:
		if _, err := w.w.WriteString("#%eof\n"); err != nil {
			w.err = fmt.Errorf("write manifest end: %w", err)
		} else if err := w.w.Flush(); err != nil {
			w.err = fmt.Errorf("flush manifest: %w", err)
		}
	}
	return w.err
}

// writeHeader writes the header of a manifest of kind k. It returns the number of its lines.
func writeHeader(w io.Writer, k Kind) (lines int, err error) {
	lines = 5
	_, err = fmt.Fprintf(w, "%s\n#%%profile | %s\n#%%prefix | mrt: | %s\n#%%prefix | nfo: | %s\n#%%fields | %s\n",
		declaration, k.ProfileURI(), mrtPrefix, nfoPrefix, strings.Join(k.Fields(), " | "))
	return lines, err
}

// encode returns the line of a row, or an error if it cannot be written.
func (w *Writer) encode(row Row) (string, error) {
	if strings.Contains(row.URL, "|") {
		return "", fmt.Errorf("pipe in a URL, which is written as %%7C: %w", ErrInexpressible)
	}
	want := normalised(row)
	back, faults, text := w.readBack(want)
	if back.Name != want.Name && row.Name != "" && back.URL == want.URL {
		// A name with an escape in it cannot be written, but may be the last part of the URL.
		unnamed := want
		unnamed.Name = ""
		if again, f, t := w.readBack(unnamed); again.Name == want.Name {
			back, faults, text = again, f, t
		}
	}
	if row.Name == "" {
		want.Name = back.Name
	}
	for _, f := range faults {
		if f.Severity == Error {
			return "", f
		}
	}
	if !back.Equal(want) {
		return "", fmt.Errorf("%s: %w", difference(back, want), ErrInexpressible)
	}
	switch {
	case strings.ContainsAny(text, "\n\r\x00"):
		return "", fmt.Errorf("line break or NUL: %w", ErrInexpressible)
	case len(text) > MaxLine:
		return "", fmt.Errorf("row of %d bytes: %w", len(text), ErrInexpressible)
	case text[0] == '#':
		return "", fmt.Errorf("# at the beginning: %w", ErrInexpressible)
	case strings.ToValidUTF8(text, "") != text:
		return "", fmt.Errorf("bytes that are not UTF-8: %w", ErrInexpressible)
	}
	return text, nil
}

// readBack formats the row as a line and parses that.
func (w *Writer) readBack(row Row) (Row, []Fault, string) {
	var cells []string
	for _, c := range w.kind.columns() {
		cells = append(cells, cell(row, c))
	}
	text := strings.Join(cells, " | ")
	for strings.HasSuffix(text, " | ") {
		text = strings.TrimSuffix(text, " | ")
	}
	var back Row
	faults := w.judge.row(text, w.rows+1, &back)
	return back, faults, text
}

// normalised returns a row as a Reader returns it.
func normalised(row Row) Row {
	if canonical, _, ok := Algorithm(row.Algorithm); ok {
		row.Algorithm = canonical
	}
	row.Digest = strings.ToLower(row.Digest)
	if row.Size < 0 {
		row.Size = -1
	}
	var ids []string
	for _, id := range row.LocalIDs {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	row.LocalIDs = ids
	return row
}

func cell(row Row, c column) string {
	switch c {
	case colURL:
		return row.URL
	case colAlgorithm:
		return escape(row.Algorithm)
	case colDigest:
		return escape(row.Digest)
	case colSize:
		if row.Size >= 0 {
			return strconv.FormatInt(row.Size, 10)
		}
	case colModified:
		if !row.Modified.IsZero() {
			return row.Modified.UTC().Format(time.RFC3339Nano)
		}
	case colName:
		return escape(row.Name)
	case colMIME:
		return escape(row.MIMEType)
	case colPrimary:
		return escape(row.PrimaryID)
	case colLocal:
		ids := make([]string, len(row.LocalIDs))
		for i, id := range row.LocalIDs {
			ids[i] = escapeLocalID(id)
		}
		return strings.Join(ids, ";")
	case colCreator:
		return escape(row.Creator)
	case colTitle:
		return escape(row.Title)
	case colDate:
		return escape(row.Date)
	}
	return ""
}

// difference returns the first column whose value changed.
func difference(back, want Row) string {
	for c := range numColumns {
		if cell(back, c) != cell(want, c) {
			return c.field()
		}
	}
	return "row"
}
