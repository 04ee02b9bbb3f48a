package bagit

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/ianaindex"
)

// textEncoding is the encoding that Tag-File-Character-Encoding names (section 2.1.1).
type textEncoding struct {
	name  string
	utf8  bool
	utf16 bool
	enc   encoding.Encoding // nil for UTF-8 and UTF-16
}

// lookupEncoding finds an encoding of the IANA registry. It supports UTF-16, and encodings that
// contain ASCII unchanged. Others (UTF-32, EBCDIC) are not known to be used in bags.
func lookupEncoding(name string) (textEncoding, bool) {
	e := textEncoding{name: name}
	switch upper := strings.ToUpper(name); upper {
	case "UTF-8", "UTF8":
		e.utf8 = true
		return e, true
	case "UTF-16", "UTF-16LE", "UTF-16BE", "UTF16":
		e.utf16 = true
		return e, true
	case "":
		return e, false
	}
	enc, err := ianaindex.IANA.Encoding(name)
	if err != nil || enc == nil {
		return e, false
	}
	const probe = "0123456789abcdef ABCDEF\tdata/a.txt: -\r\n"
	if got, err := enc.NewEncoder().String(probe); err != nil || got != probe {
		return e, false
	}
	e.enc = enc
	return e, true
}

// decode converts octets of a tag file to UTF-8. It returns false if they are invalid in this
// encoding.
func (e textEncoding) decode(raw string) (string, bool) {
	if e.enc == nil {
		return raw, utf8.ValidString(raw)
	}
	s, err := e.enc.NewDecoder().String(raw)
	if err != nil || strings.ContainsRune(s, utf8.RuneError) {
		return raw, false
	}
	return s, true
}

// checkForm compares the declared encoding with the form of a tag file.
func (e textEncoding) checkForm(file string, form textForm, v Version) []Fault {
	switch {
	case form == formEmpty:
		return nil
	case e.utf16 && form != formUTF16, !e.utf16 && form == formUTF16:
		found := "text that is not UTF-16"
		if form == formUTF16 {
			found = "UTF-16"
		}
		return []Fault{newFault(SeverityError, RuleEncoding, file, e.name, found)}
	case form == formUTF8BOM:
		return []Fault{newFault(sinceV1(v), RuleByteOrderMark, file, "no byte-order mark", "a byte-order mark")}
	}
	return nil
}

// printable returns a name for a report: octets that are not UTF-8 become %XX.
func printable(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	var b strings.Builder
	for len(name) > 0 {
		r, n := utf8.DecodeRuneInString(name)
		if r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, "%%%02X", name[0])
		} else {
			b.WriteRune(r)
		}
		name = name[n:]
	}
	return b.String()
}
