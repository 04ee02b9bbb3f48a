package checkm

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName is the greatest length of a name in bytes: the limit of object stores.
const maxName = 1024

// nameProblem returns what makes a file's name dangerous or ambiguous, or "". Unusual names
// (spaces, percent signs, several dots, any script) are fine.
func nameProblem(name string) string {
	if strings.Contains(name, `\..`) || strings.Contains(name, `..\`) {
		// On Windows it leads out of its folder, and a bag cannot hold it.
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

// plainName recognizes most names: printable ASCII, and no segment that is empty or begins with a
// dot.
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

// containerExtensions are the extensions of containers. ".tar" may precede those of compressed
// files.
var containerExtensions = []string{".zip", ".tar", ".gz", ".tgz", ".bz2", ".tbz2", ".xz", ".txz", ".zst", ".tzst"}

// containerName reports whether the name may be that of a container. The content decides about a
// name without extension.
func containerName(name string) bool {
	extension := strings.ToLower(path.Ext(name))
	return extension == "" || slices.Contains(containerExtensions, extension)
}

// cutAtPipe reports whether name and next, the text of the following cell, are the two sides of an
// unescaped pipe. base is the name of the file in its URL, which still has the pipe.
func cutAtPipe(base, name, next string) bool {
	before, after, ok := strings.Cut(base, "|")
	if !ok || next == "" || trimSpace(before) != name {
		return false
	}
	after, _, _ = strings.Cut(after, "|")
	return trimSpace(after) == next
}
