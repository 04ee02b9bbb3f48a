// Package profile reads and writes collections' profiles as people write them: in YAML or JSON, or
// as Merritt's key: value files.
//
// A document is taken whole or not at all. All faults are reported at once, each with line and
// column. Nothing is guessed: a name that is misspelled or stands twice, or a value of another
// type, is a fault. Whether a collection may have the profile is for the Registry to decide.
package profile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/registry"
)

// MaxSize is the size of the largest document that is read, in bytes.
const MaxSize = 1 << 20

// Place is where something stands in a document, from 1 on. The zero Place is nowhere.
type Place struct {
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
}

// Document is a profile that was read, and where its parts stand.
type Document struct {
	Profile registry.Profile
	places  map[string]Place
}

// Place returns where a part of the profile stands, named as the Registry names it in its refusals
// (body.mail.to[1]): itself, else what it would be a part of.
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

// Fault is one thing that is wrong with a document.
type Fault struct {
	Place
	Message string `json:"message"`
}

// Faults are all that is wrong with a document, in its order.
type Faults []Fault

// Error names each with its place.
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

// Parse reads a profile. A document that begins with { is JSON, any other YAML. What is null is not
// given. The error is Faults.
func Parse(text []byte) (*Document, error) {
	if len(text) > MaxSize {
		return nil, Faults{{Place{1, 1}, fmt.Sprintf("it has %d bytes; a profile has %d at most", len(text), MaxSize)}}
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	parse := fromYAML
	if bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{")) {
		parse = fromJSON
	}
	root, faults := parse(text)
	if faults != nil {
		return nil, faults
	}
	d := &Document{places: map[string]Place{}}
	if faults := d.check(root); len(faults) > 0 {
		return nil, faults
	}
	// What was checked fits, but for numbers that are too large.
	if err := json.Unmarshal(root.json(), &d.Profile); err != nil {
		return nil, Faults{{root.Place, err.Error()}}
	}
	return d, nil
}
