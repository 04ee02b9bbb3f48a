package checkm

import (
	"slices"
	"strings"
)

// isSpace reports whether the byte is dropped around a value. A no-break space is not.
func isSpace(c byte) bool {
	return c == ' ' || c >= '\t' && c <= '\r'
}

func trimSpace[T string | []byte](s T) T {
	for len(s) > 0 && isSpace(s[0]) {
		s = s[1:]
	}
	for len(s) > 0 && isSpace(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}

// unescape reads %20 as a space and %7c as a pipe, as Merritt does. Nothing else is an escape, not
// even %7C, %0a or %25: depositors have files named File%00x.md and 50%majrule.txt, whose names
// must stay byte for byte. So a value with a line break, and a name that contains %20 or %7c,
// cannot be written; see [Writer.Write].
func unescape(s string) string {
	return replaceEscapes(s, false)
}

// unescapeLocalID also reads %sc as a semicolon, because a bare one separates identifiers.
func unescapeLocalID(s string) string {
	return replaceEscapes(s, true)
}

func replaceEscapes(s string, semicolon bool) string {
	i := strings.IndexByte(s, '%')
	if i < 0 {
		return s
	}
	var b strings.Builder
	for ; i >= 0; i = strings.IndexByte(s, '%') {
		b.WriteString(s[:i])
		s = s[i:]
		switch {
		case strings.HasPrefix(s, "%20"):
			b.WriteByte(' ')
			s = s[3:]
		case strings.HasPrefix(s, "%7c"):
			b.WriteByte('|')
			s = s[3:]
		case semicolon && strings.HasPrefix(s, "%sc"):
			b.WriteByte(';')
			s = s[3:]
		default:
			b.WriteByte('%')
			s = s[1:]
		}
	}
	b.WriteString(s)
	return b.String()
}

// falseEscape returns the first part of a name that other dialects read as an escape for a pipe or
// white space and this one does not, or "".
func falseEscape(s string) string {
	for i := strings.IndexByte(s, '%'); i >= 0 && i+3 <= len(s); {
		switch s[i+1 : i+3] {
		case "7C", "09", "0a", "0A", "0d", "0D":
			return s[i : i+3]
		}
		next := strings.IndexByte(s[i+1:], '%')
		if next < 0 {
			break
		}
		i += 1 + next
	}
	return ""
}

// escape writes a value so that unescape returns it, where that is possible. Spaces are escaped
// only at its ends; those inside stay readable.
func escape(s string) string {
	s = strings.ReplaceAll(s, "|", "%7c")
	body := strings.TrimLeft(s, " ")
	lead := len(s) - len(body)
	s, body = body, strings.TrimRight(body, " ")
	return strings.Repeat("%20", lead) + body + strings.Repeat("%20", len(s)-len(body))
}

func escapeLocalID(s string) string {
	return strings.ReplaceAll(escape(s), ";", "%sc")
}

// splitLocalIDs splits a list of identifiers and drops duplicates.
func splitLocalIDs(s string) []string {
	if s == "" {
		return nil
	}
	var ids []string
	for part := range strings.SplitSeq(s, ";") {
		ids = addLocalID(ids, unescapeLocalID(trimSpace(part)))
	}
	return ids
}

// addLocalID appends an identifier unless it is blank or a duplicate.
func addLocalID(ids []string, id string) []string {
	if trimSpace(id) == "" {
		return ids
	}
	if slices.Contains(ids, id) {
		return ids
	}
	return append(ids, id)
}
