package ocfl

import (
	"bytes"
	"encoding/hex"
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

// Names of the supported layouts.
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
	h := newHash(l.DigestAlgorithm)
	switch {
	case h == nil:
		return fmt.Errorf("ocfl: layout 0004: unknown digest algorithm %q", l.DigestAlgorithm)
	case l.TupleSize < 0 || l.TupleSize > 32 || l.NumberOfTuples < 0 || l.NumberOfTuples > 32:
		return fmt.Errorf("ocfl: layout 0004: %d tuples of %d, want 0 to 32", l.NumberOfTuples, l.TupleSize)
	case (l.TupleSize == 0) != (l.NumberOfTuples == 0):
		return errors.New("ocfl: layout 0004: one of tupleSize and numberOfTuples is 0")
	case l.TupleSize*l.NumberOfTuples > 2*h.Size():
		return fmt.Errorf("ocfl: layout 0004: %d tuples of %d are longer than a %s digest", l.NumberOfTuples, l.TupleSize, l.DigestAlgorithm)
	case l.TupleSize*l.NumberOfTuples == 2*h.Size() && l.ShortObjectRoot:
		return errors.New("ocfl: layout 0004: shortObjectRoot leaves no name for the object's folder")
	}
	return nil
}

// Path implements Layout.
func (l *HashedNTuple) Path(id string) (string, error) {
	if err := l.Check(); err != nil {
		return "", err
	}
	h := newHash(l.DigestAlgorithm)
	h.Write([]byte(id))
	digest := hex.EncodeToString(h.Sum(nil))
	var path strings.Builder
	for i := range l.NumberOfTuples {
		path.WriteString(digest[i*l.TupleSize : (i+1)*l.TupleSize])
		path.WriteByte('/')
	}
	if l.ShortObjectRoot {
		path.WriteString(digest[l.TupleSize*l.NumberOfTuples:])
	} else {
		path.WriteString(digest)
	}
	return path.String(), nil
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
	name := id
	for i := len(id) - len(l.Delimiter); i >= 0; i-- {
		if strings.EqualFold(id[i:i+len(l.Delimiter)], l.Delimiter) {
			name = id[i+len(l.Delimiter):]
			break
		}
	}
	// The name must not be one of the root's own files, nor contain a slash.
	reserved := name == extensionsFolder || name == layoutName || strings.HasPrefix(name, rootPrefix)
	if reserved || strings.Contains(name, "/") || storage.CheckKey(name) != nil {
		return "", &PathError{Path: id, Reason: "layout 0006 maps the identifier to " + fmt.Sprintf("%q", name) + ", which is not a folder name"}
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
