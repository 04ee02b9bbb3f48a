// Package lang has the texts of the pages in each language.
//
// A text's key is its English form, with verbs as in package fmt. Where the form depends on the first
// argument's number, the key has both: "%d file|%d files". Numbers get the separators of the language.
//
// A language's catalogue is the file catalogue/TAG.json: an object with a value for each key. The value
// is the text or, for a key with two forms, an object with a text for each plural form of the language
// ("one", "other", and so on; CLDR). The catalogue of English has all keys; go generate makes it from
// the templates and the code, and a translator begins with a copy of it. TestCatalogues names the keys
// that a catalogue lacks or has in vain.
package lang

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"

	"golang.org/x/text/feature/plural"
	"golang.org/x/text/language"
	"golang.org/x/text/language/display"
	"golang.org/x/text/message"
	"golang.org/x/text/message/catalog"
)

//go:embed catalogue/*.json
var files embed.FS

// Cookie is the cookie with the tag of the language that a person chose.
const Cookie = "lang"

// Language is one in which the pages can be shown.
type Language struct {
	Tag  string // such as "de"
	Name string // in the language itself
}

// Catalogue has the texts of all languages. It does not change.
type Catalogue struct {
	texts   *catalog.Builder
	has     map[string]bool   // by language and key
	raw     map[string]string // texts with one form, by language and key
	matcher language.Matcher
	tags    []language.Tag // English first
}

// Open returns the catalogues, which it reads once. Errors are programming errors.
func Open() (*Catalogue, error) { return opened() }

var opened = sync.OnceValues(func() (*Catalogue, error) { return Read(files) })

// Read reads the catalogues of a file system instead, for tests.
func Read(files fs.FS) (*Catalogue, error) {
	c := &Catalogue{has: map[string]bool{}, raw: map[string]string{}, texts: catalog.NewBuilder(catalog.Fallback(language.English)), tags: []language.Tag{language.English}}
	entries, err := fs.ReadDir(files, "catalogue")
	if err != nil {
		return nil, fmt.Errorf("read the catalogues of texts: %w", err)
	}
	for _, e := range entries {
		tag, err := language.Parse(strings.TrimSuffix(e.Name(), ".json"))
		if err != nil {
			return nil, fmt.Errorf("catalogue %s: %w", e.Name(), err)
		}
		raw, err := fs.ReadFile(files, path.Join("catalogue", e.Name()))
		if err != nil {
			return nil, fmt.Errorf("catalogue %s: %w", e.Name(), err)
		}
		if err := c.add(tag, raw); err != nil {
			return nil, fmt.Errorf("catalogue %s: %w", e.Name(), err)
		}
		if tag != language.English {
			c.tags = append(c.tags, tag)
		}
	}
	c.matcher = language.NewMatcher(c.tags)
	return c, nil
}

// add adds the texts of a language.
func (c *Catalogue) add(tag language.Tag, raw []byte) error {
	texts := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &texts); err != nil {
		return err
	}
	for key, value := range texts {
		c.has[tag.String()+" "+key] = true
		var text string
		if json.Unmarshal(value, &text) == nil {
			c.raw[tag.String()+" "+key] = text
			if err := c.texts.SetString(tag, key, text); err != nil {
				return fmt.Errorf("%q: %w", key, err)
			}
			continue
		}
		var forms map[string]string
		if err := json.Unmarshal(value, &forms); err != nil {
			return fmt.Errorf("%q: %w", key, err)
		}
		var cases []any
		for form, text := range forms {
			if form != "other" {
				cases = append(cases, form, text)
			}
		}
		cases = append(cases, "other", forms["other"])
		if err := c.texts.Set(tag, key, plural.Selectf(1, "%d", cases...)); err != nil {
			return fmt.Errorf("%q: %w", key, err)
		}
	}
	return nil
}

// Languages lists the languages, English first.
func (c *Catalogue) Languages() (all []Language) {
	for _, tag := range c.tags {
		all = append(all, Language{Tag: tag.String(), Name: display.Self.Name(tag)})
	}
	return all
}

// Of returns the texts in the language that a request asks for: by its cookie, or else by
// Accept-Language. English is the default.
func (c *Catalogue) Of(r *http.Request) Texts {
	var wanted []language.Tag
	if chosen, err := r.Cookie(Cookie); err == nil {
		if tag, err := language.Parse(chosen.Value); err == nil {
			wanted = append(wanted, tag)
		}
	}
	accepted, _, _ := language.ParseAcceptLanguage(r.Header.Get("Accept-Language")) // none if it is malformed
	_, i, _ := c.matcher.Match(append(wanted, accepted...)...)
	return c.In(c.tags[i].String())
}

// In returns the texts in a language of [Catalogue.Languages], or in English.
func (c *Catalogue) In(tag string) Texts {
	for _, t := range c.tags {
		if t.String() == tag {
			return Texts{Tag: tag, all: c, printer: message.NewPrinter(t, message.Catalog(c.texts))}
		}
	}
	return c.In(language.English.String())
}

// Texts has the texts of one language. Its methods may be called concurrently.
type Texts struct {
	Tag     string
	all     *Catalogue
	printer *message.Printer
}

// T returns the text of a key with its arguments. A key that the language lacks is shown in English.
func (t Texts) T(key string, args ...any) string {
	if one, other, both := strings.Cut(key, "|"); both && !t.all.has[t.Tag+" "+key] {
		if key = other; len(args) > 0 && fmt.Sprint(args[0]) == "1" {
			key = one
		}
	}
	return t.printer.Sprintf(key, args...)
}
