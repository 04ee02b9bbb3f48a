package object

import (
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/holdfast/holdfast/web/wire"
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

// alikeNames returns the names in a folder that look like another one there: their letters are the same, and
// composed otherwise, as é is one letter or an e with a sign after it. Of these, the one whose letters are
// composed (NFC) is left out.
func alikeNames(entries []wire.FolderEntry) map[string]bool {
	composed := map[string]int{}
	for _, e := range entries {
		composed[norm.NFC.String(e.Name)]++
	}
	alike := map[string]bool{}
	for _, e := range entries {
		if c := norm.NFC.String(e.Name); c != e.Name && composed[c] > 1 {
			alike[e.Name] = true
		}
	}
	return alike
}
