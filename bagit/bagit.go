// Package bagit judges and writes bags (RFC 8493, BagIt 1.0, and the drafts 0.93 to 0.97).
//
// A bag is called valid only when every file that a manifest lists was seen and its digest
// compared. A verdict carries every fault, each with its file. It does not depend on where the
// bytes come from or on their order: one [Validator] judges a folder, a tar (also compressed), a
// zip and a stream of single entries, in one pass and without unpacking.
//
// Faults of the bag are content faults and stand in the [Report]. Errors of the functions are
// system faults (reading failed, the context ended) and say nothing about the bag.
//
// Where the drafts before 1.0 were silent, and bags of that age are known to differ, a Report has a
// warning where 1.0 has an error; each [Rule] says so. Two of these touch completeness, before 1.0
// only: a file that the operating system makes (.DS_Store, Thumbs.db) may have come or gone, and a
// listed name may differ in case from its file if the content matches.
//
// A [Profile] is what a community asks for beyond that. It is judged in the same pass and the same
// Report.
//
// Memory grows with the number of entries, never with their size. The package opens no file by a
// name that a bag gives; names are only compared.
package bagit

import (
	"fmt"
	"strconv"
	"strings"
)

// Names that RFC 8493 section 2 reserves in the base directory of a bag.
const (
	DeclarationFile = "bagit.txt"
	InfoFile        = "bag-info.txt"
	FetchFile       = "fetch.txt"
	PayloadDir      = "data"

	// packageInfoFile is what bag-info.txt was called in 0.93 and 0.94.
	packageInfoFile = "package-info.txt"
)

const payloadPrefix = PayloadDir + "/"

// Version is a version of BagIt as one number that can be compared: 1000 times the major plus the
// minor. The zero Version is an unknown one.
type Version int

// The versions whose rules this package knows.
const (
	Version093 Version = 93
	Version094 Version = 94
	Version095 Version = 95
	Version096 Version = 96
	Version097 Version = 97
	Version10  Version = 1000
)

// String gives the version as bagit.txt spells it, or "" for an unknown one.
func (v Version) String() string {
	if v <= 0 {
		return ""
	}
	return fmt.Sprintf("%d.%d", v/1000, v%1000)
}

// MarshalText makes a Version a string in JSON.
func (v Version) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads what MarshalText wrote. Anything but M.N is an error.
func (v *Version) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*v = 0
		return nil
	}
	parsed, ok := parseVersion(string(text))
	if !ok {
		return fmt.Errorf("read version %q: not of the form M.N", text)
	}
	*v = parsed
	return nil
}

// Supported says whether the rules of the version are known: 0.93 to 0.97, and 1.0.
func (v Version) Supported() bool { return v == Version10 || (v >= Version093 && v <= Version097) }

func parseVersion(s string) (Version, bool) {
	major, minor, ok := strings.Cut(s, ".")
	if !ok || !allDigits(major) || !allDigits(minor) || len(major) > 3 || len(minor) > 3 {
		return 0, false
	}
	m, _ := strconv.Atoi(major)
	n, _ := strconv.Atoi(minor)
	return Version(m*1000 + n), true
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
