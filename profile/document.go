// Package profile reads and writes profiles of collections in YAML, in JSON, and in Merritt's key:
// value format.
//
// A document is accepted as a whole or not at all. All faults are reported at once with line and
// column. Nothing is guessed: an unknown or repeated name, or a value of the wrong type, is a
// fault. The Registry decides whether a collection may have the profile.
package profile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/holdfast/holdfast/registry"
)

// MaxSize is the greatest size of a document in bytes.
const MaxSize = 1 << 20

// Place is a position in a document, counted from 1. The zero Place is unknown.
type Place struct {
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
}

// Document is a parsed profile with the places of its parts.
type Document struct {
	Profile registry.Profile
	places  map[string]Place
}

// Place returns the place of a part of the profile, named as in the Registry's refusals
// (body.mail.to[1]). For a missing part it returns the place of the nearest part that contains it.
func (d *Document) Place(location string) Place { return nearestPlace(d.places, location) }

func nearestPlace(places map[string]Place, location string) Place {
	for path, _ := strings.CutPrefix(location, "body"); ; {
		path = strings.TrimPrefix(path, ".")
		if at, ok := places[path]; ok || path == "" {
			return at
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
}

// Fault is one fault of a document.
type Fault struct {
	Place
	Message string `json:"message"`
}

// Faults are all faults of a document in its order.
type Faults []Fault

// Error returns all faults with their places, one per line.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, one := range f {
		lines[i] = fmt.Sprintf("line %d, column %d: %s", one.Line, one.Column, one.Message)
		if one.Column == 0 {
			lines[i] = fmt.Sprintf("line %d: %s", one.Line, one.Message)
		}
	}
	return strings.Join(lines, "\n")
}

// Parse reads a profile. A document that begins with { is JSON, any other YAML. A null value counts
// as not given. The error is Faults.
func Parse(text []byte) (*Document, error) {
	d := &Document{}
	places, err := parse(text, &d.Profile)
	if err != nil {
		return nil, err
	}
	d.places = places
	return d, nil
}

// ParseTerms reads terms: the part terms of a profile, as a document of its own. The error is Faults.
func ParseTerms(text []byte) (registry.Terms, error) {
	var terms registry.Terms
	_, err := parse(text, &terms)
	return terms, err
}

// parse reads a document into a struct, and returns the places of its parts.
func parse(text []byte, into any) (map[string]Place, error) {
	if len(text) > MaxSize {
		return nil, Faults{{Place{1, 1}, fmt.Sprintf("it has %d bytes; it may have at most %d", len(text), MaxSize)}}
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	read := fromYAML
	if bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{")) {
		read = fromJSON
	}
	root, faults := read(text)
	if faults != nil {
		return nil, faults
	}
	places, faults := check(root, reflect.TypeOf(into).Elem())
	if len(faults) > 0 {
		return nil, faults
	}
	// The checked document fits, unless a number is too large.
	if err := json.Unmarshal(root.json(), into); err != nil {
		return nil, Faults{{root.Place, err.Error()}}
	}
	return places, nil
}
