package checkm

import "strings"

// DetectSize is the number of bytes at the beginning of a file that [Detect] needs: what
// Merritt's own headers take, four times over.
const DetectSize = 1024

// Detect tells from the first bytes of a file whether it is a Checkm manifest, and of
// which kind; Unknown when its profile is not there or not known. It goes by the header
// lines alone, never by names, and takes a manifest with a byte order mark for one, so
// that its submitter is told of the mark.
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
