package ui_test

import (
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/lang"
	"github.com/holdfast/holdfast/web/ui/uitest"
)

// pseudo is the catalogue of a language in which each text is the English one between brackets. What
// stands outside of them on a page is no text of the catalogue.
func pseudo(t *testing.T) *lang.Catalogue {
	t.Helper()
	english, err := os.ReadFile("lang/catalogue/en.json")
	must(t, err)
	var texts map[string]any
	must(t, json.Unmarshal(english, &texts))
	for key, value := range texts {
		if text, ok := value.(string); ok {
			texts[key] = "⟦" + text + "⟧"
			continue
		}
		forms := map[string]string{}
		for form, text := range value.(map[string]any) {
			forms[form] = "⟦" + text.(string) + "⟧"
		}
		texts[key] = forms
	}
	raw, err := json.Marshal(texts)
	must(t, err)
	all, err := lang.Read(fstest.MapFS{"catalogue/en.json": {Data: english}, "catalogue/eo.json": {Data: raw}})
	must(t, err)
	return all
}

// nested is a text of the catalogue whose parts are none with brackets.
var nested = regexp.MustCompile(`⟦[^⟦⟧]*⟧`)

// unworded finds what is left of a text without its parts of the catalogue and data.
func unworded(text string, data *regexp.Regexp) string {
	for before := ""; before != text; {
		before, text = text, nested.ReplaceAllString(text, "")
	}
	return strings.TrimSpace(data.ReplaceAllString(text, ""))
}

// TestPseudoLanguage: each text that a page shows is of the catalogue, or it is data or marked as
// English.
func TestPseudoLanguage(t *testing.T) {
	s := siteOf(uitest.New(t, uitest.Options{Catalogue: pseudo(t)}))
	batch, jobs := s.fill(t)
	s.Token = s.TokenOf(t, "Ω", registry.RoleAdmin)
	data := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]+…?|https?://\S+|ark:\S+|\d+(\.\d+)? ?([KMGT]i)?B\b|\d{4}-\d\d-\d\d|\bUTC\b|\bHoldfast\b|` +
		regexp.QuoteMeta(hostile) + `|\b(default|ann|worker|storage|Ω|English|[Ee]speranto|waiting|good|bad|again|404 for|staging|test|a viewer|ingestion|batch-manifest|sha256|Ctrl-K|Esc|[KMG]iB)\b|@example.org|producer/|` +
		// the beginning of a name, and a name with numbers taken out of it
		`<script>alert.*|<n> for .*`)
	paths := []string{"/none", "/batches/" + batch, "/objects/ark:/99999/fk4", "/items/" + batch + "/graph", "/collections/default", "/deposits/" + batch}
	for _, job := range jobs {
		paths = append(paths, "/items/"+job.ID, "/items/"+job.ID+"/acts?act=cancel")
	}
	for _, m := range menuEntry.FindAllStringSubmatch(s.get(t, "/help", http.StatusOK), -1) {
		if m[1] != "/api" {
			paths = append(paths, m[1])
		}
	}
	// What is left in English without a mark: the API's page, details of events, and notes of graphs.
	unmarked := map[string]bool{"awaits repair:": true, "waits for": true, "digest algorithm:  · version: 1": true, "refused submit hold": true, "stage: expand · status: pending": true, "submit": true, "collection": true}
	letters := regexp.MustCompile(`[A-Za-z]{2}`)
	found := map[string]string{}
	for _, path := range paths {
		answer := s.visit(t, http.MethodGet, path, nil, []*http.Cookie{{Name: lang.Cookie, Value: "eo"}})
		var b strings.Builder
		err := answer.Write(&b)
		answer.Body.Close()
		must(t, err)
		_, page, _ := strings.Cut(b.String(), "<!doctype html>")
		if !strings.Contains(page, `<html lang="eo"`) {
			t.Errorf("%s is not in the pseudo language", path)
		}
		for left := range strings.SplitSeq(unworded(strings.Join(texts(t, page), "\n"), data), "\n") {
			if left = strings.TrimSpace(left); letters.MatchString(left) && !unmarked[left] {
				found[left] = path
			}
		}
	}
	all := make([]string, 0, len(found))
	for text := range found {
		all = append(all, text)
	}
	slices.Sort(all)
	for _, text := range all {
		t.Errorf("%s has %q, which is not of the catalogue", found[text], text)
	}
}
