package bagit

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"

	"golang.org/x/text/encoding/unicode"
)

// maxLine bounds one line of a tag file in octets. RFC 8493 sets no limit on names, but file
// systems do.
const maxLine = 1 << 20

// textForm is the form of a tag file's octets, recognized from the first ones. All encodings in use
// are either UTF-16 or compatible with ASCII, whose lines can be split before decoding. So a
// manifest can be read as a stream before bagit.txt declares its encoding.
type textForm uint8

const (
	formEmpty textForm = iota
	formPlain          // compatible with ASCII; not decoded yet
	formUTF8BOM
	formUTF16 // with or without byte-order mark; already decoded
)

// openText recognizes the form and returns a reader of the text: without byte-order mark, and in
// UTF-8 if it was UTF-16.
func openText(r io.Reader) (io.Reader, textForm, error) {
	br := bufio.NewReaderSize(r, 1<<16)
	head, err := br.Peek(3)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, formEmpty, fmt.Errorf("read text: %w", err)
	}
	utf16 := func(e unicode.Endianness, p unicode.BOMPolicy) (io.Reader, textForm, error) {
		return unicode.UTF16(e, p).NewDecoder().Reader(br), formUTF16, nil
	}
	switch {
	case len(head) == 0:
		return br, formEmpty, nil
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		_, _ = br.Discard(3) // cannot fail: the octets were peeked
		return br, formUTF8BOM, nil
	case bytes.HasPrefix(head, []byte("\xfe\xff")), bytes.HasPrefix(head, []byte("\xff\xfe")):
		return utf16(unicode.BigEndian, unicode.ExpectBOM)
	case len(head) > 1 && head[0] == 0 && head[1] != 0:
		return utf16(unicode.BigEndian, unicode.IgnoreBOM)
	case len(head) > 1 && head[0] != 0 && head[1] == 0:
		return utf16(unicode.LittleEndian, unicode.IgnoreBOM)
	default:
		return br, formPlain, nil
	}
}

// lineError is a malformed line of a tag file. Reading continues after it.
type lineError struct {
	Line   int // from 1
	Reason string
	Text   string // the line, cut to 200 octets
}

// Error implements error.
func (e *lineError) Error() string { return fmt.Sprintf("line %d: %s: %q", e.Line, e.Reason, e.Text) }

func newLineError(n int, reason string, text []byte) *lineError {
	if len(text) > 200 {
		text = text[:200]
	}
	return &lineError{Line: n, Reason: reason, Text: string(text)}
}

// errLineTooLong ends the reading of a tag file, because the next line cannot be found.
var errLineTooLong = errors.New("line longer than 1 MiB")

// lineScanner splits text at LF, CR or CRLF (section 2.3).
type lineScanner struct {
	s *bufio.Scanner
	n int
}

func newLineScanner(r io.Reader) *lineScanner {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 1<<16), maxLine)
	s.Split(splitLine)
	return &lineScanner{s: s}
}

// next returns the next line, which is valid until the following call.
func (l *lineScanner) next() ([]byte, bool) {
	if !l.s.Scan() {
		return nil, false
	}
	l.n++
	return l.s.Bytes(), true
}

func (l *lineScanner) err() error {
	err := l.s.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		return newLineError(l.n+1, errLineTooLong.Error(), nil)
	}
	return err
}

// scanLines parses the lines of a text that are not blank. It yields the error of a malformed line
// and
// continues; an error of reading ends it.
func scanLines[T any](text io.Reader, parse func(line []byte, n int) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		lines := newLineScanner(text)
		for line, ok := lines.next(); ok; line, ok = lines.next() {
			if isBlank(line) {
				continue
			}
			entry, err := parse(line, lines.n)
			if err != nil {
				entry = none
			}
			if !yield(entry, err) {
				return
			}
		}
		if err := lines.err(); err != nil {
			yield(none, err)
		}
	}
}

func splitLine(data []byte, atEOF bool) (advance int, token []byte, err error) {
	i := bytes.IndexAny(data, "\r\n")
	switch {
	case i < 0 && atEOF && len(data) > 0:
		return len(data), data, nil
	case i < 0:
		return 0, nil, nil
	case data[i] == '\n':
		return i + 1, data[:i], nil
	case i+1 < len(data):
		if data[i+1] == '\n' {
			return i + 2, data[:i], nil
		}
		return i + 1, data[:i], nil
	case atEOF:
		return i + 1, data[:i], nil
	default:
		return 0, nil, nil // a CR at the end of the buffer: an LF may follow
	}
}

func isBlank(line []byte) bool { return len(bytes.Trim(line, " \t")) == 0 }
