// Package noid chooses and reads the names of preserved objects: ARKs, minted from NOID templates.
//
// Every name that a [Template] makes fits it, with a check character over NAAN/name where the
// template asks for one. The package has no memory: the same template and the same random bytes, or
// the same counter, give the same name at any time and in any process. That a name is used once
// only is the Registry's business; if a name is taken, mint another.
//
// Sources: the NOID tool's template and check-character rules, draft-kunze-ark for the form and the
// comparison of ARKs.
package noid

import "strings"

// Alphabet holds the 29 "extended digits" of NOID, in the order of their values: digits and
// consonants without l and y, so that no word is spelt and no character is taken for another.
const Alphabet = "0123456789bcdfghjkmnpqrstvwxz"

// digits is how many of the characters of Alphabet the mask letter d draws from.
const digits = 10

// CheckChar returns the NOID check character of s, which should be "NAAN/name" without the check
// character itself: the sum of each character's value times its position, counted from 1,
// modulo 29. Characters outside Alphabet count 0 but keep their position. It is defined for every
// string.
func CheckChar(s string) byte {
	sum := 0
	for i := range len(s) {
		if v := strings.IndexByte(Alphabet, s[i]); v > 0 {
			sum = (sum + v*(i+1)) % len(Alphabet)
		}
	}
	return Alphabet[sum]
}

// Check is what CheckARK found.
type Check int

// The results of CheckARK.
const (
	// CheckNone says that the name is too short to end in a check character.
	CheckNone Check = iota
	// CheckOK says that the last character is the check character of what stands before it.
	CheckOK
	// CheckMismatch says that it is not. Of an ARK that others assigned that means nothing: many
	// carry no check character, and some minters compute it over a string that begins with "ark:/".
	// Template.Mistyped judges our own.
	CheckMismatch
)

// String returns "none", "ok" or "mismatch".
func (c Check) String() string {
	switch c {
	case CheckOK:
		return "ok"
	case CheckMismatch:
		return "mismatch"
	default:
		return "none"
	}
}

// CheckARK compares the last character of the ARK's name with the check character over NAAN/name.
// Hyphens, the qualifier and the inflection play no part.
func CheckARK(a ARK) Check {
	base := a.Base().Normalize()
	if len(base.Name) < 2 {
		return CheckNone
	}
	s := base.NAAN + "/" + base.Name
	last := len(s) - 1
	if CheckChar(s[:last]) == s[last] {
		return CheckOK
	}
	return CheckMismatch
}
