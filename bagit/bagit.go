// Package bagit validates bags and writes their tag files (RFC 8493, BagIt 1.0, and the drafts 0.93
// to 0.97).
//
// A bag is valid only if every file that a manifest lists was found and its digest compared. A
// [Report] lists all faults, each with its file. The same bag gets the same Report as a folder, as
// a tar (also gzipped) and as a stream of single files for a [Validator]. Each form is read in one
// pass, without unpacking.
//
// Faults of the bag are content faults and are in the Report. Errors that functions return are
// system faults: reading failed, or the context ended. They say nothing about the bag.
//
// Some rules are errors in 1.0 and warnings before, because the drafts were silent and older bags
// are known to differ. Each [Rule] says so. Before 1.0 the package tolerates two differences in the
// list of files: system files (.DS_Store, Thumbs.db) may be added or missing, and a listed name may
// differ in case from its file if the content matches.
//
// A [Profile] holds the further requirements of a community. It is checked in the same pass, and
// its faults are in the same Report.
//
// Memory grows with the number of entries, never with their size. The package compares the names in
// a bag and never opens a file by them.
package bagit

import (
	"fmt"
	"strconv"
	"strings"
)

// The names that RFC 8493 section 2 reserves in the base directory of a bag.
const (
	DeclarationFile = "bagit.txt"
	InfoFile        = "bag-info.txt"
	FetchFile       = "fetch.txt"
	PayloadDir      = "data"

	// packageInfoFile is the name of bag-info.txt in 0.93 and 0.94.
	packageInfoFile = "package-info.txt"
)

const payloadPrefix = PayloadDir + "/"

// Version is a version of BagIt as one comparable number: 1000 times the major plus the minor
// number. The zero Version is unknown.
type Version int

// The versions that this package supports.
const (
	Version093 Version = 93
	Version094 Version = 94
	Version095 Version = 95
	Version096 Version = 96
	Version097 Version = 97
	Version10  Version = 1000
)

// String returns the version as bagit.txt spells it, or "" for an unknown one.
func (v Version) String() string {
	if v <= 0 {
		return ""
	}
	return fmt.Sprintf("%d.%d", v/1000, v%1000)
}

// MarshalText returns the version as text, so that it is a string in JSON.
func (v Version) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads the text of MarshalText. Any other form than M.N is an error.
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

// Supported reports whether the package knows the rules of the version: 0.93 to 0.97, and 1.0.
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
