package checkm

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName is the greatest length of a name in bytes: the most that object stores keep.
const maxName = 1024

// nameProblem says what makes a file's name dangerous or ambiguous, or returns "".
// Names that only look odd (spaces, percent signs, several dots, any script) are fine.
func nameProblem(name string) string {
	if strings.Contains(name, `\..`) || strings.Contains(name, `..\`) {
		// On Windows it leads out of its folder, and no bag can hold it.
		for segment := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '/' || r == '\\' }) {
			if segment == ".." {
				return "a path segment .. between backslashes"
			}
		}
	}
	if plainName(name) {
		return ""
	}
	if len(name) > maxName {
		return "a name of more than " + strconv.Itoa(maxName) + " bytes"
	}
	if name[0] == '/' {
		return "an absolute path"
	}
	for i := range len(name) {
		// C1 controls are two bytes in UTF-8, the first of them 0xC2.
		if c := name[i]; c < ' ' || c == 0x7f || c == 0xc2 {
			if r, _ := utf8.DecodeRuneInString(name[i:]); unicode.IsControl(r) {
				return "a control character"
			}
		}
	}
	if !utf8.ValidString(name) {
		return "bytes that are not UTF-8"
	}
	for rest, more := name, true; more; {
		var segment string
		segment, rest, more = strings.Cut(rest, "/")
		switch segment {
		case "":
			return "an empty path segment"
		case ".", "..":
			return "a path segment " + segment
		}
	}
	return ""
}

// plainName recognises what nearly all names are, printable ASCII without a part that begins with a
// dot or is empty.
func plainName(name string) bool {
	if len(name) > maxName {
		return false
	}
	before := byte('/')
	for i := range len(name) {
		c := name[i]
		if !classes[c].is(nameByte) || before == '/' && (c == '/' || c == '.') {
			return false
		}
		before = c
	}
	return before != '/'
}

// containerExtensions are what the names of containers end with; .tar may stand before the
// compressed ones.
var containerExtensions = []string{".zip", ".tar", ".gz", ".tgz", ".bz2", ".tbz2", ".xz", ".txz", ".zst", ".tzst"}

// containerName reports whether the name may be a container's, as far as it says. One without an
// extension is judged by what is in the file.
func containerName(name string) bool {
	extension := strings.ToLower(path.Ext(name))
	return extension == "" || slices.Contains(containerExtensions, extension)
}

// cutAtPipe reports whether name and next, the text of the cell after it, are the two
// sides of an unescaped pipe in the name of the file at u: the URL still has it whole.
func cutAtPipe(base, name, next string) bool {
	before, after, ok := strings.Cut(base, "|")
	if !ok || next == "" || trimSpace(before) != name {
		return false
	}
	after, _, _ = strings.Cut(after, "|")
	return trimSpace(after) == next
}
