package bagit

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/holdfast/holdfast/pathset"
)

// maxName is the longest accepted name in octets. No file system has longer ones.
const maxName = 4096

var tooLongName = fmt.Sprintf("path longer than %d octets", maxName)

// unsafeEntry returns why the name of an existing file is refused, or "" (section 5.1). path is
// relative.
func unsafeEntry(name string) string {
	switch {
	case name == "":
		return "empty name"
	case strings.HasPrefix(name, "/"), strings.HasPrefix(name, `\`):
		return "absolute path"
	case len(name) > maxName:
		return tooLongName
	case hasDotDot(name):
		return "leaves its folder by .."
	}
	for i := range len(name) {
		if name[i] == 0 {
			return "NUL"
		}
	}
	return ""
}

// unsafeReference returns why a name in a tag file or an archive is refused, or "". Beyond
// unsafeEntry it refuses the ways of shells and of Windows into other folders.
func unsafeReference(name string) string {
	if why := unsafeEntry(name); why != "" {
		return why
	}
	switch {
	case strings.HasPrefix(name, "~"):
		return "starts with a home folder"
	case len(name) > 1 && name[1] == ':' && isLetter(name[0]):
		return "starts with a drive letter"
	case isVariable(name):
		return "starts with a variable"
	}
	return ""
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// isVariable reports whether the name starts with a variable of Windows, such as %HomeDrive%\.
func isVariable(name string) bool {
	rest, ok := strings.CutPrefix(name, "%")
	if !ok {
		return false
	}
	variable, rest, ok := strings.Cut(rest, "%")
	return ok && variable != "" && !strings.ContainsAny(variable, `/\`) && strings.HasPrefix(rest, `\`)
}

func hasDotDot(name string) bool {
	if !strings.Contains(name, "..") {
		return false
	}
	for part := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '/' || r == '\\' }) {
		if part == ".." {
			return true
		}
	}
	return false
}

// unportable returns why some file systems cannot hold the name, or "" (section 6.1.2).
func unportable(name string) string {
	if !utf8.ValidString(name) {
		return "name is not UTF-8"
	}
	if strings.ContainsFunc(name, unicode.IsControl) {
		return "control character"
	}
	if strings.ContainsAny(name, `\<>:"|?*`) {
		return "character that Windows reserves"
	}
	if pathset.LongPart(name) != "" {
		return fmt.Sprintf("longer than %d octets", pathset.MaxPart)
	}
	for part := range strings.SplitSeq(name, "/") {
		stem, _, _ := strings.Cut(part, ".")
		if isDeviceName(stem) {
			return "device name of Windows"
		}
		if strings.HasSuffix(part, " ") || strings.HasSuffix(part, ".") && part != "." {
			return "ends in a space or a dot"
		}
	}
	return ""
}

func isDeviceName(stem string) bool {
	if len(stem) < 3 || len(stem) > 4 {
		return false
	}
	switch up := strings.ToUpper(stem); {
	case up == "CON", up == "PRN", up == "AUX", up == "NUL":
		return true
	case len(up) == 4 && (strings.HasPrefix(up, "COM") || strings.HasPrefix(up, "LPT")):
		return up[3] >= '1' && up[3] <= '9'
	}
	return false
}

// isSystemFile reports whether operating systems create files of this name by themselves.
func isSystemFile(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		switch part {
		case ".DS_Store", "Thumbs.db", "ehthumbs.db", "desktop.ini", "Desktop.ini", ".Spotlight-V100", ".Trashes",
			".fseventsd", ".TemporaryItems", ".AppleDouble", "__MACOSX", "Icon\r":
			return true
		}
	}
	return strings.HasPrefix(path.Base(name), "._")
}

// unescape decodes %0A, %0D and %25 and nothing else (section 2.1.3).
func unescape(name string) string {
	if !strings.Contains(name, "%") {
		return name
	}
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		if name[i] == '%' && i+2 < len(name) {
			switch strings.ToUpper(name[i+1 : i+3]) {
			case "0A":
				b.WriteByte('\n')
				i += 2
				continue
			case "0D":
				b.WriteByte('\r')
				i += 2
				continue
			case "25":
				b.WriteByte('%')
				i += 2
				continue
			}
		}
		b.WriteByte(name[i])
	}
	return b.String()
}

// escape escapes a name as 1.0 requires.
func escape(name string) string {
	return strings.NewReplacer("%", "%25", "\n", "%0A", "\r", "%0D").Replace(name)
}

// wellEscaped reports whether every percent sign starts an escape of 1.0.
func wellEscaped(name string) bool {
	for i := 0; i < len(name); i++ {
		if name[i] != '%' {
			continue
		}
		if i+2 >= len(name) {
			return false
		}
		switch strings.ToUpper(name[i+1 : i+3]) {
		case "0A", "0D", "25":
			i += 2
		default:
			return false
		}
	}
	return true
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// normalized returns a key that is the same for names that differ only in Unicode normal form.
func normalized(name string) string {
	if isASCII(name) {
		return name
	}
	return norm.NFC.String(name)
}
