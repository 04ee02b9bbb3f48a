package lang

import "strings"

// Said returns words of Holdfast that have no facts, such as what to do about a fault of a manifest, in
// the language. It returns the English and false if the catalogue lacks them, since they may be
// anybody's. Where they are written is listed in said_test.go.
func (t Texts) Said(english string) (text string, ok bool) {
	key := saidKey(english)
	if !t.all.has[t.Tag+" "+key] {
		return english, false
	}
	return t.printer.Sprintf(key), true
}

// saidKey is the key of a text that is not a format. It is "" for a text that would be taken for one with
// two forms.
func saidKey(text string) string {
	if strings.Contains(text, "|") {
		return ""
	}
	return strings.ReplaceAll(text, "%", "%%")
}
