package metadata

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
)

// The namespaces of Dublin Core.
const (
	dcElements = "http://purl.org/dc/elements/1.1/"
	dcTerms    = "http://purl.org/dc/terms/"
	xsi        = "http://www.w3.org/2001/XMLSchema-instance"
)

// DublinCore holds the fifteen elements of the Dublin Core Metadata Element Set 1.1, each with any
// number of values.
type DublinCore struct {
	Title       []string
	Creator     []string
	Subject     []string
	Description []string
	Publisher   []string
	Contributor []string
	Date        []string
	Type        []string
	Format      []string
	Identifier  []string
	Source      []string
	Language    []string
	Relation    []string
	Coverage    []string
	Rights      []string
}

type dcElement struct {
	name   string
	values *[]string
	list   bool // WriteDublinCore splits its values at ";"
}

// elements returns the fields in the order of the element set, which WriteDublinCore uses.
func (d *DublinCore) elements() []dcElement {
	return []dcElement{
		{"title", &d.Title, false},
		{"creator", &d.Creator, true},
		{"subject", &d.Subject, true},
		{"description", &d.Description, false},
		{"publisher", &d.Publisher, false},
		{"contributor", &d.Contributor, false},
		{"date", &d.Date, false},
		{"type", &d.Type, false},
		{"format", &d.Format, false},
		{"identifier", &d.Identifier, true},
		{"source", &d.Source, false},
		{"language", &d.Language, false},
		{"relation", &d.Relation, true},
		{"coverage", &d.Coverage, false},
		{"rights", &d.Rights, false},
	}
}

func (d *DublinCore) element(name xml.Name) *[]string {
	// An undeclared prefix appears as the namespace "dc".
	if name.Space != dcElements && name.Space != dcTerms && name.Space != "dc" {
		return nil
	}
	for _, e := range d.elements() {
		if strings.EqualFold(e.name, name.Local) {
			return e.values
		}
	}
	return nil
}

// ReadDublinCore reads the Dublin Core elements of an XML file, such as mrt-dc.xml or an OAI
// record, with any root and at any depth. White space within a value becomes one space. Empty
// values are ignored. The file is read to its end, so a truncated one is an error.
//
// Errors: *SyntaxError, ErrTooLarge, and ErrNoMetadata if the XML has no Dublin Core elements and
// its root is not named after Dublin Core.
func ReadDublinCore(r io.Reader) (DublinCore, error) {
	dec := newDecoder(r)
	var d DublinCore
	var root string
	var current *[]string // the field whose element is open
	var text strings.Builder
	depth, opened, found := 0, 0, false
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return DublinCore{}, xmlError(dec, err)
		}
		switch t := token.(type) {
		case xml.StartElement:
			if depth++; root == "" {
				root = t.Name.Local
			}
			if field := d.element(t.Name); field != nil && current == nil {
				current, opened, found = field, depth, true
				text.Reset()
			}
		case xml.CharData:
			if current != nil {
				text.Write(t)
			}
		case xml.EndElement:
			if current != nil && depth == opened {
				addValue(current, oneLine(text.String()))
				current = nil
			}
			depth--
		}
	}
	switch {
	case root == "":
		return DublinCore{}, &SyntaxError{Line: 1, Reason: "the file has no XML element"}
	case !found && !strings.EqualFold(root, "DublinCore") && !strings.EqualFold(root, "dc"):
		return DublinCore{}, ErrNoMetadata
	}
	return d, nil
}

// WriteDublinCore writes mrt-dc.xml with the elements in the order of the element set. It splits
// the values of creator, subject, relation and identifier with SplitLocalIDs, and writes one
// element for each part. Empty values are left out.
//
// For a value that XML 1.0 cannot hold (control characters, not UTF-8) it returns a *FieldError and
// writes nothing.
func WriteDublinCore(w io.Writer, d DublinCore) error {
	const file = "mrt-dc.xml"
	var b strings.Builder
	b.WriteString(xml.Header)
	b.WriteString(`<DublinCore xmlns:xsi="` + xsi + `" xmlns:dc="` + dcElements + `">` + "\n")
	for _, e := range d.elements() {
		values := *e.values
		if e.list {
			values = nil
			for _, v := range *e.values {
				values = append(values, SplitLocalIDs(v)...)
			}
		}
		for _, v := range values {
			if v == "" {
				continue
			}
			if !inXML(v) {
				return &FieldError{File: file, Field: "dc:" + e.name, Reason: "contains a character that XML cannot hold"}
			}
			b.WriteString("  <dc:" + e.name + ">")
			if err := xml.EscapeText(&b, []byte(v)); err != nil {
				return &FieldError{File: file, Field: "dc:" + e.name, Reason: err.Error()}
			}
			b.WriteString("</dc:" + e.name + ">\n")
		}
	}
	b.WriteString("</DublinCore>\n")
	return writeWhole(w, file, b.String())
}

// metadata returns the Dublin Core part for Merge. ARKs among the identifiers are not local ids.
func (d *DublinCore) metadata() Metadata {
	m := Metadata{Who: d.Creator, What: d.Title, When: d.Date}
	for _, id := range d.Identifier {
		_, local := splitIDs(id)
		m.LocalIDs = append(m.LocalIDs, local...)
	}
	return m
}
