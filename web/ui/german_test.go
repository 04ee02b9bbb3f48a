package ui_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/signin"
	"github.com/holdfast/holdfast/web/ui/lang"
)

// texts are the texts of a page that people read: its own, and those in attributes. What is in code, in
// a part that says it is English, and in answers of the API is not translated.
func texts(t *testing.T, page string) (all []string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		if n.Type == html.TextNode {
			all = append(all, strings.TrimSpace(n.Data))
		}
		for _, a := range n.Attr {
			switch a.Key {
			case "lang":
				if a.Val == "en" {
					return
				}
			case "translate":
				return
			case "title", "placeholder", "aria-label", "data-label", "alt":
				all = append(all, strings.TrimSpace(a.Val))
			}
		}
		if n.Data == "code" || n.Data == "pre" || n.Data == "script" {
			return
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
	}
	walk(root)
	return all
}

// TestGerman: on the pages in German, no text of the catalogue is left in English.
func TestGerman(t *testing.T) {
	english := map[string]bool{}
	for key, text := range catalogue(t, "de") {
		// A single word in small letters may be the name of something, such as a storage.
		if text != key && !strings.Contains(key, "%") && (strings.Contains(key, " ") || strings.ToLower(key) != key) {
			english[key] = true
		}
	}
	for _, text := range catalogue(t, "de") {
		delete(english, text) // a word of both languages
	}
	s := newSite(t)
	batch, jobs := s.fill(t)
	s.Token = s.TokenOf(t, "eine Verwalterin", registry.RoleAdmin)
	paths := []string{"/none", "/batches/" + batch}
	for _, job := range jobs {
		paths = append(paths, "/items/"+job.ID)
	}
	for _, m := range menuEntry.FindAllStringSubmatch(s.get(t, "/help", http.StatusOK), -1) {
		paths = append(paths, m[1])
	}
	german := 0
	for _, path := range paths {
		answer := s.visit(t, http.MethodGet, path, nil, []*http.Cookie{{Name: lang.Cookie, Value: "de"}})
		var b strings.Builder
		err := answer.Write(&b)
		answer.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		_, page, _ := strings.Cut(b.String(), "<!doctype html>")
		if !strings.Contains(page, `<html lang="de"`) {
			t.Errorf("%s is not in German", path)
		}
		for _, text := range texts(t, page) {
			if english[text] {
				t.Errorf("%s has %q in English", path, text)
			}
			if text == "Hilfe" {
				german++
			}
		}
	}
	if german < len(paths) {
		t.Errorf("only %d of %d pages have the menu in German", german, len(paths))
	}
}

// catalogue reads the texts of a language that have one form.
func catalogue(t *testing.T, tag string) map[string]string {
	t.Helper()
	raw, err := os.ReadFile("lang/catalogue/" + tag + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for key, value := range all {
		var text string
		if json.Unmarshal(value, &text) == nil {
			texts[key] = text
		}
	}
	return texts
}

// TestGerman_BeforeSignIn: the pages of signing in and out are in the browser's language, or in the one
// that was chosen; so is why somebody is not signed in.
func TestGerman_BeforeSignIn(t *testing.T) {
	s := newSite(t)
	must(t, s.Store.AddLink(t.Context(), signin.Hash("a link"), "a viewer", signin.LinkGood))
	for _, tt := range []struct {
		method, path, form, accepts, chosen string
		says                                []string
	}{
		{"GET", "/login", "", "de-AT,en;q=0.5", "", []string{`<html lang="de"`, "Anmelden · Holdfast", "Ich habe keinen Token", "Token</label>"}},
		{"GET", "/login", "", "de", "en", []string{`<html lang="en"`, "Sign in · Holdfast"}},
		{"GET", "/login", "", "", "de", []string{`<html lang="de"`, "Ich habe keinen Token"}},
		{"GET", "/login?link=a+link", "", "de", "", []string{"Dieser Link meldet diesen Browser an als", ">a viewer</strong>", "Er funktioniert einmal."}},
		{"GET", "/login?link=none", "", "de", "", []string{"Dieser Link wurde schon benutzt oder ist abgelaufen"}},
		{"GET", "/batches", "", "de", "", []string{"Melden Sie sich an, um diese Seite zu sehen."}},
		{"POST", "/login", "token=wrong", "de", "", []string{`role="alert"`, "Der Token ist unbekannt, abgelaufen oder widerrufen"}},
		{"POST", "/logout", "", "de", "", []string{"Sie haben sich abgemeldet", "Wieder anmelden"}},
	} {
		r := httptest.NewRequestWithContext(t.Context(), tt.method, tt.path, strings.NewReader(tt.form))
		r.Header.Set("Accept-Language", tt.accepts)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", "http://example.com")
		if tt.chosen != "" {
			r.AddCookie(&http.Cookie{Name: lang.Cookie, Value: tt.chosen})
		}
		w := httptest.NewRecorder()
		s.Handler.ServeHTTP(w, r)
		for _, want := range tt.says {
			if !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s %s in %s%s does not say %s:\n%s", tt.method, tt.path, tt.accepts, tt.chosen, want, w.Body)
			}
		}
	}
}

// TestGerman_Refusals: a refusal is in the reader's language by its code, and what only English says is
// marked.
func TestGerman_Refusals(t *testing.T) {
	s := newSite(t)
	_, jobs := s.fill(t)
	s.Token = s.TokenOf(t, "eine Operatorin", registry.RoleOperator)
	waiting, err := s.store.Submit(t.Context(), registry.Submission{Collection: "default", Name: "a", Spec: registry.Spec{URL: "http://h.test/"}})
	must(t, err)
	de := []*http.Cookie{{Name: lang.Cookie, Value: "de"}}
	for _, tt := range []struct {
		method, path string
		form         url.Values
		says         []string
	}{
		{"GET", "/items/01a21f56-0000-7000-8000-000000000000", nil, []string{"Das gibt es nicht oder nicht mehr."}},
		{"GET", "/tokens", nil, []string{`Der Token „<span translate="no">eine Operatorin</span>“ hat die Rolle Operator`, "nehmen Sie einen Token mit der Rolle Admin."}},
		{"GET", "/items/" + waiting.BatchID + "/acts?act=abort", nil, []string{"<li>Der Stapel endet endgültig: ", "<li>Der Einlieferer wird hierüber nicht benachrichtigt."}},
		{"POST", "/items/" + jobs[0].ID + "/acts", url.Values{"act": {string(registry.ActUnhold)}}, []string{"kann er nicht freigegeben werden", "lässt dies nicht zu"}},
	} {
		answer := s.visit(t, tt.method, tt.path, tt.form, de)
		var b strings.Builder
		err := answer.Write(&b)
		answer.Body.Close()
		must(t, err)
		for _, want := range tt.says {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s %s does not say %s:\n%s", tt.method, tt.path, want, b.String())
			}
		}
	}
}
