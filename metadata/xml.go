package metadata

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// decoder reads XML with a limit on the nesting of elements.
type decoder struct {
	*xml.Decoder

	text *xml.Decoder // the underlying decoder, which knows line numbers
}

// newDecoder returns a decoder of at most MaxSize bytes in UTF-8, UTF-16 with a byte order mark,
// ISO-8859-1 or Windows-1252. It refuses entities other than XML's own five, and fetches nothing.
func newDecoder(r io.Reader) decoder {
	limited := &limitedReader{r: r, left: MaxSize}
	// UTF-16 is recognized by its byte order mark. Other bytes pass unchanged.
	d := xml.NewDecoder(transform.NewReader(limited, unicode.BOMOverride(encoding.Nop.NewDecoder())))
	d.CharsetReader = func(label string, in io.Reader) (io.Reader, error) {
		switch strings.ToLower(label) {
		case "utf-16", "utf-16le", "utf-16be", "us-ascii", "ascii", "utf8":
			return in, nil
		case "iso-8859-1", "latin1":
			return charmap.ISO8859_1.NewDecoder().Reader(in), nil
		case "windows-1252", "cp1252":
			return charmap.Windows1252.NewDecoder().Reader(in), nil
		default:
			return nil, fmt.Errorf("character encoding %q is not supported", label)
		}
	}
	return decoder{xml.NewTokenDecoder(&shallow{d: d}), d}
}

// limitedReader fails with ErrTooLarge at its limit, so that a truncated file is not taken for a
// whole one.
type limitedReader struct {
	r    io.Reader
	left int64
}

func (l *limitedReader) Read(p []byte) (int, error) {
	if l.left < 0 {
		return 0, fmt.Errorf("read metadata: %w: more than %d bytes", ErrTooLarge, MaxSize)
	}
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.r.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, fmt.Errorf("read metadata: %w: more than %d bytes", ErrTooLarge, MaxSize)
	}
	return n, err // not wrapped, because it may be io.EOF
}

// mostNested bounds the nesting of elements. A decoder keeps about 100 bytes for each open element.
const mostNested = 10_000

// shallow yields the raw tokens of a decoder, and fails if elements are nested too deep. For raw
// tokens the decoder keeps nothing of open elements.
type shallow struct {
	d     *xml.Decoder
	depth int
}

// Token implements xml.TokenReader.
func (s *shallow) Token() (xml.Token, error) {
	t, err := s.d.RawToken()
	switch t.(type) {
	case xml.StartElement:
		s.depth++
	case xml.EndElement:
		s.depth--
	}
	if s.depth > mostNested {
		return nil, fmt.Errorf("read metadata: %w: elements nested more than %d deep", ErrTooLarge, mostNested)
	}
	return t, err // not wrapped, because it may be io.EOF
}

// xmlError converts a decoder's error.
func xmlError(d decoder, err error) error {
	line, _ := d.text.InputPos()
	var syntax *xml.SyntaxError
	if errors.As(err, &syntax) {
		return &SyntaxError{Line: line, Reason: syntax.Msg}
	}
	if errors.Is(err, ErrTooLarge) {
		return err
	}
	return fmt.Errorf("read XML, line %d: %w", line, err)
}

// oneLine joins the words of a text by single spaces. Other spaces, such as the no-break space, are
// text.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == '\t' || r == '\n' || r == '\r' }), " ")
}

// inXML reports whether XML 1.0 can hold every character of s.
func inXML(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
			return false
		}
	}
	return true
}
