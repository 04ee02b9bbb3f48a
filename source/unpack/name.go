package unpack

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// cleanName returns name as a clean relative path, "" for the container's root folder. It refuses whatever could leave
// the folder that it is unpacked to, on any operating system: a backslash is an ordinary byte here, but where it would
// lead out as a separator the name is refused as well.
func cleanName(raw, name string, maxLength int) (string, error) {
	refuse := func(detail string) (string, error) {
		return "", &Error{Entry: raw, Fault: FaultName, Detail: detail}
	}
	switch {
	case name == "":
		return refuse("an entry has an empty name")
	case len(name) > maxLength:
		return refuse(fmt.Sprintf("the name has %d bytes, more than the %d that can be kept", len(name), maxLength))
	case strings.IndexByte(name, 0) >= 0:
		return refuse("the name contains a NUL byte")
	case name[0] == '/' || name[0] == '\\':
		return refuse("the name is absolute; pack with relative names")
	case hasDrive(name):
		return refuse("the name begins with a drive letter; pack with relative names")
	}
	isSeparator := func(r rune) bool { return r == '/' || r == '\\' }
	for segment := range strings.FieldsFuncSeq(name, isSeparator) {
		if segment == ".." {
			return refuse("the name contains .. and could lead out of its folder")
		}
	}
	return dropEmptySegments(name), nil
}

// hasDrive reports whether name begins like C:\ or C:/, or is C: alone. "C: notes.txt" is a name like any other.
func hasDrive(name string) bool {
	if len(name) < 2 || name[1] != ':' {
		return false
	}
	letter := name[0] | 0x20
	return letter >= 'a' && letter <= 'z' && (len(name) == 2 || name[2] == '/' || name[2] == '\\')
}

// dropEmptySegments leaves out what means nothing in a path, "." and the empty segment.
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

// decodeTarName reads a name that is not UTF-8 as ISO 8859-1.
func decodeTarName(raw string) (name, encoding string) {
	if utf8.ValidString(raw) {
		return raw, UTF8
	}
	return decodeLatin1(raw), Latin1
}

// decodeLatin1 reads ISO 8859-1, in which every byte is the character of that number.
func decodeLatin1(raw string) string {
	var b strings.Builder
	for i := range len(raw) {
		b.WriteRune(rune(raw[i]))
	}
	return b.String()
}

// nameTree holds the names met so far and refuses what cannot stand beside them.
type nameTree struct {
	files   map[string]struct{}
	folders map[string]struct{}
}

func newNameTree() *nameTree {
	return &nameTree{files: map[string]struct{}{}, folders: map[string]struct{}{}}
}

// addFile enters a file's name and the folders that it implies.
func (t *nameTree) addFile(raw, name string) error {
	if _, taken := t.files[name]; taken {
		return duplicateFault(raw, "two entries have this name; pack each file once")
	}
	if _, taken := t.folders[name]; taken {
		return duplicateFault(raw, "this name is a file and a folder, too")
	}
	t.files[name] = struct{}{}
	return t.addParents(raw, name)
}

// addFolder enters a folder's name. The same folder may come often.
func (t *nameTree) addFolder(raw, name string) error {
	if name == "" {
		return nil
	}
	if _, taken := t.files[name]; taken {
		return duplicateFault(raw, "this name is a file and a folder, too")
	}
	t.folders[name] = struct{}{}
	return t.addParents(raw, name)
}

func (t *nameTree) addParents(raw, name string) error {
	for {
		slash := strings.LastIndexByte(name, '/')
		if slash < 0 {
			return nil
		}
		name = name[:slash]
		if _, known := t.folders[name]; known {
			return nil
		}
		if _, taken := t.files[name]; taken {
			return duplicateFault(raw, fmt.Sprintf("its folder %q is a file, too", name))
		}
		t.folders[name] = struct{}{}
	}
}

func duplicateFault(raw, detail string) error {
	return &Error{Entry: raw, Fault: FaultDuplicate, Detail: detail}
}
