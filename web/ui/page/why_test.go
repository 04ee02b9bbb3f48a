package page

import (
	"html"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/wording"
	"github.com/holdfast/holdfast/web/ui/lang"
)

// exactTime is the time that these tests use, to the second, in English and in German.
var exactTime = regexp.MustCompile(`title="(2026-11-28|28\.11\.2026) 0[01]:30:00 CET"`)

// TestWordings: each statement is worded in each language with all its facts, which are escaped, and
// without them.
func TestWordings(t *testing.T) {
	all, err := lang.Open()
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 27, 23, 30, 0, 0, time.UTC)
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	tags := regexp.MustCompile(`<[^>]*>`)
	const data = `<b>"data" & %s 100%d`
	item := registry.Obstacle{ID: "an-id", Name: data, State: registry.StateFailed, Note: data, NextTry: &registry.NextTry{At: now.Add(time.Hour), Attempt: 2, Of: 5}}
	full := registry.Statement{
		Stage: registry.Download, State: registry.StateFailed, Collection: data, GraphID: data, ItemID: data, Name: data, Text: data,
		N: 2, Of: 5, Others: 3, Since: &now, Until: &now, Items: []registry.Obstacle{item},
		Hold: &registry.Hold{Scope: registry.HoldCollection, Key: data, Reason: data, Actor: data, CreatedAt: now},
	}
	for _, one := range all.Languages() {
		v := &view{site: &Site{Options: Options{Now: func() time.Time { return now }}}, texts: all.In(one.Tag), zone: zone}
		for _, says := range wording.Statements() {
			for _, s := range variants(full) {
				s.Says = says
				w := registry.Why{ItemID: "its-id", Because: []registry.Statement{s}, Helps: []registry.Statement{s}, At: now}
				text := string(v.because(w))
				words := html.UnescapeString(tags.ReplaceAllString(text, ""))
				if strings.Contains(text, "%!") || strings.Contains(text, "<b>") || strings.ContainsFunc(text, func(c rune) bool { return c >= firstPart && c < firstPart+100 }) {
					t.Errorf("%s, %s: %s", one.Tag, says, text)
				}
				if words != v.becauseText(w) || words == "" || !strings.HasSuffix(strings.ToLower(string(v.helps(w))), strings.ToLower(text)) {
					t.Errorf("%s, %s: %q, but as a text %q", one.Tag, says, words, v.becauseText(w))
				}
				if strings.Contains(text, "<time") && !exactTime.MatchString(text) {
					t.Errorf("%s, %s: no exact time in %s", one.Tag, says, text)
				}
				wording.Say(&w)
				if w.Sentence == "" {
					t.Errorf("%s is not worded in English", says)
				}
			}
		}
	}
}

// variants are a statement with other facts: those on which the wording depends.
func variants(full registry.Statement) []registry.Statement {
	foreign, own, upload, one := full, full, full, full
	foreign.Items = []registry.Obstacle{{State: registry.StatePending, Step: true}}
	foreign.Name, foreign.Text, foreign.ItemID = "w", "its text", ""
	own.Hold = &registry.Hold{Scope: registry.HoldBatch, Key: "another", CreatedAt: *full.Since}
	own.Stage = "run:count"
	upload.Uploads, upload.N, upload.Of = true, registry.MostInLine+1, registry.MostInLine+1
	upload.Hold = &registry.Hold{Scope: registry.HoldAll, CreatedAt: *full.Since}
	one.N, one.Of = 1, registry.MostInLine+1
	one.Hold = &registry.Hold{Scope: registry.HoldIngest, CreatedAt: *full.Since}
	one.Progress = []registry.Progress{{Unit: "bytes", Position: 5, End: -1}, {Unit: "files", Position: 1, End: 2}}
	upload.Progress, own.Progress, foreign.Progress, full.Progress = one.Progress, one.Progress, one.Progress, one.Progress
	return []registry.Statement{full, foreign, own, upload, one}
}

// TestRemedies: each advice is worded in each language, with its facts, and in English as package
// remedy words it.
func TestRemedies(t *testing.T) {
	all, err := lang.Open()
	if err != nil {
		t.Fatal(err)
	}
	tags := regexp.MustCompile(`<[^>]*>`)
	const data = `see <b>"it"</b> & %s 100%d`
	for _, one := range all.Languages() {
		v := &view{site: &Site{}, texts: all.In(one.Tag)}
		for _, a := range registry.Advices() {
			for _, r := range []registry.Remedy{
				{},
				{Abandon: true},
				{Anew: registry.AnewAlone},
				{Anew: registry.AnewWhole},
				{Anew: registry.AnewAlone, Mended: true},
				{Anew: registry.AnewWhole, Mended: true},
				{Anew: registry.AnewAlone, Mended: true, From: registry.Download},
				{Anew: registry.AnewWhole, Mended: true, From: registry.Download},
			} {
				r.Advice, r.Text = a, data
				english := wording.Remedy(wording.English{}, r)
				text := string(v.remedy(r, "its text"))
				words := html.UnescapeString(tags.ReplaceAllString(text, ""))
				if strings.Contains(text, "%!") || strings.Contains(text, "<b>") || strings.Contains(words, "its text") || english == "" {
					t.Errorf("%s, %+v: %s", one.Tag, r, text)
				}
				if same := strings.EqualFold(words, lang.Sentence(english)); same != (one.Tag == "en") {
					t.Errorf("%s, %+v: %q, where English says %q", one.Tag, r, words, english)
				}
			}
		}
		if text := string(v.remedy(registry.Remedy{Advice: "of a later program"}, "do that")); text != map[string]string{"en": "Do that.", "de": `<span lang="en">Do that.</span>`}[one.Tag] {
			t.Errorf("%s: unknown advice is shown as %s", one.Tag, text)
		}
	}
}
