package ui_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/web/ui/lang"
)

// TestWords: a script gets the words of a problem in the language of its page; what the catalogue lacks is marked
// as English, and what others wrote stays text.
func TestWords(t *testing.T) {
	s := newSite(t)
	ask := func(body string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/words", strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+s.Token)
		r.AddCookie(&http.Cookie{Name: lang.Cookie, Value: "de"})
		w := httptest.NewRecorder()
		s.Handler.ServeHTTP(w, r)
		return w
	}
	w := ask(`{"code":"invalid-input","detail":"it is wrong","errors":[
		{"location":"body.ark","message":"x","statement":{"says":"twice","name":"<b>"}},
		{"rule":"row","message":"a <i> that nobody knows","found":"<u>","fix":"do what nobody knows"}]}`)
	var said struct {
		Detail string
		Faults []struct{ Wrong, Fix string }
	}
	must(t, json.Unmarshal(w.Body.Bytes(), &said))
	if len(said.Faults) != 2 || !strings.Contains(said.Detail, catalogue(t, "de")["nothing was done: a value is not valid"][1:]) {
		t.Fatalf("got %+v", said)
	}
	for got, want := range map[string]string{
		said.Faults[0].Wrong: `<span translate="no">&#34;&lt;b&gt;&#34;</span>`,
		said.Faults[1].Wrong: `<span lang="en">A &lt;i&gt; that nobody knows.</span>`,
		said.Faults[1].Fix:   `<span lang="en">Do what nobody knows.</span>`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want it with %q", got, want)
		}
	}
	if strings.Contains(said.Faults[0].Wrong, "listed twice") {
		t.Errorf("got %q in English", said.Faults[0].Wrong)
	}
	for _, body := range []string{"{", `{"detail":"` + strings.Repeat("x", 2<<20) + `"}`} {
		if w := ask(body); w.Code != http.StatusBadRequest && w.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("a problem that cannot be read is answered with %d", w.Code)
		}
	}
}
