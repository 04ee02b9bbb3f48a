package object

import "testing"

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
