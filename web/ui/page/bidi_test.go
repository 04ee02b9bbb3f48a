package page

import "testing"

// TestShownOrder: no text of a page turns the letters of what is beside it around, and what people typed and
// addresses stay as they are.
func TestShownOrder(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"<title>\u202egpj.exe</title><p>a\u202ab\u202c – مرحبا\u200f</p>": "<title>⟨U+202E⟩gpj.exe</title><p>a⟨U+202A⟩b⟨U+202C⟩ – مرحبا\u200f</p>",
		"<p title=\"\u202ea\">‘a’ <br>\u202d</p>":                         "<p title=\"\u202ea\">‘a’ <br>⟨U+202D⟩</p>",
		"<textarea>\u202ea</textarea><p>&lt;\u202ea":                      "<textarea>\u202ea</textarea><p>&lt;⟨U+202E⟩a",
		"<p>plain – text</p>\xe2\x80":                                     "<p>plain – text</p>\xe2\x80",
	} {
		if got := string(shownOrder([]byte(text))); got != want {
			t.Errorf("%q is shown as\n%q, want\n%q", text, got, want)
		}
	}
}
