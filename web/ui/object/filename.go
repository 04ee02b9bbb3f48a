package object

import (
	"fmt"
	"strings"
	"unicode"
)

// shownName returns a file's name with a mark in place of what nobody would see or what changes the order of
// its letters, so that what a page shows is what the file is called: of "\u202egpj.exe" a browser shows "exe.jpg".
func shownName(name string) string {
	var b strings.Builder
	for i, r := range name {
		switch {
		case r == ' ' && (strings.TrimLeft(name[:i], " ") == "" || strings.TrimLeft(name[i:], " ") == ""):
			b.WriteRune('␣')
		case unicode.IsControl(r) && r <= ' ':
			b.WriteRune('␀' + r)
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == '\ufeff':
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
