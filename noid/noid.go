// Package noid mints and parses the names of preserved objects: ARKs from NOID templates.
//
// Every name that a [Template] mints matches it, and has a check character over NAAN/name if the
// template asks for one. The package keeps no state: the same template and random bytes give the
// same name. The Registry makes sure that a name is used only once; if it is taken, mint another.
//
// Sources: the template and check-character rules of the NOID tool, and draft-kunze-ark for the
// form and comparison of ARKs.
package noid

import "strings"

// Alphabet holds the 29 "extended digits" of NOID in the order of their values: digits and
// consonants without l and y, so that names form no words and no two characters look alike.
const Alphabet = "0123456789bcdfghjkmnpqrstvwxz"

// digits is how many characters of Alphabet the mask letter d uses.
const digits = 10

// CheckChar returns the NOID check character of s, which should be "NAAN/name" without the check
// character. It is the sum of each character's value times its position, counted from 1, modulo 29.
// Characters outside Alphabet have the value 0.
func CheckChar(s string) byte {
	sum := 0
	for i := range len(s) {
		if v := strings.IndexByte(Alphabet, s[i]); v > 0 {
			sum = (sum + v*(i+1)) % len(Alphabet)
		}
	}
	return Alphabet[sum]
}
