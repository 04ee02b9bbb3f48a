package noid

import (
	"fmt"
	"strings"
)

// MaxARK is the greatest length of an ARK in bytes.
const MaxARK = 2048

// Resolver makes a web address of an ARK when put before it.
const Resolver = "https://n2t.net/"

// ARK is a parsed Archival Resource Key. == compares what was written; Equal compares what is
// meant. The zero value is not an ARK.
type ARK struct {
	NAAN string // the name assigning authority number in lower case, usually five digits
	Name string // the base name as written, with shoulder and check character
	// Qualifier is everything after the name, with its leading "/" or "." (parts such as "/page/2",
	// then variants such as ".v2.tiff").
	Qualifier string
	// Inflection is a trailing "?", "??", "?info" and the like. It is a question about the object
	// and no part of its identity.
	Inflection string
}

// Part is the part of an ARK or a template that an error is about.
type Part string

// The parts.
const (
	PartScheme    Part = "scheme"
	PartNAAN      Part = "NAAN"
	PartName      Part = "name"
	PartQualifier Part = "qualifier"
	PartShoulder  Part = "shoulder"
	PartGenerator Part = "generator"
	PartMask      Part = "mask"
)

// ARKError says why ParseARK refused a string.
type ARKError struct {
	Input  string // the parsed text, cut to 80 bytes
	Part   Part
	Reason string
}

// Error implements error.
func (e *ARKError) Error() string {
	return fmt.Sprintf("ARK %q: %s: %s", e.Input, e.Part, e.Reason)
}

// ParseARK reads an ARK: "ark:/NAAN/name" or the newer "ark:NAAN/name", with an optional qualifier
// and inflection (draft-kunze-ark, sections 2 and 3). The scheme may be in any case. Typographic
// hyphens become "-", and white space around the ARK is dropped. Otherwise the text is kept,
// including hyphens; use Normalize to compare.
//
// Every error is an *ARKError. ParseARK does not verify the check character; see Template.Mistyped.
func ParseARK(s string) (ARK, error) {
	notARK := func(p Part, format string, args ...any) (ARK, error) {
		return ARK{}, &ARKError{Input: cut(s, 80), Part: p, Reason: fmt.Sprintf(format, args...)}
	}
	if len(s) > MaxARK {
		return notARK(PartName, "longer than %d bytes", MaxARK)
	}
	rest := asciiHyphens(strings.TrimSpace(s))
	if len(rest) < 4 || !strings.EqualFold(rest[:4], "ark:") {
		return notARK(PartScheme, "it must begin with ark:/")
	}
	rest = strings.TrimPrefix(rest[4:], "/")

	var a ARK
	if i := strings.IndexByte(rest, '?'); i >= 0 {
		rest, a.Inflection = rest[:i], rest[i:]
	}
	naan, rest, found := strings.Cut(rest, "/")
	a.NAAN = strings.ToLower(naan)
	switch bad := firstOutside(a.NAAN, isNAAN); {
	case strings.Trim(a.NAAN, "-") == "":
		return notARK(PartNAAN, "missing")
	case bad >= 0:
		return notARK(PartNAAN, "character %q at byte %d is not a digit or a consonant", a.NAAN[bad], bad)
	case !found:
		return notARK(PartName, "missing: nothing follows the NAAN %s", naan)
	}
	end := strings.IndexAny(rest, "/.")
	if end < 0 {
		end = len(rest)
	}
	a.Name, a.Qualifier = rest[:end], rest[end:]
	if strings.Trim(a.Name, "-") == "" {
		return notARK(PartName, "missing")
	}
	if why := badChar(a.Name); why != "" {
		return notARK(PartName, "%s", why)
	}
	if why := badChar(a.Qualifier); why != "" {
		return notARK(PartQualifier, "%s", why)
	}
	if why := badInflection(a.Inflection); why != "" {
		return notARK(PartQualifier, "%s", why)
	}
	return a, nil
}

// IsZero reports whether a is the zero value.
func (a ARK) IsZero() bool { return a == ARK{} }

// String returns "ark:/NAAN/name" with qualifier and inflection as written, or "" for the zero
// value. Holdfast stores and prints ARKs in this form.
func (a ARK) String() string {
	if a.IsZero() {
		return ""
	}
	return "ark:/" + a.NAAN + "/" + a.Name + a.Qualifier + a.Inflection
}

// Base returns the ARK without qualifier and inflection.
func (a ARK) Base() ARK { return ARK{NAAN: a.NAAN, Name: a.Name} }

// ObjectID returns the key under which the object is stored, locked and looked up: the normalized
// ARK without qualifier.
func (a ARK) ObjectID() string { return a.Base().Normalize().String() }

// Normalize returns the form in which equivalent ARKs are equal (draft-kunze-ark, "Normalization"):
// without hyphens, without repeated or trailing "/" and "." in the qualifier, with upper-case hex
// digits in percent escapes, without inflection. It keeps the case of the name and the order of
// parts and variants, because they matter.
func (a ARK) Normalize() ARK {
	return ARK{
		NAAN:      strings.ReplaceAll(a.NAAN, "-", ""),
		Name:      upperEscapes(strings.ReplaceAll(a.Name, "-", "")),
		Qualifier: upperEscapes(squeeze(strings.ReplaceAll(a.Qualifier, "-", ""))),
	}
}

// Equal reports whether a and b name the same thing.
func (a ARK) Equal(b ARK) bool { return a.Normalize() == b.Normalize() }

// squeeze drops trailing separators, and all but the first of consecutive ones.
func squeeze(q string) string {
	var b strings.Builder
	for i := range len(q) {
		if structural(q[i]) && i > 0 && structural(q[i-1]) {
			continue
		}
		b.WriteByte(q[i])
	}
	return strings.TrimRight(b.String(), "/.")
}

func structural(c byte) bool { return c == '/' || c == '.' }

func isNAAN(c byte) bool { return c == '-' || strings.IndexByte(Alphabet, c) >= 0 }

// isARKChar reports whether a name or qualifier may contain the character. '%' begins an escape,
// which is checked separately.
func isARKChar(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || strings.IndexByte("=~*+@_$%-./", c) >= 0
}

func firstOutside(s string, in func(byte) bool) int {
	for i := range len(s) {
		if !in(s[i]) {
			return i
		}
	}
	return -1
}

// badChar returns what an ARK cannot contain in s, or "".
func badChar(s string) string {
	if i := firstOutside(s, isARKChar); i >= 0 {
		return fmt.Sprintf("character %q at byte %d is not allowed", s[i], i)
	}
	for i := range len(s) {
		if s[i] == '%' && (i+2 >= len(s) || !isHex(s[i+1]) || !isHex(s[i+2])) {
			return fmt.Sprintf("%% at byte %d is not followed by two hex digits", i)
		}
	}
	return ""
}

func badInflection(s string) string {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f {
			return fmt.Sprintf("character %q in the inflection is not allowed", c)
		}
	}
	return ""
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func upperEscapes(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], strings.ToUpper(string(b[i+1:i+3])))
			i += 2
		}
	}
	return string(b)
}

// asciiHyphens replaces typographic dashes by "-".
func asciiHyphens(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\u00ad' || '\u2010' <= r && r <= '\u2015' || r == '\u2212' {
			return '-'
		}
		return r
	}, s)
}

func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n]
}
