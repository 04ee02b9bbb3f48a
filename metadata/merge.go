package metadata

import (
	"fmt"
	"strings"
)

// Metadata is the merged metadata of an object.
type Metadata struct {
	Who       []string
	What      []string
	When      []string
	PrimaryID string   // the ARK as written, or ""
	LocalIDs  []string // each once, in order
}

// Sources are the sources of metadata. Missing sources are nil or empty.
type Sources struct {
	ERC        *ERC        // the payload's mrt-erc.txt
	DataCite   *DataCite   // the payload's mrt-datacite.xml
	DublinCore *DublinCore // the payload's mrt-dc.xml
	Form       Metadata    // the manifest's row or the form; its local ids are already split
	// SuppressDublinCoreLocalID ignores local ids in dc:identifier, a setting of the collection.
	SuppressDublinCoreLocalID bool
}

// ConflictError says that two sources name different ARKs.
type ConflictError struct {
	First, FirstSource   string
	Second, SecondSource string
}

// Error implements error.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("primary identifiers differ: %s names %s, %s names %s", e.FirstSource, e.First, e.SecondSource, e.Second)
}

// Merge merges the sources. For each of who, what and when it takes the first source that has a
// value, in the order mrt-erc, mrt-datacite, mrt-dc, form. "(:unas)" counts as no value; other
// codes count as values.
//
// The primary identifier is the ARK of the form or of the ERC, never an identifier in XML. Local
// ids are those of the form, the ERC and Dublin Core, in that order, without duplicates.
//
// It returns a *ConflictError for two different ARKs, ignoring hyphens and the slash after "ark:".
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
	m.LocalIDs = MergeLocalIDs(s.Form.LocalIDs, local, fromDC.LocalIDs)
	return m, nil
}

// ERC returns the metadata as an ERC for mrt-erc.txt. Its first place is the ARK, its second the
// list of local ids.
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

// firstOf returns a copy of the first list that has a value.
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

// sameARK reports whether two ARKs are equal, ignoring the case of the scheme, the slash after it
// and hyphens.
func sameARK(a, b string) bool { return bareARK(a) == bareARK(b) }

func bareARK(s string) string {
	s = strings.TrimSpace(s)
	if IsARK(s) {
		s = strings.TrimPrefix(s[4:], "/")
	}
	return strings.ReplaceAll(s, "-", "")
}
