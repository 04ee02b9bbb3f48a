package ocfl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/storage"
)

// Layout maps the identifier of an object to its folder below the storage root.
type Layout interface {
	// Name returns the registered name of the extension that defines the layout.
	Name() string
	// Path returns the folder of the object id, or an error if the layout has none for it.
	Path(id string) (string, error)
	// Check returns an error if the layout's parameters are invalid.
	Check() error
	// description returns the sentence for ocfl_layout.json.
	description() string
	// extension returns the name in the configuration.
	extension() string
	// shares reports whether several identifiers may have the same folder.
	shares() bool
}

// layouts are the names of the supported layouts.
var layouts = []string{flatDirect, hashAndID, hashedNTuple, flatOmitPrefix, nTupleOmitPrefix}

const (
	hashedNTuple   = "0004-hashed-n-tuple-storage-layout"
	flatOmitPrefix = "0006-flat-omit-prefix-storage-layout"
)

// HashedNTuple is extension 0004: a tree of folders named by a digest of the identifier. Every
// identifier has a path.
type HashedNTuple struct {
	ExtensionName   string `json:"extensionName"`
	DigestAlgorithm string `json:"digestAlgorithm"`
	TupleSize       int    `json:"tupleSize"`
	NumberOfTuples  int    `json:"numberOfTuples"`
	ShortObjectRoot bool   `json:"shortObjectRoot"`
}

// NewHashedNTuple returns extension 0004 with its defaults: sha256, three tuples of three.
func NewHashedNTuple() *HashedNTuple {
	return &HashedNTuple{ExtensionName: hashedNTuple, DigestAlgorithm: SHA256, TupleSize: 3, NumberOfTuples: 3}
}

// Name implements Layout.
func (*HashedNTuple) Name() string { return hashedNTuple }

func (*HashedNTuple) description() string {
	return "Object folders are named by the hex digest of the object's identifier, below folders of leading digits"
}

func (l *HashedNTuple) extension() string { return l.ExtensionName }

func (*HashedNTuple) shares() bool { return false }

// Check implements Layout. It checks the constraints of the extension.
func (l *HashedNTuple) Check() error {
	if err := checkTuples("0004", l.DigestAlgorithm, l.TupleSize, l.NumberOfTuples); err != nil {
		return err
	}
	if l.ShortObjectRoot && l.TupleSize*l.NumberOfTuples == 2*newHash(l.DigestAlgorithm).Size() {
		return errors.New("ocfl: layout 0004: shortObjectRoot leaves no name for the object's folder")
	}
	return nil
}

// Path implements Layout.
func (l *HashedNTuple) Path(id string) (string, error) {
	if err := l.Check(); err != nil {
		return "", err
	}
	digest := hashOf(l.DigestAlgorithm, id)
	folder := digest
	if l.ShortObjectRoot {
		folder = digest[l.TupleSize*l.NumberOfTuples:]
	}
	return tuples(digest, l.TupleSize, l.NumberOfTuples) + folder, nil
}

// FlatOmitPrefix is extension 0006. The folder of an object lies directly below the root. Its name
// is the part of the identifier after the last Delimiter, or the whole identifier without one. Two
// identifiers may map to the same folder; Admit and Commit refuse the second.
type FlatOmitPrefix struct {
	ExtensionName string `json:"extensionName"`
	Delimiter     string `json:"delimiter"`
}

// NewFlatOmitPrefix returns extension 0006 with a delimiter. Case is ignored when it is matched.
func NewFlatOmitPrefix(delimiter string) *FlatOmitPrefix {
	return &FlatOmitPrefix{ExtensionName: flatOmitPrefix, Delimiter: delimiter}
}

// Name implements Layout.
func (*FlatOmitPrefix) Name() string { return flatOmitPrefix }

func (*FlatOmitPrefix) description() string {
	return "Object folders are named by the object's identifier without the prefix that ends in a delimiter"
}

func (l *FlatOmitPrefix) extension() string { return l.ExtensionName }

func (*FlatOmitPrefix) shares() bool { return true }

// Check implements Layout.
func (l *FlatOmitPrefix) Check() error {
	if l.Delimiter == "" {
		return errors.New("ocfl: layout 0006: no delimiter")
	}
	return nil
}

// Path implements Layout.
func (l *FlatOmitPrefix) Path(id string) (string, error) {
	if err := l.Check(); err != nil {
		return "", err
	}
	return topFolder(flatOmitPrefix, id, omitPrefix(id, l.Delimiter))
}

// omitPrefix returns what follows the last delimiter, whose case is ignored, or the whole identifier.
func omitPrefix(id, delimiter string) string {
	for i := len(id) - len(delimiter); i >= 0; i-- {
		if strings.EqualFold(id[i:i+len(delimiter)], delimiter) {
			return id[i+len(delimiter):]
		}
	}
	return id
}

// topFolder checks that the name that a layout has for an object can be that of a folder in the root: it
// must not be one of the root's own files, nor contain a slash.
func topFolder(layout, id, name string) (string, error) {
	reserved := name == extensionsFolder || name == layoutName || strings.HasPrefix(name, rootPrefix)
	if reserved || strings.Contains(name, "/") || storage.CheckKey(name) != nil {
		number, _, _ := strings.Cut(layout, "-")
		return "", &PathError{Path: id, Reason: fmt.Sprintf("layout %s maps the identifier to %q, which is not a folder name", number, name)}
	}
	return name, nil
}

// parseLayout returns the layout with this name and configuration, the text of a config.json. An
// empty text means the defaults.
func parseLayout(name string, config []byte) (Layout, error) {
	return decodeLayout(name, config, false)
}

// decodeLayout does the work of parseLayout. If strict is set it refuses unknown parameters.
func decodeLayout(name string, config []byte, strict bool) (Layout, error) {
	var layout Layout
	switch name {
	case hashedNTuple:
		layout = NewHashedNTuple()
	case flatOmitPrefix:
		layout = NewFlatOmitPrefix("")
	case flatDirect:
		layout = NewFlatDirect()
	case hashAndID:
		layout = NewHashAndID()
	case nTupleOmitPrefix:
		layout = NewNTupleOmitPrefix("")
	default:
		return nil, fmt.Errorf("%w: unknown layout %q", ErrLayout, name)
	}
	if len(config) > 0 {
		in := json.NewDecoder(bytes.NewReader(config))
		if strict {
			in.DisallowUnknownFields()
		}
		if err := in.Decode(layout); err != nil {
			return nil, fmt.Errorf("%w: configuration of %s: %w", ErrLayout, name, err)
		}
	}
	if own := layout.extension(); own != name {
		return nil, fmt.Errorf("%w: configuration of %s says that it is that of %q", ErrLayout, name, own)
	}
	if err := layout.Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLayout, err)
	}
	return layout, nil
}

// ParseLayout returns the layout that a setting names: the number or the full name of an extension,
// then its parameters as NAME=VALUE after commas, such as "0004" or "0006,delimiter=/". Missing
// parameters have the extension's defaults. It returns ErrLayout for invalid text.
func ParseLayout(text string) (Layout, error) {
	name, rest, more := strings.Cut(text, ",")
	for _, known := range layouts {
		if number, _, _ := strings.Cut(known, "-"); name == number {
			name = known
		}
	}
	config := map[string]any{}
	for parameter := range strings.SplitSeq(rest, ",") {
		if !more {
			break
		}
		key, value, ok := strings.Cut(parameter, "=")
		if _, again := config[key]; !ok || again || key == "extensionName" {
			return nil, fmt.Errorf("%w: parameter %q: want NAME=VALUE, each once", ErrLayout, parameter)
		}
		switch key {
		case "tupleSize", "numberOfTuples", "shortObjectRoot", "reverseObjectRoot":
			config[key] = json.RawMessage(value) // a number, or true or false
		default:
			config[key] = value
		}
	}
	data, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("%w: parameters of %s: a value is neither a number nor true or false", ErrLayout, name)
	}
	return decodeLayout(name, data, true)
}
