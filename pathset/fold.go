package pathset

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Fold returns the text that names have in common which a file system without case, or one that
// normalises, takes for one: without the differences of case and, as Unicode's canonical caseless
// matching has it, of normal form.
func Fold(name string) string {
	if ascii(name) {
		return strings.ToLower(name)
	}
	return norm.NFC.String(cases.Fold().String(norm.NFD.String(name)))
}

func ascii(name string) bool {
	for i := range len(name) {
		if name[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// small has each byte of ASCII in lower case, and 0 for all others.
var small = func() (t [256]byte) {
	for c := range byte(utf8.RuneSelf) {
		t[c] = c
		if c >= 'A' && c <= 'Z' {
			t[c] += 'a' - 'A'
		}
	}
	return t
}()

// appendFold appends Fold(name) to b, without an allocation for what nearly all names are.
func appendFold(b []byte, name string) []byte {
	for i := range len(name) {
		c := small[name[i]]
		if c == 0 && name[i] != 0 {
			return append(b[:len(b)-i], Fold(name)...)
		}
		b = append(b, c)
	}
	return b
}
