package pathset

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Fold returns the same text for names that a file system without case, or one that normalizes,
// treats as equal. It removes differences of case and normal form by Unicode's canonical caseless
// matching.
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

// small maps ASCII to lower case, and all other bytes to 0.
var small = func() (t [256]byte) {
	for c := range byte(utf8.RuneSelf) {
		t[c] = c
		if c >= 'A' && c <= 'Z' {
			t[c] += 'a' - 'A'
		}
	}
	return t
}()

// appendFold appends Fold(name) to b, without an allocation for ASCII.
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
