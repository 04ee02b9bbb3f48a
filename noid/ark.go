package noid

import (
	"fmt"
	"strings"
)

// MaxARK is the longest ARK that ParseARK takes, in bytes.
const MaxARK = 2048

// Resolver before an ARK makes an address of it that works wherever it is read.
const Resolver = "https://n2t.net/"

// ARK is a parsed Archival Resource Key. It is comparable with ==, which compares what was written;
// Equal compares what is meant. The zero value is no ARK: IsZero reports it.
type ARK struct {
	NAAN string // who assigns names, in lower case: betanumeric, mostly five digits
	Name string // the base name, shoulder and check character included, as written
	// Qualifier is all that follows the name, its leading "/" or "." included: parts ("/page/2"),
	// then variants (".v2.tiff"). Parts and Variants take it apart.
	Qualifier string
	// Inflection is a trailing "?", "??", "?info" and the like, its "?" included. It asks about the
	// object and is no part of its identity.
	Inflection string
}

// Part names the piece of an ARK or of a template that an error is about.
type Part string

// The parts that errors name.
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
	Input  string // what was to be parsed, cut to 80 bytes
	Part   Part   // the piece that is wrong
	Reason string // what is wrong with it
}

// Error implements error.
func (e *ARKError) Error() string {
	return fmt.Sprintf("ARK %q: %s: %s", e.Input, e.Part, e.Reason)
}

// ParseARK reads an ARK: "ark:/NAAN/name", or the newer "ark:NAAN/name", with an optional qualifier
// and inflection (draft-kunze-ark, sections 2 and 3). The scheme is taken in any case; typographic
// hyphens become "-"; white space around the ARK is dropped. What the depositor wrote is kept,
// hyphens included; use Normalize to compare.
//
// Every error is an *ARKError. A wrong check character is none: see CheckARK.
func ParseARK(s string) (ARK, error) {
	fail := func(p Part, format string, args ...any) (ARK, error) {
		return ARK{}, &ARKError{Input: cut(s, 80), Part: p, Reason: fmt.Sprintf(format, args...)}
	}
	if len(s) > MaxARK {
		return fail(PartName, "longer than %d bytes", MaxARK)
	}
	rest := asciiHyphens(strings.TrimSpace(s))
	if len(rest) < 4 || !strings.EqualFold(rest[:4], "ark:") {
		return fail(PartScheme, "it must begin with ark:/")
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
		return fail(PartNAAN, "missing")
	case bad >= 0:
		return fail(PartNAAN, "character %q at byte %d is not a digit or a consonant", a.NAAN[bad], bad)
	case !found:
		return fail(PartName, "missing: nothing follows the NAAN %s", naan)
	}
	end := strings.IndexAny(rest, "/.")
	if end < 0 {
		end = len(rest)
	}
	a.Name, a.Qualifier = rest[:end], rest[end:]
	if strings.Trim(a.Name, "-") == "" {
		return fail(PartName, "missing")
	}
	if why := badChar(a.Name); why != "" {
		return fail(PartName, "%s", why)
	}
	if why := badChar(a.Qualifier); why != "" {
		return fail(PartQualifier, "%s", why)
	}
	if why := badInflection(a.Inflection); why != "" {
		return fail(PartQualifier, "%s", why)
	}
	return a, nil
}

// IsZero reports whether a is no ARK at all.
func (a ARK) IsZero() bool { return a == ARK{} }

// String returns "ark:/NAAN/name", qualifier and inflection, as they were written; "" for the zero
// value. This is the form in which Holdfast stores and prints ARKs.
func (a ARK) String() string {
	if a.IsZero() {
		return ""
	}
	return "ark:/" + a.NAAN + "/" + a.Name + a.Qualifier + a.Inflection
}

// Base returns the ARK of the object alone: without qualifier and inflection.
func (a ARK) Base() ARK { return ARK{NAAN: a.NAAN, Name: a.Name} }

// ObjectID returns the name under which the object is stored, locked and looked up: the normalised
// ARK of the object alone.
func (a ARK) ObjectID() string { return a.Base().Normalize().String() }

// Normalize returns the form in which two ARKs that mean the same are equal (draft-kunze-ark,
// "Normalization"): no hyphens, no repeated or trailing "/" and "." in the qualifier, upper-case
// hex digits in percent escapes, no inflection. The case of the name and the order of parts and
// variants are kept, since they matter.
func (a ARK) Normalize() ARK {
	return ARK{
		NAAN:      strings.ReplaceAll(a.NAAN, "-", ""),
		Name:      upperEscapes(strings.ReplaceAll(a.Name, "-", "")),
		Qualifier: upperEscapes(squeeze(strings.ReplaceAll(a.Qualifier, "-", ""))),
	}
}

// Equal reports whether a and b name the same thing.
func (a ARK) Equal(b ARK) bool { return a.Normalize() == b.Normalize() }

// Parts returns the components of the qualifier that "/" sets apart: of "/page/2.v2.tiff", "page"
// and "2". Only the last component's periods begin variants. It is nil when there are none.
func (a ARK) Parts() []string {
	parts, _ := a.split()
	return parts
}

// Variants returns the components at the qualifier's end that "." sets apart: of "/page/2.v2.tiff",
// "v2" and "tiff". It is nil when there are none.
func (a ARK) Variants() []string {
	_, variants := a.split()
	return variants
}

func (a ARK) split() (parts, variants []string) {
	q := squeeze(a.Qualifier)
	slash := strings.LastIndexByte(q, '/')
	if dot := strings.IndexByte(q[slash+1:], '.'); dot >= 0 {
		dot += slash + 1
		variants = strings.Split(q[dot+1:], ".")
		q = q[:dot]
	}
	if q = strings.Trim(q, "/"); q != "" {
		parts = strings.Split(q, "/")
	}
	return parts, variants
}

// squeeze drops trailing structural characters and keeps the first of any run of them.
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

// isARKChar reports what a name or a qualifier may hold; '%' begins an escape and is looked at
// apart.
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

// badChar says what in s an ARK cannot hold, or "".
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

// asciiHyphens replaces the dashes that word processors put in place of "-".
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
