package metadata

import (
	"io"
	"strings"
)

// MOM is the content of mrt-mom.txt: the kind of object in Merritt's terms.
type MOM struct {
	PrimaryID string   // the object's ARK; required
	Type      string   // such as MRT-curatorial; required
	Role      string   // such as MRT-content; required
	Aggregate string   // such as MRT-collection; optional
	LocalIDs  []string // optional
}

// WriteMOM writes mrt-mom.txt. For a missing required field, or a value that ANVL cannot hold, it
// returns a *FieldError and writes nothing.
func WriteMOM(w io.Writer, v MOM) error {
	return writeFields(w, "mrt-mom.txt", Space, []field{
		{"primaryIdentifier", v.PrimaryID, true},
		{"type", v.Type, true},
		{"role", v.Role, true},
		{"aggregate", v.Aggregate, false},
		{"localIdentifier", JoinLocalIDs(v.LocalIDs), false},
	})
}

// Owner is the content of mrt-owner.txt.
type Owner struct {
	ARK string // the owner's ARK; local ids are unique below it
}

// WriteOwner writes mrt-owner.txt: only the ARK, without a newline. For a value that is empty or
// does not fit on one line it returns a *FieldError and writes nothing.
func WriteOwner(w io.Writer, v Owner) error {
	const file = "mrt-owner.txt"
	if err := checkLine(file, "owner", v.ARK); err != nil {
		return err
	}
	return writeWhole(w, file, v.ARK)
}

// Membership is the content of mrt-membership.txt.
type Membership struct {
	Collections []string // ARKs of the object's collections; at least one
}

// WriteMembership writes mrt-membership.txt, one ARK per line. For an empty list, or a value that
// is empty or does not fit on one line, it returns a *FieldError and writes nothing.
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

// checkLine refuses a value that a file without escapes cannot hold.
func checkLine(file, name, value string) error {
	reason := ""
	switch {
	case strings.TrimSpace(value) == "":
		reason = "is missing"
	case !carriable(value) || strings.ContainsAny(value, "\r\n"):
		reason = "does not fit on one line of text"
	default:
		return nil
	}
	return &FieldError{File: file, Field: name, Reason: reason}
}
