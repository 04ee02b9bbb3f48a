package lang_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

var (
	templateAction = regexp.MustCompile(`(?s)\{\{.*?\}\}`)
	word           = regexp.MustCompile(`[A-Za-z]{2}`)
	names          = []string{"Holdfast", "ARK"} // which are the same in every language
	textAttributes = []string{"title", "aria-label", "data-label", "alt"}
	notTranslated  = []string{"code", "pre", "script", "kbd"}
)

// bareTexts are the texts of a template that people would read as they are.
func bareTexts(text string) (all []string) {
	z := html.NewTokenizer(strings.NewReader(templateAction.ReplaceAllString(text, "\x01")))
	apart, within := "", 0 // the element whose texts are not translated, and how many of its name are open
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			return all
		}
		token := z.Token()
		switch {
		case kind == html.TextToken:
			text := token.Data
			for _, name := range names {
				text = strings.ReplaceAll(text, name, "")
			}
			if within == 0 && word.MatchString(text) {
				all = append(all, strings.TrimSpace(token.Data))
			}
		case within > 0 && token.Data == apart && kind == html.StartTagToken:
			within++
		case within > 0 && token.Data == apart && kind == html.EndTagToken:
			within--
		case within == 0 && (kind == html.StartTagToken || kind == html.SelfClosingTagToken):
			for _, a := range token.Attr {
				if slices.Contains(textAttributes, a.Key) && word.MatchString(a.Val) {
					all = append(all, a.Key+"="+a.Val)
				}
			}
			if kind == html.StartTagToken && (slices.Contains(notTranslated, token.Data) || slices.Contains(token.Attr, html.Attribute{Key: "lang", Val: "en"})) {
				apart, within = token.Data, 1
			}
		}
	}
}

// TestTemplates: every text that people read goes through the catalogue.
func TestTemplates(t *testing.T) {
	files, err := filepath.Glob("../*/page/*.html")
	if err != nil {
		t.Fatal(err)
	}
	layout, err := filepath.Glob("../page/layout/*.html")
	if err != nil {
		t.Fatal(err)
	}
	const fewest = 10
	if len(files) < fewest || len(layout) == 0 {
		t.Fatalf("only %d templates were found", len(files))
	}
	for _, path := range append(files, layout...) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if bare := bareTexts(string(text)); len(bare) > 0 {
			t.Errorf("%s has texts that are not in the catalogue: %q", path, bare)
		}
	}
}

// namedText is an element that has an accessible name, and a text of its own at the beginning.
var namedText = regexp.MustCompile(`aria-label="\{\{t "([^"]*)"[^}]*\}\}"[^<>]*>\s*\{\{t "([^"]*)"[^}]*\}\}`)

// TestNamesHoldTheText: in every language, who says the text of a button that they see reaches it.
func TestNamesHoldTheText(t *testing.T) {
	files, err := filepath.Glob("../*/page/*.html")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, path := range files {
		template, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range namedText.FindAllStringSubmatch(string(template), -1) {
			for _, l := range languages(t) {
				catalogue := read(t, l.Tag)
				name, text := catalogue[m[1]]["other"], catalogue[m[2]]["other"]
				if text == "" || !strings.Contains(strings.ToLower(name), strings.ToLower(text)) {
					t.Errorf("%s: in %s the name %q lacks the text %q", path, l.Tag, name, text)
				}
				found++
			}
		}
	}
	if found == 0 {
		t.Fatal("no element with a name and a text was found")
	}
}
