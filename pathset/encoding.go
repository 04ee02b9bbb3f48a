package pathset

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/ianaindex"
)

// Encoding decodes names that are not UTF-8. The zero value decodes none.
type Encoding struct {
	name string // as given, in lower case
	enc  encoding.Encoding
}

// ParseEncoding returns the encoding with a name of the IANA registry, such as cp437, iso-8859-1 or
// windows-1252; "" gives the zero value. The encoding must contain ASCII unchanged, because slashes
// separate folders.
func ParseEncoding(name string) (Encoding, error) {
	if name == "" {
		return Encoding{}, nil
	}
	enc, err := ianaindex.IANA.Encoding(name)
	if err != nil || enc == nil {
		return Encoding{}, fmt.Errorf("%q is not a known encoding; there are cp437, iso-8859-1, windows-1252, shift_jis and others of IANA's list", name)
	}
	const probe = "0123456789 abcxyz ABCXYZ ./-_"
	if got, err := enc.NewEncoder().String(probe); err != nil || got != probe {
		return Encoding{}, fmt.Errorf("%q cannot be the encoding of names: it does not contain ASCII unchanged", name)
	}
	if read, err := enc.NewDecoder().String("\xc3\xbc"); err == nil && read == "ü" {
		return Encoding{}, fmt.Errorf("%q needs no setting: names in UTF-8 are kept as they are", name)
	}
	return Encoding{strings.ToLower(name), enc}, nil
}

// Escape returns a name in which all bytes but printable ASCII, and every %, are written as %XX. So
// the original bytes can be restored.
func Escape(raw string) string {
	var b strings.Builder
	for i := range len(raw) {
		if c := raw[i]; c < ' ' || c > '~' || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// String returns the encoding's name, or "" for the zero value.
func (e Encoding) String() string { return e.name }

// Decode decodes a name. It returns false if encoding the result would not give the same bytes.
func (e Encoding) Decode(raw string) (string, bool) {
	if e.enc == nil {
		return "", false
	}
	name, err := e.enc.NewDecoder().String(raw)
	if err != nil || !utf8.ValidString(name) {
		return "", false
	}
	again, err := e.enc.NewEncoder().String(name)
	return name, err == nil && again == raw
}
