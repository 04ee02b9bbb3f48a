package registry

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Terms say how long and how well an object is to be kept, and on what terms its files may be used.
// A profile has those of its collection, a submission may have its own, and an object has those in
// force. The zero value says nothing.
type Terms struct {
	Rights *Rights `json:"rights,omitempty" doc:"The rights in the object, as PREMIS records them"`
	// PreservationLevel is the institution's own word: PREMIS has no vocabulary for it.
	PreservationLevel string `json:"preservation_level,omitempty" doc:"How well the object is to be preserved, in the institution's words, such as bit-level or full" example:"full"`
	// EmbargoUntil is the first day, in UTC, on which the files may be read again: YYYY-MM-DD. "" is
	// no embargo.
	EmbargoUntil  string `json:"embargo_until,omitempty" doc:"The first day (UTC, YYYY-MM-DD) on which others than admins may read the files" example:"2030-01-01"`
	EmbargoReason string `json:"embargo_reason,omitempty" doc:"Why there is an embargo; readers who are refused see it"`
}

// Rights is a rights statement (PREMIS Data Dictionary 3.0, semantic unit rightsStatement).
type Rights struct {
	Basis RightsBasis `json:"basis" required:"false" doc:"copyright, license, statute or other"`
	// Status is of a copyright: [CopyrightStatuses].
	Status       string `json:"status,omitempty" doc:"Of a copyright: copyrighted, public domain or unknown" example:"copyrighted"`
	Jurisdiction string `json:"jurisdiction,omitempty" doc:"Of a copyright or statute: the country, by its two letters of ISO 3166-1" example:"de"`
	Statement    string `json:"statement,omitempty" doc:"The statement: terms of the license, citation of the statute, or a note" example:"In copyright, 1932 to 2037"`
	URI          string `json:"uri,omitempty" doc:"Address of the statement or license" example:"https://rightsstatements.org/vocab/InC/1.0/"`
}

// RightsBasis says where rights come from.
type RightsBasis string

// The bases of rights: terms of id.loc.gov's vocabulary rightsBasis, in lower case.
const (
	Copyright   RightsBasis = "copyright"
	License     RightsBasis = "license"
	Statute     RightsBasis = "statute"
	OtherRights RightsBasis = "other"
)

// RightsBases returns all bases of rights.
func RightsBases() []RightsBasis { return []RightsBasis{Copyright, License, Statute, OtherRights} }

// CopyrightStatuses returns the statuses of a copyright: labels of id.loc.gov's vocabulary
// copyrightStatus.
func CopyrightStatuses() []string { return []string{"copyrighted", "public domain", "unknown"} }

// Faults returns what is wrong with the terms, each in its field. The length of texts is for the API.
func (t Terms) Faults() (faults []*FieldError) {
	add := func(field, format string, args ...any) {
		faults = append(faults, &FieldError{field, fmt.Errorf(format, args...)})
	}
	if t.EmbargoUntil != "" {
		if _, err := time.Parse(time.DateOnly, t.EmbargoUntil); err != nil {
			add("embargo_until", "%.50q is not a day; write it as 2030-01-01", t.EmbargoUntil)
		}
	} else if t.EmbargoReason != "" {
		add("embargo_until", "missing: an embargo that has a reason needs the day on which it ends")
	}
	if r := t.Rights; r != nil {
		r.faults(add)
	}
	return faults
}

// faults adds what is wrong with the rights. A document that says less than PREMIS asks for would not
// be valid.
func (r Rights) faults(add func(field, format string, args ...any)) {
	if !slices.Contains(RightsBases(), r.Basis) {
		add("rights.basis", "%.50q is not one of %v", r.Basis, OneOf(RightsBases()))
	}
	if u, err := url.Parse(r.URI); r.URI != "" && (err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "") {
		add("rights.uri", "%.100q is not an address with https: or http:", r.URI)
	}
	if r.Jurisdiction != "" && (len(r.Jurisdiction) != 2 || strings.Trim(r.Jurisdiction, "abcdefghijklmnopqrstuvwxyz") != "") {
		add("rights.jurisdiction", "%.50q is not a country's two letters, such as de", r.Jurisdiction)
	}
	if r.Status != "" && (r.Basis != Copyright || !slices.Contains(CopyrightStatuses(), r.Status)) {
		add("rights.status", "%.50q: it is of a copyright only, and one of %v", r.Status, OneOf(CopyrightStatuses()))
	}
	if r.Jurisdiction != "" && r.Basis != Copyright && r.Basis != Statute {
		add("rights.jurisdiction", "only a copyright or a statute has one")
	}
	if r.Basis == Copyright && r.Status == "" {
		add("rights.status", "missing: a copyright needs one of %v", OneOf(CopyrightStatuses()))
	}
	if (r.Basis == Copyright || r.Basis == Statute) && r.Jurisdiction == "" {
		add("rights.jurisdiction", "missing: whose law it is, as a country's two letters, such as de")
	}
	switch {
	case r.Basis == Statute && r.Statement == "":
		add("rights.statement", "missing: the citation of the statute")
	case r.Basis == License && r.Statement == "" && r.URI == "":
		add("rights.statement", "missing: the terms of the license, or its address in rights.uri")
	case r.Basis == OtherRights && r.Statement == "":
		add("rights.statement", "missing: what the rights are based on")
	}
}

// Over returns these terms with what they leave open taken from others. Of two embargoes the later
// counts, so that neither a submission nor an update shortens one.
func (t Terms) Over(others Terms) Terms {
	if t.Rights == nil {
		t.Rights = others.Rights
	}
	t.PreservationLevel = cmp.Or(t.PreservationLevel, others.PreservationLevel)
	if others.EmbargoUntil > t.EmbargoUntil { // days in this form sort by time
		t.EmbargoUntil, t.EmbargoReason = others.EmbargoUntil, others.EmbargoReason
	}
	return t
}

// Embargoed reports whether an embargo keeps the files from being read at a time.
func (t Terms) Embargoed(at time.Time) bool {
	return t.EmbargoUntil != "" && at.UTC().Format(time.DateOnly) < t.EmbargoUntil
}

// Keep reports whether an embargo keeps the files from somebody with a role at a time: all but admins.
func (t Terms) Keep(from Role, at time.Time) bool { return from != RoleAdmin && t.Embargoed(at) }

// Embargo says the embargo; "" if there is none.
func (t Terms) Embargo() string {
	if t.EmbargoUntil == "" {
		return ""
	}
	text := fmt.Sprintf("embargo until %s", t.EmbargoUntil)
	if t.EmbargoReason != "" {
		text += " (" + t.EmbargoReason + ")"
	}
	return text
}

// IsZero reports whether the terms say nothing.
func (t Terms) IsZero() bool { return t == Terms{} }

// String says the terms in one line; "" if they say nothing.
func (t Terms) String() string {
	var parts []string
	if r := t.Rights; r != nil {
		parts = append(parts, "rights: "+r.String())
	}
	if t.PreservationLevel != "" {
		parts = append(parts, fmt.Sprintf("preservation level: %s", t.PreservationLevel))
	}
	if text := t.Embargo(); text != "" {
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// PolicyAssignment is the type of the preservation event of an admin's assignment of terms.
const PolicyAssignment = "policy assignment"

// asData separates what people read of an assignment of terms from what programs read.
const asData = ". As data: "

// Detail is the detail of the preservation event of an admin's assignment of terms. [TermsIn] finds the
// terms in it again.
func (t Terms) Detail(actor, reason string) string {
	text := t.String()
	if text == "" {
		text = "no rights, preservation level or embargo"
	}
	data, _ := json.Marshal(t) // texts cannot fail
	return text + ", set by " + actor + ": " + reason + asData + string(data)
}

// TermsIn returns the terms that an admin assigned, of the detail of their preservation event; ok is
// false if it has none.
func TermsIn(detail string) (t Terms, ok bool) {
	for found := true; found; { // a reason may have the same words
		if _, detail, found = strings.Cut(detail, asData); found && json.Unmarshal([]byte(detail), &t) == nil {
			return t, true
		}
	}
	return Terms{}, false
}

// String says the rights in one line.
func (r Rights) String() string {
	text := string(r.Basis)
	if r.Status != "" {
		text += " (" + r.Status + ")"
	}
	if r.Jurisdiction != "" {
		text += " in " + r.Jurisdiction
	}
	for _, more := range []string{r.Statement, r.URI} {
		if more != "" {
			text += ", " + more
		}
	}
	return text
}
