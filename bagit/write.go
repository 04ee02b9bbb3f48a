package bagit

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

// Errors of the functions that write a bag.
var (
	// ErrName is returned for a name that a bag cannot have.
	ErrName = errors.New("name cannot be used")
	// ErrTag is returned for a tag that bag-info.txt cannot hold.
	ErrTag = errors.New("tag cannot be written")
)

// DeclarationText returns bagit.txt for BagIt 1.0 (section 2.1.1).
func DeclarationText() []byte {
	return []byte(versionLabel + ": " + Version10.String() + "\n" + encodingLabel + ": UTF-8\n")
}

// ManifestLine returns a line of a manifest or tag manifest (section 2.1.3). digest is hexadecimal,
// name is the path in the bag. Write the lines in byte order of the names, so that equal files give
// equal manifests.
func ManifestLine(digest, name string) []byte {
	return []byte(strings.ToLower(digest) + "  " + escape(name) + "\n")
}

// CheckName returns ErrName if readers of the bag would refuse the name or confuse it with another.
// name is relative to the bag.
func CheckName(name string) error {
	why := unsafeReference(name)
	if path.Clean(name) != name {
		why = "empty part"
	}
	if why == "" && printable(name) != name {
		why = "not UTF-8"
	}
	if why != "" {
		return fmt.Errorf("%s: %w", why, ErrName)
	}
	return nil
}

// FormatInfo writes tags as bag-info.txt. Further lines of a value are indented. It returns ErrTag
// for a tag that cannot be written.
func FormatInfo(tags []Tag) ([]byte, error) {
	var out []byte
	for _, t := range tags {
		if err := checkTag(t); err != nil {
			return nil, err
		}
		value := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(t.Value)
		out = append(out, t.Label+": "+strings.ReplaceAll(value, "\n", "\n  ")+"\n"...)
	}
	return out, nil
}

func checkTag(t Tag) error {
	switch {
	case t.Label == "" || strings.Trim(t.Label, " \t") != t.Label || strings.ContainsAny(t.Label, ":\r\n"):
		return fmt.Errorf("label %q: %w", t.Label, ErrTag)
	case printable(t.Label) != t.Label, printable(t.Value) != t.Value, strings.Contains(t.Label+t.Value, "\x00"):
		return fmt.Errorf("value of %q is not UTF-8 text: %w", t.Label, ErrTag)
	case len(t.Label)+len(t.Value) >= maxLine/2:
		return fmt.Errorf("value of %q is too long: %w", t.Label, ErrTag)
	}
	return nil
}
