package ui_test

import (
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/secret"
	"github.com/holdfast/holdfast/web/ui/uitest"
)

// wrongValues are what people type into any field by mistake.
var wrongValues = []struct{ what, value string }{
	{"nothing", ""}, {"much too long", strings.Repeat("long ", 4000)}, {"of the wrong form", "-x\x01?"},
}

// fieldsOfFiles are forms whose fields are those of a payload: their own tests look at them.
var fieldsOfFiles = []string{"POST /deposit", "POST /deposits/{id}/rows", "POST /preferences"}

// TestForms_WrongValues types mistakes into each field of each form that the pages offer. Whatever is
// refused comes back as the form, with what was typed, and says beside the field what is wrong with it, in
// the reader's language.
func TestForms_WrongValues(t *testing.T) {
	keys, err := secret.Parse("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
	must(t, err)
	s := siteOf(uitest.New(t, uitest.Options{Catalogue: pseudo(t), Keys: keys}))
	answers := newWorded(t)
	start, _ := s.everything(t)
	s.Token = s.TokenOf(t, "keeper", registry.RoleAdmin)
	s.cookies = inPseudo
	_, pages, _ := s.walk(t, s.Token, start)
	for path, p := range pages {
		answers.add("keeper", path, p.Text)
	}
	pattern := uitest.Patterns(s.Site.Routes())
	tried, refused := map[string]bool{}, 0
	for _, path := range slices.Sorted(maps.Keys(pages)) {
		for _, f := range uitest.FormsOf(t, pages[path]) {
			route := pattern(http.MethodPost, f.Action)
			if f.Method != http.MethodPost || slices.Contains(fieldsOfFiles, route) {
				continue
			}
			for _, sends := range f.Sends() {
				for _, field := range f.Typed() {
					for _, wrong := range wrongValues {
						what, value := wrong.what, wrong.value
						if what == "nothing" && !slices.Contains(f.Required(), field) {
							continue // it is right, and would be done
						}
						k := asked(route, sends) + " " + field + " " + what
						if tried[k] {
							continue
						}
						tried[k] = true
						sends := maps.Clone(sends)
						for _, other := range f.Typed() { // so that only this one is wrong
							if sends.Get(other) == "" && other != field {
								sends.Set(other, right[other])
							}
							if other == "name" || other == "mnemonic" {
								sends.Set(other, "fresh-"+strconv.Itoa(len(tried)))
							}
						}
						sends.Set("confirm", "yes")
						sends.Del("seen") // of what an earlier try has changed
						if field == "others" {
							sends.Set("role", "worker")
						}
						sends.Set(field, value)
						got := s.visit(t, http.MethodPost, f.Action, sends, inPseudo)
						text, err := io.ReadAll(got.Body)
						got.Body.Close()
						must(t, err)
						if got.StatusCode < http.StatusBadRequest {
							continue
						}
						refused++
						answer := uitest.Visited{Status: got.StatusCode, Path: f.Action, Text: string(text)}
						answers.add(k, f.Action, answer.Text)
						if why := wantField(t, answer, f.Action, field, sends); why != "" {
							t.Errorf("%s, as %s has it: %d: %s\n%s", k, path, got.StatusCode, why, said(answer))
						}
					}
				}
			}
		}
	}
	answers.check()
	if refused < 60 {
		t.Errorf("only %d of %d forms were refused: the test tries nothing", refused, len(tried))
	}
}

// right are values that fields take.
var right = map[string]string{
	"reason": "a reason", "key": "", "cron": "@daily", "function": "convert", "target": "https://receiver.test/x", "minutes": "1", "worker": "w-1",
	"priority": "1", "owner": "ark:/99999/o", "collections": "ark:/99999/c", "origin": "https://h.test", "secret": "x",
}

// said is the part of a page that tells of a refusal.
func said(p uitest.Visited) string {
	text := p.Main()
	return text[:min(len(text), 900)]
}

// wantField says what an answer lacks that refuses a field of a form; "" if it has all.
func wantField(t *testing.T, p uitest.Visited, action, field string, sends url.Values) string {
	t.Helper()
	if !strings.Contains(p.Main(), `role="alert"`) {
		return "it does not say what is wrong"
	}
	for _, f := range uitest.FormsOf(t, p) {
		if f.Action != action || f.Method != http.MethodPost || !slices.Contains(f.Typed(), field) || !f.Has(sends) {
			continue
		}
		for name := range sends {
			typed, was := strings.TrimSpace(f.Fields.Get(name)), strings.ToValidUTF8(strings.TrimSpace(sends.Get(name)), "")
			if slices.Contains(f.Typed(), name) && !slices.Contains(f.Secret, name) && typed != was && f.Buttons.Get(name) == "" {
				return "what was typed into " + name + " is lost"
			}
		}
		if strings.Contains(p.Main(), "<code>body.") {
			return "it names a field of the API, not one of the form"
		}
		if len(f.Wrong) == 0 { // what is too long for one may be too long for two together
			return "the fault is beside no field"
		}
		return ""
	}
	return "the form is not there"
}
