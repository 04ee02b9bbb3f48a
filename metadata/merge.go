package metadata

import (
	"fmt"
	"strings"
)

// Metadata is what is known of an object from all its sources.
type Metadata struct {
	Who       []string
	What      []string
	When      []string
	PrimaryID string   // the ARK, as written; "" when there is none yet
	LocalIDs  []string // each once, in order
}

// Sources are the places that metadata come from. Absent sources are nil or empty.
type Sources struct {
	ERC        *ERC        // the payload's mrt-erc.txt
	DataCite   *DataCite   // the payload's mrt-datacite.xml
	DublinCore *DublinCore // the payload's mrt-dc.xml
	Form       Metadata    // the manifest's row or the form; its local ids already split
	// EarlierLocalIDs are those of the object that an update is for; they come first in the merged
	// list.
	EarlierLocalIDs []string
	// SuppressDublinCoreLocalID keeps dc:identifier from becoming a local id: a setting of the
	// collection.
	SuppressDublinCoreLocalID bool
}

// ConflictError says that two sources name different ARKs for one object.
type ConflictError struct {
	First, FirstSource   string
	Second, SecondSource string
}

// Error implements error.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("primary identifiers differ: %s names %s, %s names %s", e.FirstSource, e.First, e.SecondSource, e.Second)
}

// Merge puts the sources together. For each of who, what and when the first source that has it
// wins, in the order mrt-erc, mrt-datacite, mrt-dc, form; a value of "(:unas)" counts as not had,
// other codes are statements and count. The primary identifier is the form's or the ERC's ARK;
// identifiers in XML never become it. Local ids are those of the earlier version, the form, the ERC
// and Dublin Core, in that order, each string once.
//
// Two ARKs that differ by more than the slash after "ark:" and by hyphens are a *ConflictError.
func Merge(s Sources) (Metadata, error) {
	m := Metadata{PrimaryID: strings.TrimSpace(s.Form.PrimaryID)}
	var fromERC ERC
	if s.ERC != nil {
		fromERC = *s.ERC
	}
	var fromDC, fromDataCite Metadata
	if s.DataCite != nil {
		fromDataCite = s.DataCite.metadata()
	}
	if s.DublinCore != nil {
		fromDC = s.DublinCore.metadata()
	}
	m.Who = firstOf(fromERC.Who, fromDataCite.Who, fromDC.Who, s.Form.Who)
	m.What = firstOf(fromERC.What, fromDataCite.What, fromDC.What, s.Form.What)
	m.When = firstOf(fromERC.When, fromDataCite.When, fromDC.When, s.Form.When)

	arks, local := fromERC.Identifiers()
	source := "the submission"
	for _, ark := range arks {
		switch {
		case m.PrimaryID == "":
			m.PrimaryID, source = ark, "mrt-erc.txt"
		case !sameARK(m.PrimaryID, ark):
			return Metadata{}, &ConflictError{First: m.PrimaryID, FirstSource: source, Second: ark, SecondSource: "mrt-erc.txt"}
		}
	}
	if s.SuppressDublinCoreLocalID {
		fromDC.LocalIDs = nil
	}
	m.LocalIDs = MergeLocalIDs(s.EarlierLocalIDs, s.Form.LocalIDs, local, fromDC.LocalIDs)
	return m, nil
}

// ERC returns the metadata as an ERC whose first place is the ARK and whose second are the local
// ids, which is what WriteERC puts into mrt-erc.txt.
func (m Metadata) ERC() ERC {
	e := ERC{Who: m.Who, What: m.What, When: m.When}
	if m.PrimaryID != "" {
		e.Where = append(e.Where, m.PrimaryID)
	}
	if len(m.LocalIDs) > 0 {
		e.Where = append(e.Where, JoinLocalIDs(m.LocalIDs))
	}
	return e
}

// firstOf returns the values of the first list that says anything, a copy.
func firstOf(lists ...[]string) []string {
	for _, list := range lists {
		var said []string
		for _, v := range list {
			if v = strings.TrimSpace(v); v == "" {
				continue
			}
			if code, _, ok := ParseCode(v); ok && code == Unassigned {
				continue
			}
			said = append(said, v)
		}
		if len(said) > 0 {
			return said
		}
	}
	return nil
}

// sameARK compares two ARKs as far as this package knows them: scheme, slash and hyphens are of no
// account.
func sameARK(a, b string) bool { return bareARK(a) == bareARK(b) }

func bareARK(s string) string {
	s = strings.TrimSpace(s)
	if IsARK(s) {
		s = strings.TrimPrefix(s[4:], "/")
	}
	return strings.ReplaceAll(s, "-", "")
}
