package pathset

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/ianaindex"
)

// Encoding is a way to read names that are not UTF-8. The zero value reads none.
type Encoding struct {
	name string // as it was given, in lower case
	enc  encoding.Encoding
}

// ParseEncoding finds an encoding by a name of the IANA registry, such as cp437, iso-8859-1 or
// windows-1252; "" is the zero value. ASCII must stand for itself in it, since that is what folders
// are told by.
func ParseEncoding(name string) (Encoding, error) {
	if name == "" {
		return Encoding{}, nil
	}
	enc, err := ianaindex.IANA.Encoding(name)
	if err != nil || enc == nil {
		return Encoding{}, fmt.Errorf("%q is no encoding that is known; there are cp437, iso-8859-1, windows-1252, shift_jis and others of IANA's list", name)
	}
	const probe = "0123456789 abcxyz ABCXYZ ./-_"
	if got, err := enc.NewEncoder().String(probe); err != nil || got != probe {
		return Encoding{}, fmt.Errorf("%q cannot be the encoding of names: ASCII does not stand for itself in it", name)
	}
	if read, err := enc.NewDecoder().String("\xc3\xbc"); err == nil && read == "ü" {
		return Encoding{}, fmt.Errorf("%q needs no rule: names in UTF-8 are kept as they are", name)
	}
	return Encoding{strings.ToLower(name), enc}, nil
}

// Escape shows a name so that its bytes can be had back: what is neither printable ASCII nor %
// stands as %XX.
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

// String is the encoding's name; "" of the zero value.
func (e Encoding) String() string { return e.name }

// Decode reads a name. It is false when the bytes are not of the encoding: reading them would lose
// what they were.
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
