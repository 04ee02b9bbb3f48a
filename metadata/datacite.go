package metadata

import (
	"encoding/xml"
	"errors"
	"io"
)

// DataCite holds the fields of a DataCite record that Holdfast uses (kernels 2 to 4).
type DataCite struct {
	Creators []string // creatorName
	// Titles are the main titles, or if there are none, translated, alternative and sub-titles.
	Titles          []string
	PublicationYear string
	Publisher       string
	Identifiers     []Identifier // the identifier, then the alternate identifiers
}

// Identifier is an identifier with its type according to the record, such as DOI.
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

// ReadDataCite reads a DataCite record such as mrt-datacite.xml, in the namespace of any kernel.
// White space within a value becomes one space. Empty values are ignored. The file is read to its
// end, so a truncated one is an error.
//
// Errors: *SyntaxError, ErrTooLarge, and ErrNoMetadata if the root is not "resource".
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

// metadata returns the DataCite part for Merge. None of its identifiers becomes a local id, because
// they identify a publication and often other things than this object.
func (d *DataCite) metadata() Metadata {
	m := Metadata{Who: d.Creators, What: d.Titles}
	addValue(&m.When, d.PublicationYear)
	return m
}
