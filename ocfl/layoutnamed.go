package ocfl

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// Names of the layouts whose folders have the name of the object, as tools of others make them.
const (
	flatDirect       = "0002-flat-direct-storage-layout"
	hashAndID        = "0003-hash-and-id-n-tuple-storage-layout"
	nTupleOmitPrefix = "0007-n-tuple-omit-prefix-storage-layout"
)

// FlatDirect is extension 0002. The folder of an object lies directly below the root, and has the
// object's identifier as its name. So an identifier with a slash has no folder.
type FlatDirect struct {
	ExtensionName string `json:"extensionName"`
}

// NewFlatDirect returns extension 0002.
func NewFlatDirect() *FlatDirect { return &FlatDirect{ExtensionName: flatDirect} }

// Name implements Layout.
func (*FlatDirect) Name() string { return flatDirect }

func (*FlatDirect) description() string {
	return "Object folders are named by the object's identifier"
}

func (l *FlatDirect) extension() string { return l.ExtensionName }

func (*FlatDirect) shares() bool { return false }

// Check implements Layout.
func (*FlatDirect) Check() error { return nil }

// Path implements Layout.
func (*FlatDirect) Path(id string) (string, error) { return topFolder(flatDirect, id, id) }

// HashAndID is extension 0003: a tree of folders named by a digest of the identifier, and in it a folder
// named by the identifier, percent-encoded. Every identifier has a path.
type HashAndID struct {
	ExtensionName   string `json:"extensionName"`
	DigestAlgorithm string `json:"digestAlgorithm"`
	TupleSize       int    `json:"tupleSize"`
	NumberOfTuples  int    `json:"numberOfTuples"`
}

// NewHashAndID returns extension 0003 with its defaults: sha256, three tuples of three.
func NewHashAndID() *HashAndID {
	return &HashAndID{ExtensionName: hashAndID, DigestAlgorithm: SHA256, TupleSize: 3, NumberOfTuples: 3}
}

// Name implements Layout.
func (*HashAndID) Name() string { return hashAndID }

func (*HashAndID) description() string {
	return "Object folders are named by the object's identifier, percent-encoded, below folders of leading digits of its hex digest"
}

func (l *HashAndID) extension() string { return l.ExtensionName }

func (*HashAndID) shares() bool { return false }

// Check implements Layout. It checks the constraints of the extension.
func (l *HashAndID) Check() error {
	return checkTuples("0003", l.DigestAlgorithm, l.TupleSize, l.NumberOfTuples)
}

// longestEncoded is the length of the longest encoded identifier that is a folder's name as it is.
const longestEncoded = 100

// Path implements Layout.
func (l *HashAndID) Path(id string) (string, error) {
	if err := l.Check(); err != nil {
		return "", err
	}
	digest := hashOf(l.DigestAlgorithm, id)
	var name strings.Builder
	for _, c := range []byte(id) {
		if c == '-' || c == '_' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' {
			name.WriteByte(c)
		} else {
			fmt.Fprintf(&name, "%%%02x", c)
		}
	}
	folder := name.String()
	if len(folder) > longestEncoded {
		folder = folder[:longestEncoded] + "-" + digest
	}
	return tuples(digest, l.TupleSize, l.NumberOfTuples) + folder, nil
}

// NTupleOmitPrefix is extension 0007: a tree of folders named by the part of the identifier after the last
// Delimiter, and in it a folder with that part as its name. Two identifiers may map to the same folder;
// Admit and Commit refuse the second.
type NTupleOmitPrefix struct {
	ExtensionName     string `json:"extensionName"`
	Delimiter         string `json:"delimiter"`
	TupleSize         int    `json:"tupleSize"`
	NumberOfTuples    int    `json:"numberOfTuples"`
	ZeroPadding       string `json:"zeroPadding"` // left or right: where a short part is filled with zeros
	ReverseObjectRoot bool   `json:"reverseObjectRoot"`
}

// NewNTupleOmitPrefix returns extension 0007 with a delimiter and the other defaults. Case is ignored when
// the delimiter is matched.
func NewNTupleOmitPrefix(delimiter string) *NTupleOmitPrefix {
	return &NTupleOmitPrefix{ExtensionName: nTupleOmitPrefix, Delimiter: delimiter, TupleSize: 3, NumberOfTuples: 3, ZeroPadding: "left"}
}

// Name implements Layout.
func (*NTupleOmitPrefix) Name() string { return nTupleOmitPrefix }

func (*NTupleOmitPrefix) description() string {
	return "Object folders are named by the object's identifier without the prefix that ends in a delimiter, below folders of leading characters of it"
}

func (l *NTupleOmitPrefix) extension() string { return l.ExtensionName }

func (*NTupleOmitPrefix) shares() bool { return true }

// Check implements Layout. It checks the constraints of the extension.
func (l *NTupleOmitPrefix) Check() error {
	switch {
	case l.Delimiter == "":
		return errors.New("ocfl: layout 0007: no delimiter")
	case l.TupleSize < 1 || l.TupleSize > 32 || l.NumberOfTuples < 1 || l.NumberOfTuples > 32:
		return fmt.Errorf("ocfl: layout 0007: %d tuples of %d, want 1 to 32", l.NumberOfTuples, l.TupleSize)
	case l.ZeroPadding != "left" && l.ZeroPadding != "right":
		return fmt.Errorf("ocfl: layout 0007: zeroPadding %q, want left or right", l.ZeroPadding)
	}
	return nil
}

// Path implements Layout.
func (l *NTupleOmitPrefix) Path(id string) (string, error) {
	if err := l.Check(); err != nil {
		return "", err
	}
	name, err := topFolder(nTupleOmitPrefix, id, omitPrefix(id, l.Delimiter))
	if err != nil {
		return "", err
	}
	part := []byte(name)
	for _, c := range part {
		if c >= 0x80 {
			return "", &PathError{Path: id, Reason: "layout 0007 is for identifiers of ASCII only"}
		}
	}
	zeros := []byte(strings.Repeat("0", max(0, l.TupleSize*l.NumberOfTuples-len(part))))
	if l.ZeroPadding == "left" {
		part = append(zeros, part...)
	} else {
		part = append(part, zeros...)
	}
	if l.ReverseObjectRoot {
		for i, j := 0, len(part)-1; i < j; i, j = i+1, j-1 {
			part[i], part[j] = part[j], part[i]
		}
	}
	path := tuples(string(part), l.TupleSize, l.NumberOfTuples)
	for element := range strings.SplitSeq(strings.TrimSuffix(path, "/"), "/") {
		if element == "." || element == ".." {
			return "", &PathError{Path: id, Reason: "layout 0007 maps the identifier to a folder " + element}
		}
	}
	return path + name, nil
}

// checkTuples checks the parameters of a tree of folders named by a digest.
func checkTuples(layout, algorithm string, size, n int) error {
	h := newHash(algorithm)
	switch {
	case h == nil:
		return fmt.Errorf("ocfl: layout %s: unknown digest algorithm %q", layout, algorithm)
	case size < 0 || size > 32 || n < 0 || n > 32:
		return fmt.Errorf("ocfl: layout %s: %d tuples of %d, want 0 to 32", layout, n, size)
	case (size == 0) != (n == 0):
		return fmt.Errorf("ocfl: layout %s: one of tupleSize and numberOfTuples is 0", layout)
	case size*n > 2*h.Size():
		return fmt.Errorf("ocfl: layout %s: %d tuples of %d are longer than a %s digest", layout, n, size, algorithm)
	}
	return nil
}

// hashOf returns the digest of an identifier in hex.
func hashOf(algorithm, id string) string {
	h := newHash(algorithm)
	h.Write([]byte(id))
	return hex.EncodeToString(h.Sum(nil))
}

// tuples returns n folders, each named by the next size characters of text; each ends in a slash.
func tuples(text string, size, n int) string {
	var path strings.Builder
	for i := range n {
		path.WriteString(text[i*size : (i+1)*size])
		path.WriteByte('/')
	}
	return path.String()
}
