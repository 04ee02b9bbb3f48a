package metadata

import (
	"io"
	"strings"
)

// MOM is what mrt-mom.txt records: the object's place among Merritt's kinds of object.
type MOM struct {
	PrimaryID string   // the object's ARK; must be given
	Type      string   // such as MRT-curatorial; must be given
	Role      string   // such as MRT-content; must be given
	Aggregate string   // such as MRT-collection; left out when empty
	LocalIDs  []string // left out when empty
}

// WriteMOM writes mrt-mom.txt. A missing field that must be given, or a value that ANVL cannot
// carry, is a *FieldError; then nothing is written.
func WriteMOM(w io.Writer, v MOM) error {
	return writeFields(w, "mrt-mom.txt", Space, []field{
		{"primaryIdentifier", v.PrimaryID, true},
		{"type", v.Type, true},
		{"role", v.Role, true},
		{"aggregate", v.Aggregate, false},
		{"localIdentifier", JoinLocalIDs(v.LocalIDs), false},
	})
}

// Owner is what mrt-owner.txt records.
type Owner struct {
	ARK string // the owner's ARK, under which local ids are unique
}

// WriteOwner writes mrt-owner.txt: the ARK and nothing else, not even a newline. A value that is
// empty or does not fit one line is a *FieldError; then nothing is written.
func WriteOwner(w io.Writer, v Owner) error {
	const file = "mrt-owner.txt"
	if err := checkLine(file, "owner", v.ARK); err != nil {
		return err
	}
	return writeWhole(w, file, v.ARK)
}

// Membership is what mrt-membership.txt records.
type Membership struct {
	Collections []string // ARKs of the collections that hold the object; at least one
}

// WriteMembership writes mrt-membership.txt, one ARK a line. An empty list, or a value that is
// empty or does not fit one line, is a *FieldError; then nothing is written.
func WriteMembership(w io.Writer, v Membership) error {
	const file = "mrt-membership.txt"
	if len(v.Collections) == 0 {
		return &FieldError{File: file, Field: "collection", Reason: "is missing"}
	}
	for _, c := range v.Collections {
		if err := checkLine(file, "collection", c); err != nil {
			return err
		}
	}
	return writeWhole(w, file, strings.Join(v.Collections, "\n")+"\n")
}

// checkLine refuses what a file without escapes cannot hold.
func checkLine(file, name, value string) error {
	reason := ""
	switch {
	case strings.TrimSpace(value) == "":
		reason = "is missing"
	case !carriable(value) || strings.ContainsAny(value, "\r\n"):
		reason = "does not fit one line of text"
	default:
		return nil
	}
	return &FieldError{File: file, Field: name, Reason: reason}
}
