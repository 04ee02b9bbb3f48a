package lang_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/lang"
	"github.com/holdfast/holdfast/web/wire"
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

// What Holdfast says without facts is said in the reader's language; what it does not say stays as it is.
func TestSaid(t *testing.T) {
	c, err := lang.Open()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		tag, text, want string
		ok              bool
	}{
		{"en", "write the pipe as %7c", "write the pipe as %7c", true},
		{"de", "write the pipe as %7c", "Schreiben Sie den senkrechten Strich als %7c", true},
		{"de", "%d day|%d days", "%d day|%d days", false},
		{"de", "100% of what nobody says", "100% of what nobody says", false},
		{"de", `"x" is not one of requeue, cancel or fail`, `„x“ gehört nicht zu erneut einreihen, abbrechen oder scheitern`, true},
		{
			"de", `this worker does not know the storages that have the object: north and south; name one in HOLDFAST_STORAGE_URL of all workers, and restart them`,
			`dieser Worker kennt die Speicher nicht, die das Objekt haben: north und south; einen davon in HOLDFAST_STORAGE_URL aller Worker nennen und sie neu starten`, true,
		},
		{"en", "100% of what nobody says", "100% of what nobody says", false},
	} {
		if got, ok := c.In(tt.tag).Said(tt.text); got != tt.want || ok != tt.ok {
			t.Errorf("%s: %q is said as %q, %v; want %q, %v", tt.tag, tt.text, got, ok, tt.want, tt.ok)
		}
	}
}

// A refusal is in the reader's language as far as its cause or its detail is known; the rest is in English.
func TestRefusal(t *testing.T) {
	c, err := lang.Open()
	if err != nil {
		t.Fatal(err)
	}
	cause := func(err error, detail string) *wire.Problem {
		p := wire.NewProblem(409, wire.CodeConflict, detail)
		p.Cause = wire.CauseOf(err)
		return p
	}
	for _, tt := range []struct {
		problem *wire.Problem
		want    lang.Refusal
	}{
		{cause(registry.ErrSealed, "add: the graph is sealed; remove one first"), lang.Refusal{Text: "der Graph ist versiegelt; entfernen Sie zuerst eine"}},
		{cause(registry.ErrSealed, "add: the graph is sealed: nothing was changed; remove one first"), lang.Refusal{Text: "der Graph ist versiegelt: nichts wurde geändert; entfernen Sie zuerst eine"}},
		{cause(registry.ErrSealed, "the graph is sealed"), lang.Refusal{Text: "der Graph ist versiegelt"}},
		{cause(registry.ErrSealed, "the graph is sealed: by A; wait"), lang.Refusal{Text: "der gegenwärtige Zustand lässt dies nicht zu; inzwischen hat sich etwas geändert", English: "the graph is sealed: by A; wait", Known: lang.Part}},
		{wire.NewProblem(409, wire.CodeConflict, "nothing was changed"), lang.Refusal{Text: "nichts wurde geändert"}},
		{wire.NewProblem(422, wire.CodeInvalid, "odd; correct it", wire.Fault{Message: "odd"}), lang.Refusal{Text: "nichts wurde ausgeführt: Ein Wert ist nicht gültig"}},
		{wire.NewProblem(413, wire.CodeTooLarge, "odd"), lang.Refusal{Text: "es ist größer als erlaubt", English: "odd"}},
	} {
		if got := c.In("de").Refusal(tt.problem); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.problem.Detail, got, tt.want)
		}
		if got := c.In("en").Refusal(tt.problem); got != (lang.Refusal{Text: tt.problem.Detail}) {
			t.Errorf("%s: in English %+v", tt.problem.Detail, got)
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
