package ui_test

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode"

	"golang.org/x/net/html"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/secret"
	"github.com/holdfast/holdfast/web/ui/lang"
	"github.com/holdfast/holdfast/web/ui/uitest"
)

// verb finds where a text has an argument.
var verb = regexp.MustCompile(`%(\[\d+\])?[.\d]*[a-zA-Z]`)

// marked is a text whose own words stand between ⟦ and ⟧, and its arguments between ⟨ and ⟩ there.
func marked(text string) string { return "⟦" + verb.ReplaceAllString(text, "⟨$0⟩") + "⟧" }

// pseudo is the catalogue of a language in which each text is the English one with such marks.
func pseudo(t *testing.T) *lang.Catalogue {
	t.Helper()
	english, err := os.ReadFile("lang/catalogue/en.json")
	must(t, err)
	var texts map[string]any
	must(t, json.Unmarshal(english, &texts))
	for key, value := range texts {
		if text, ok := value.(string); ok {
			texts[key] = marked(text)
			continue
		}
		forms := map[string]string{}
		for form, text := range value.(map[string]any) {
			forms[form] = marked(text.(string))
		}
		texts[key] = forms
	}
	raw, err := json.Marshal(texts)
	must(t, err)
	all, err := lang.Read(fstest.MapFS{"catalogue/en.json": {Data: english}, "catalogue/eo.json": {Data: raw}})
	must(t, err)
	return all
}

// A plain text, in which nothing can be marked, stands between these in what read returns: an
// attribute, or the title of a page.
const plainFrom, plainTo = '\x01', '\x02'

// stillEnglish is what pages below a path may show in English, marked as such.
type stillEnglish struct {
	path string
	text *regexp.Regexp
}

// english is all that may be: data, of which nobody knows the language, and what is not for readers of pages.
var english = []stillEnglish{
	{"/", regexp.MustCompile(`^English$`)}, // the name of the language
	{"/api", regexp.MustCompile(``)},       // the specification, whose readers write programs
	// What programs outside Holdfast said, and what the tests' workers do in place of Holdfast's.
	{"/", regexp.MustCompile(`(?i)^(no such file\.?|the scanner is off|again: .*|.*src=x.*|.*alert\(1\).*)$`)},
}

// read returns the texts of a page that must be of the catalogue, and the data that it has, which are
// marked as such.
func read(t *testing.T, path, page string) (texts string, data []string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	must(t, err)
	var b strings.Builder
	plain := func(text string) { b.WriteString(string(plainFrom) + text + string(plainTo)) }
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		is := map[string]string{}
		for _, a := range n.Attr {
			is[a.Key] = a.Val
		}
		switch {
		case n.Type == html.TextNode:
			b.WriteString(n.Data)
			return
		case n.Data == "script" || n.Data == "datalist":
			return
		case is["lang"] != "" && n.Data != "html" || is["translate"] == "no" || slices.Contains([]string{"code", "pre", "kbd", "samp", "textarea"}, n.Data):
			if text := strings.TrimSpace(contentOf(n)); is["lang"] == "en" && !slices.ContainsFunc(english, func(e stillEnglish) bool { return e.text.MatchString(text) && strings.HasPrefix(path, e.path) }) {
				t.Errorf("%s has %.200q in English", path, text)
			}
			data = append(data, contentOf(n))
			plain(is["data-label"])
			return
		}
		for _, name := range []string{"title", "placeholder", "aria-label", "data-label", "alt"} {
			plain(is[name])
		}
		if n.Data == "title" || n.Data == "h1" {
			b.WriteRune(plainFrom)
			defer b.WriteRune(plainTo)
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
	}
	walk(root)
	return b.String(), data
}

// contentOf is the text of an element.
func contentOf(n *html.Node) string {
	if n.Type == html.TextNode {
		return n.Data
	}
	var b strings.Builder
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		b.WriteString(contentOf(c))
	}
	return b.String()
}

// unworded are the parts of what read returns that are not of the catalogue. Data are taken out of those
// parts that cannot be marked, which are plain texts and the arguments of texts.
func unworded(texts string, data *strings.Replacer) (all []string) {
	var part strings.Builder
	var within []rune
	end := func() {
		text := part.String()
		part.Reset()
		if len(within) > 0 {
			text = data.Replace(text)
		}
		all = append(all, text)
	}
	for _, c := range texts {
		switch c {
		case '⟦', '⟨', plainFrom:
			end()
			within = append(within, c)
		case '⟧', '⟩', plainTo:
			end()
			if len(within) > 0 {
				within = within[:len(within)-1]
			}
		case '\n':
			end()
		default:
			if len(within) == 0 || within[len(within)-1] != '⟦' {
				part.WriteRune(c)
			}
		}
	}
	end()
	return all
}

// neutral is what all languages have: numbers with units, times, and what somebody typed, in quotation marks.
var neutral = regexp.MustCompile(`"[^"]*"|\b[KMGTPE]iB\b|\bUTC\b|\bHoldfast\b|[0-9a-f]{8}-[0-9a-f-]+…?`)

// worded gathers pages in the pseudo language, and finds which of their texts are not of the catalogue.
type worded struct {
	t       *testing.T
	visited map[string]string // what a page says, by its path
	known   map[string]bool   // data of all pages
}

func newWorded(t *testing.T) worded {
	t.Helper()
	return worded{t, map[string]string{}, map[string]bool{}}
}

// add adds a page; text is all of the answer.
func (w worded) add(name, path, text string) {
	w.t.Helper()
	lower := strings.ToLower(text)
	at := strings.Index(lower, "<!doctype html>")
	if at < 0 {
		return
	}
	if !strings.Contains(text, `<html lang="eo"`) {
		w.t.Errorf("%s is not in the pseudo language", path)
	}
	texts, data := read(w.t, path, text[at:])
	w.visited[name+" "+path], w.known[path] = texts, true
	for _, text := range data {
		w.known[text] = len(text) > 2 // a shorter one may be a part of any word
	}
}

// check fails for each text that is not of the catalogue.
func (w worded) check() {
	w.t.Helper()
	maps.DeleteFunc(w.known, func(_ string, tells bool) bool { return !tells })
	longest := slices.SortedFunc(maps.Keys(w.known), func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b)) })
	replaces := make([]string, 0, 2*len(longest))
	for _, text := range longest {
		replaces = append(replaces, text, " ")
	}
	data := strings.NewReplacer(replaces...)
	letters := regexp.MustCompile(`\pL{2}`)
	found := map[string]string{}
	for path, texts := range w.visited {
		for _, text := range unworded(texts, data) {
			if text = strings.TrimFunc(neutral.ReplaceAllString(text, ""), unicode.IsSpace); letters.MatchString(text) {
				found[text] = path
			}
		}
	}
	for _, text := range slices.Sorted(maps.Keys(found)) {
		w.t.Errorf("%s has %q, which is not of the catalogue", found[text], text)
	}
}

// inPseudo are the cookies of a browser that shows pages in the pseudo language.
var inPseudo = []*http.Cookie{{Name: lang.Cookie, Value: "eo"}}

// TestPseudoLanguage: each text that a page shows is of the catalogue, or it is marked as data or as
// English. It visits all pages, with something on each of them. TestForms_WrongValues does the same with
// refusals.
func TestPseudoLanguage(t *testing.T) {
	keys, err := secret.Parse("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
	must(t, err)
	s := siteOf(uitest.New(t, uitest.Options{Catalogue: pseudo(t), Keys: keys}))
	start, _ := s.everything(t)
	s.cookies = inPseudo
	pages := newWorded(t)
	for _, role := range []registry.Role{registry.RoleAdmin, registry.RoleDepositor} {
		_, found, _ := s.walk(t, s.TokenOf(t, "the "+string(role), role), append(start, "/none"))
		for path, p := range found {
			pages.add(string(role), path, p.Text)
		}
	}
	pages.check()
}
