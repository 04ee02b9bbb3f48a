package lang_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/holdfast/holdfast/web/ui/lang"
)

// A person reads the language that they chose, or that their browser asks for, or English.
func TestOf(t *testing.T) {
	c, err := lang.Open()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ cookie, accepts, want string }{
		{"", "", "en"},
		{"", "de-AT,de;q=0.9,en;q=0.5", "de"},
		{"", "fr, en;q=0.1", "en"},
		{"en", "de", "en"},
		{"de", "en", "de"},
		{"xx", "de", "de"},
		{"%%", "~", "en"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		r.Header.Set("Accept-Language", tt.accepts)
		if tt.cookie != "" {
			r.AddCookie(&http.Cookie{Name: lang.Cookie, Value: tt.cookie})
		}
		if got := c.Of(r).Tag; got != tt.want {
			t.Errorf("cookie %q, Accept-Language %q: %s, want %s", tt.cookie, tt.accepts, got, tt.want)
		}
	}
}

// Numbers decide the form of a text, and are written as the language writes them. A text that no
// catalogue has is shown in English.
func TestT(t *testing.T) {
	c, err := lang.Open()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		tag, key string
		args     []any
		want     string
	}{
		{"en", "Sign out", nil, "Sign out"},
		{"de", "Sign out", nil, "Abmelden"},
		{"en", "%d day|%d days", []any{1}, "1 day"},
		{"en", "%d day|%d days", []any{int64(2)}, "2 days"},
		{"en", "%d day|%d days", []any{12345}, "12,345 days"},
		{"de", "%d day|%d days", []any{1}, "1 Tag"},
		{"de", "%d day|%d days", []any{0}, "0 Tage"},
		{"de", "%d day|%d days", []any{12345}, "12.345 Tage"},
		{"de", "%.1f", []any{1.5}, "1,5"},
		{"de", "No catalogue has %d cat|No catalogue has %d cats", []any{1}, "No catalogue has 1 cat"},
		{"de", "No catalogue has %d cat|No catalogue has %d cats", []any{3}, "No catalogue has 3 cats"},
		{"xx", "Sign out", nil, "Sign out"},
	} {
		if got := c.In(tt.tag).T(tt.key, tt.args...); got != tt.want {
			t.Errorf("%s: %s %v: %q, want %q", tt.tag, tt.key, tt.args, got, tt.want)
		}
	}
}

func TestSentence(t *testing.T) {
	for text, want := range map[string]string{"": "", "a": "A.", "über alles": "Über alles.", "Go!": "Go!", "it is so.": "It is so."} {
		if got := lang.Sentence(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
