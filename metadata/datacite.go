package metadata

import (
	"encoding/xml"
	"errors"
	"io"
)

// DataCite holds what Holdfast reads of a DataCite record (kernels 2 to 4).
type DataCite struct {
	Creators []string // creatorName
	// Titles are the main titles; translated, alternative and sub-titles only if there is no main
	// one.
	Titles          []string
	PublicationYear string
	Publisher       string
	Identifiers     []Identifier // identifier, then the alternate identifiers
}

// Identifier is an identifier with the type that its source gives it, such as DOI.
type Identifier struct {
	Type  string
	Value string
}

type dataciteXML struct {
	XMLName    xml.Name
	Identifier struct {
		Type  string `xml:"identifierType,attr"`
		Value string `xml:",chardata"`
	} `xml:"identifier"`
	Creators []struct {
		Name string `xml:"creatorName"`
	} `xml:"creators>creator"`
	Titles []struct {
		Type  string `xml:"titleType,attr"`
		Value string `xml:",chardata"`
	} `xml:"titles>title"`
	Publisher       string `xml:"publisher"`
	PublicationYear string `xml:"publicationYear"`
	Alternates      []struct {
		Type  string `xml:"alternateIdentifierType,attr"`
		Value string `xml:",chardata"`
	} `xml:"alternateIdentifiers>alternateIdentifier"`
}

// ReadDataCite reads a DataCite record such as mrt-datacite.xml, in any kernel's namespace. White
// space within a value becomes one space; empty values are left out. The file is read to its end,
// so that a truncated one is an error.
//
// Errors: *SyntaxError, ErrTooLarge, and ErrNoMetadata when the root is not "resource".
func ReadDataCite(r io.Reader) (DataCite, error) {
	dec := newDecoder(r)
	var in dataciteXML
	err := dec.Decode(&in)
	if errors.Is(err, io.EOF) {
		return DataCite{}, &SyntaxError{Line: 1, Reason: "the file has no XML element"}
	}
	for err == nil {
		_, err = dec.Token()
	}
	if !errors.Is(err, io.EOF) {
		return DataCite{}, xmlError(dec, err)
	}
	if in.XMLName.Local != "resource" {
		return DataCite{}, ErrNoMetadata
	}
	return in.dataCite(), nil
}

func (in *dataciteXML) dataCite() DataCite {
	d := DataCite{PublicationYear: oneLine(in.PublicationYear), Publisher: oneLine(in.Publisher)}
	for _, c := range in.Creators {
		addValue(&d.Creators, oneLine(c.Name))
	}
	var others []string
	for _, t := range in.Titles {
		if t.Type == "" {
			addValue(&d.Titles, oneLine(t.Value))
		} else {
			addValue(&others, oneLine(t.Value))
		}
	}
	if d.Titles == nil {
		d.Titles = others
	}
	d.addIdentifier(in.Identifier.Type, in.Identifier.Value)
	for _, a := range in.Alternates {
		d.addIdentifier(a.Type, a.Value)
	}
	return d
}

func (d *DataCite) addIdentifier(kind, value string) {
	if value = oneLine(value); value != "" {
		d.Identifiers = append(d.Identifiers, Identifier{Type: oneLine(kind), Value: value})
	}
}

// metadata returns what Merge takes from DataCite. Its identifiers are those of a publication and
// name other things as often as this one, so none becomes a local id.
func (d *DataCite) metadata() Metadata {
	m := Metadata{Who: d.Creators, What: d.Titles}
	addValue(&m.When, d.PublicationYear)
	return m
}
