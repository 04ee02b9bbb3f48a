package checkm

import (
	"bytes"
	"errors"
	"io"
)

// MaxLine is the longest accepted line in bytes. A longer one is refused and skipped, so that a
// file without line breaks needs no memory.
const MaxLine = 64 << 10

// line is one line without its line break. text is valid until the next call of lexer.next.
type line struct {
	text   []byte
	num    int
	offset int64 // of the first byte
	ended  bool  // by a line break, not by the end of the file
	long   bool  // longer than MaxLine; text is its beginning
}

// lexer splits a stream into lines at LF, CRLF and lone CR.
type lexer struct {
	r          io.Reader
	buf        []byte
	start, end int
	offset     int64 // of buf[start]
	num        int
	afterCR    bool // a following LF belongs to the line before
	err        error
}

func newLexer(r io.Reader) lexer {
	return lexer{r: r, buf: make([]byte, 2*MaxLine)}
}

// next returns the next line, io.EOF after the last one, or the error of the reader.
func (l *lexer) next() (line, error) {
	if l.afterCR {
		l.afterCR = false
		if err := l.fillIfEmpty(); err != nil {
			return line{}, err
		}
		if l.buf[l.start] == '\n' {
			l.advance(1)
		}
	}
	if err := l.fillIfEmpty(); err != nil {
		return line{}, err
	}
	l.num++
	scanned := 0
	for {
		if i := lineEnd(l.buf[l.start+scanned : l.end]); i >= 0 {
			return l.cut(scanned + i), nil
		}
		scanned = l.end - l.start
		if scanned > MaxLine {
			return l.skipLong()
		}
		if err := l.fill(); errors.Is(err, io.EOF) {
			ln := line{text: l.buf[l.start:l.end], num: l.num, offset: l.offset}
			l.advance(scanned)
			return ln, nil
		} else if err != nil {
			return line{}, err
		}
	}
}

// lineEnd returns the index of the first LF or CR, or -1. It searches in short windows, because a
// file may have only one of them.
func lineEnd(b []byte) int {
	const window = 512
	for at := 0; at < len(b); at += window {
		w := b[at:min(at+window, len(b))]
		lf := bytes.IndexByte(w, '\n')
		if lf >= 0 {
			w = w[:lf]
		}
		if cr := bytes.IndexByte(w, '\r'); cr >= 0 {
			return at + cr
		}
		if lf >= 0 {
			return at + lf
		}
	}
	return -1
}

// cut returns the n bytes at start as a line. The byte after them is its line break.
func (l *lexer) cut(n int) line {
	ln := line{text: l.buf[l.start : l.start+n], num: l.num, offset: l.offset, ended: true, long: n > MaxLine}
	l.afterCR = l.buf[l.start+n] == '\r'
	l.advance(n + 1)
	return ln
}

// skipLong skips the rest of a line that is too long. It keeps a beginning that is enough for
// shown.
func (l *lexer) skipLong() (line, error) {
	ln := line{num: l.num, offset: l.offset, long: true}
	ln.text = append(ln.text, l.buf[l.start:l.start+256]...)
	for {
		if i := lineEnd(l.buf[l.start:l.end]); i >= 0 {
			ln.ended = l.cut(i).ended
			return ln, nil
		}
		l.advance(l.end - l.start)
		if err := l.fill(); errors.Is(err, io.EOF) {
			return ln, nil
		} else if err != nil {
			return line{}, err
		}
	}
}

func (l *lexer) advance(n int) {
	l.start += n
	l.offset += int64(n)
}

func (l *lexer) fillIfEmpty() error {
	if l.start < l.end {
		return nil
	}
	return l.fill()
}

// fill reads at least one more byte. The buffer holds at most MaxLine bytes, so there is room.
func (l *lexer) fill() error {
	if l.err != nil {
		return l.err
	}
	if l.end == len(l.buf) || l.start == l.end {
		l.end = copy(l.buf, l.buf[l.start:l.end])
		l.start = 0
	}
	for range 100 {
		n, err := l.r.Read(l.buf[l.end:])
		l.end += n
		l.err = err
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	l.err = io.ErrNoProgress
	return l.err
}
