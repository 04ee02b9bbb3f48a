package unpack

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/holdfast/holdfast/pathset"
)

// cleanName returns name as a clean relative path, or "" for the root folder of the container. It
// refuses names that could leave the target folder on any operating system. A backslash is an
// ordinary character here; the name is refused only if a backslash as separator would lead out.
func cleanName(raw, name string, maxLength int) (string, error) {
	refuse := func(detail string) (string, error) {
		return "", &Error{Entry: raw, Fault: FaultName, Detail: detail}
	}
	switch {
	case name == "":
		return refuse("an entry has an empty name; pack it again")
	case len(name) > maxLength:
		return refuse(fmt.Sprintf("the name has %d bytes, more than the %d that can be kept; shorten it", len(name), maxLength))
	case strings.IndexByte(name, 0) >= 0:
		return refuse("the name contains a NUL byte; rename the file")
	case name[0] == '/' || name[0] == '\\':
		return refuse("the name is absolute; pack with relative names")
	case hasDrive(name):
		return refuse("the name begins with a drive letter; pack with relative names")
	}
	isSeparator := func(r rune) bool { return r == '/' || r == '\\' }
	for segment := range strings.FieldsFuncSeq(name, isSeparator) {
		if segment == ".." {
			return refuse("the name contains .. and could lead out of its folder; pack with names below one folder")
		}
	}
	return dropEmptySegments(name), nil
}

// hasDrive reports whether name begins like C:\ or C:/, or is just C:. "C: notes.txt" is an
// ordinary name.
func hasDrive(name string) bool {
	if len(name) < 2 || name[1] != ':' {
		return false
	}
	letter := name[0] | 0x20
	return letter >= 'a' && letter <= 'z' && (len(name) == 2 || name[2] == '/' || name[2] == '\\')
}

// dropEmptySegments removes "." and empty segments.
func dropEmptySegments(name string) string {
	clean := true
	for segment := range strings.SplitSeq(name, "/") {
		clean = clean && segment != "" && segment != "."
	}
	if clean {
		return name
	}
	var kept []string
	for segment := range strings.SplitSeq(name, "/") {
		if segment != "" && segment != "." {
			kept = append(kept, segment)
		}
	}
	return strings.Join(kept, "/")
}

// decode decodes a name that is not UTF-8 with the configured encoding. guesses are likely
// encodings, for the message.
func (w *walker) decode(raw string, guesses ...string) (name, encoding string, err error) {
	if utf8.ValidString(raw) {
		return raw, UTF8, nil
	}
	refuse := func(fault Fault, detail string) (string, string, error) {
		return "", "", &Error{Entry: raw, Fault: fault, Detail: detail}
	}
	if w.limits.NameEncoding == "" {
		return refuse(FaultName, "the name is not UTF-8; pack it again with names in UTF-8, or ask an admin to set name_encoding of the collection"+
			readings(raw, guesses))
	}
	name, ok := w.decoder.Decode(raw)
	if !ok {
		return refuse(FaultName, fmt.Sprintf("the name is neither UTF-8 nor %s, the collection's name_encoding; pack it again with names in UTF-8", w.decoder))
	}
	if w.decoded += len(raw); w.decoded > MaxDecoded {
		return refuse(FaultLimit, fmt.Sprintf("names that are not UTF-8 have more than %d bytes in total; pack it again with names in UTF-8", MaxDecoded))
	}
	return name, w.decoder.String(), nil
}

// readings returns how a name reads in the given encodings.
func readings(raw string, encodings []string) string {
	var list []string
	for _, e := range encodings {
		if enc, err := pathset.ParseEncoding(e); err == nil {
			if name, ok := enc.Decode(raw); ok && !hasControls(name) {
				list = append(list, fmt.Sprintf("%q in %s", name, e))
			}
		}
	}
	if list == nil {
		return ""
	}
	return ": it reads " + strings.Join(list, ", ")
}

func hasControls(name string) bool { return strings.ContainsFunc(name, unicode.IsControl) }

// addFile adds a file's name and the folders in it.
func (w *walker) addFile(raw, name string) error {
	return nameFault(raw, w.names.Add(name, int(w.entries)))
}

// addFolder adds a folder's name. The same folder may be added several times.
func (w *walker) addFolder(raw, name string) error {
	if name == "" {
		return nil
	}
	return nameFault(raw, w.names.AddFolder(name, int(w.entries)))
}

// nameFault returns the fault for a clash of names. Names that differ only in case do not clash.
func nameFault(raw string, c pathset.Clash) error {
	fault := &Error{Entry: raw, Fault: FaultDuplicate}
	switch {
	case c.Kind == pathset.Same:
		fault.Detail = "two entries have this name; pack each file once"
	case c.Kind == pathset.FileFolder && c.Folder != "":
		fault.Detail = fmt.Sprintf("its folder %q is also a file; rename one of them", c.Folder)
	case c.Kind == pathset.FileFolder:
		fault.Detail = "this name is both a file and a folder; rename one of them"
	case c.Kind == pathset.TooMany:
		fault.Fault, fault.Detail = FaultLimit, fmt.Sprintf(
			"it has more than %d files, %d folders, or 1,000 names that differ by case only; split it", pathset.MaxFiles, pathset.MaxFolders)
	default:
		return nil
	}
	return fault
}
