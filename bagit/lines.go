package bagit

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"golang.org/x/text/encoding/unicode"
)

// maxLine bounds one line of a tag file. RFC 8493 sets no limit on names; no file system has longer
// ones.
const maxLine = 1 << 20

// textForm is how the octets of a tag file look, told from its first ones. All encodings that bags
// use are either ASCII-compatible, and their lines can be cut without knowing them, or UTF-16,
// which can be recognized. So a manifest can be read as a stream before bagit.txt has said what
// encoding it is in.
type textForm uint8

const (
	formEmpty textForm = iota
	formPlain          // ASCII-compatible, names still as they stand in the file
	formUTF8BOM
	formUTF16 // with or without mark; already decoded
)

// openText tells the form and returns a reader of the text: without its mark, and in UTF-8 where it
// was UTF-16.
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
		_, _ = br.Discard(3) // cannot fail, they were peeked
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

// LineError is a line of a tag file that is not of the form its section asks for. Reading goes on
// after it.
type LineError struct {
	Line   int    // from 1
	Reason string // what is wrong with it
	Text   string // the line, cut to 200 octets
}

// Error implements error.
func (e *LineError) Error() string { return fmt.Sprintf("line %d: %s: %q", e.Line, e.Reason, e.Text) }

func lineError(n int, reason string, text []byte) *LineError {
	if len(text) > 200 {
		text = text[:200]
	}
	return &LineError{Line: n, Reason: reason, Text: string(text)}
}

// errLineTooLong ends the reading of a tag file: what follows cannot be told apart any more.
var errLineTooLong = errors.New("line longer than 1 MiB")

// lineScanner cuts text at LF, CR or CRLF (section 2.3).
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

// next says whether there is another line; it is valid until the following call.
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
		return lineError(l.n+1, errLineTooLong.Error(), nil)
	}
	return err
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
		return 0, nil, nil // a CR at the end of what was read: the LF may follow
	}
}

func isBlank(line []byte) bool { return len(bytes.Trim(line, " \t")) == 0 }
