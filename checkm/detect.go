package checkm

import "strings"

// DetectSize is the number of bytes that [Detect] needs from the start of a file. Merritt's headers
// take a quarter of it.
const DetectSize = 1024

// Detect recognizes a Checkm manifest by the first bytes of a file. It returns Unknown if the
// profile is missing or unknown. Only header lines count, never file names. A manifest with a byte
// order mark counts too, so that its submitter gets that fault.
func Detect(head []byte) (Kind, bool) {
	if len(head) > DetectSize {
		head = head[:DetectSize]
	}
	text := strings.TrimPrefix(string(head), "\xEF\xBB\xBF")
	checkm := false
	for _, ln := range strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		ln = trimSpace(ln)
		if ln == "" {
			continue
		}
		if ln[0] != '#' {
			break
		}
		d, ok := parseDirective(ln)
		if !ok {
			continue
		}
		switch {
		case d.word == "profile":
			kind, _ := KindOf(d.profileURI())
			return kind, true
		case d.isDeclared(), d.isFields(), d.isEOF(), d.word == "prefix":
			checkm = true
		}
	}
	return Unknown, checkm
}
