package object

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/web/wire"
)

// TestAlikeNames: of two names that look the same, the one whose letters are not composed is marked; a
// name that looks like no other never is.
func TestAlikeNames(t *testing.T) {
	var entries []wire.FolderEntry
	for _, name := range []string{"caf\u00e9.txt", "cafe\u0301.txt", "u\u0308ber.txt", "plain"} {
		entries = append(entries, wire.FolderEntry{Name: name})
	}
	if diff := cmp.Diff(map[string]bool{"cafe\u0301.txt": true}, alikeNames(entries)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestShownName(t *testing.T) {
	for name, want := range map[string]string{
		"plate 1.png":          "plate 1.png",
		"مرحبا.txt":            "مرحبا.txt",
		"می\u200cخواهم.txt":    "می\u200cخواهم.txt", // a joiner of letters belongs to the word
		"\u202egpj.exe":        "⟨U+202E⟩gpj.exe",
		"a\nb.txt":             "a␊b.txt",
		" lead and trail ":     "␣lead and trail␣",
		"\ufeffbom\u0085\x7f":  "⟨U+FEFF⟩bom⟨U+0085⟩⟨U+007F⟩",
		"<script>alert(1)< ..": "<script>alert(1)< ..",
	} {
		if got := shownName(name); got != want {
			t.Errorf("%q is shown as %q, want %q", name, got, want)
		}
	}
}
