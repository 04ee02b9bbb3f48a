package page

import (
	"html/template"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast/holdfast/web/ui/lang"
)

// rich makes a text of the catalogue with parts that are HTML, such as links and times. A part stands
// in the text as one character, which no other text has.
type rich struct {
	*view

	parts []richPart
}

// richPart is one such part, and what it says without HTML.
type richPart struct {
	html template.HTML
	text string
}

// firstPart is the character for the first part, the first one for private use.
const firstPart = '\uE000'

// T returns the text of a key with its arguments: parts, numbers, and words of the catalogue. Words of
// others are parts, since they may have any character.
func (r *rich) T(key string, args ...any) string {
	return r.texts.T(key, args...)
}

// put adds a part.
func (r *rich) put(html template.HTML, text string) string {
	r.parts = append(r.parts, richPart{html, text})
	return string(firstPart + rune(len(r.parts)-1))
}

// data adds words that are not translated: a name, or what somebody wrote.
func (r *rich) data(text string) string {
	return r.put(template.HTML(`<span translate="no">`+template.HTMLEscapeString(text)+`</span>`), text) //nolint:gosec // escaped
}

// english says words of Holdfast, of which those are marked as English that the catalogue lacks.
func (r *rich) english(text string) string {
	said, _ := r.texts.SaidIn(words{r}, text)
	return said
}

// says is english as a sentence.
func (r *rich) says(text string) string {
	said, how := r.texts.SaidIn(words{r}, text)
	if how == lang.Nothing {
		return words{r}.English(lang.Sentence(text))
	}
	return r.sentence(said)
}

// link adds a link around a text that is not translated.
func (r *rich) link(address, text string) string {
	html := `<a href="` + template.HTMLEscapeString(address) + `" translate="no">` + template.HTMLEscapeString(text) + `</a>`
	return r.put(template.HTML(html), text) //nolint:gosec // escaped
}

// at adds a time to the minute, with the day unless that is today, and exactly where one points.
func (r *rich) at(t time.Time) string {
	text := r.shortTime(t)
	html := `<time datetime="` + stamp(t) + `" title="` + template.HTMLEscapeString(r.moment(t)) + `">` + template.HTMLEscapeString(text) + `</time>`
	return r.put(template.HTML(html), text) //nolint:gosec // escaped
}

// html returns a text with its parts.
func (r *rich) html(text string) template.HTML {
	var b strings.Builder
	for _, c := range text {
		if i := int(c - firstPart); i >= 0 && i < len(r.parts) {
			b.WriteString(string(r.parts[i].html))
		} else {
			b.WriteString(template.HTMLEscapeString(string(c)))
		}
	}
	return template.HTML(b.String()) //nolint:gosec // all parts are escaped, and so is what is between them
}

// plain returns a text with its parts without HTML.
func (r *rich) plain(text string) string {
	var b strings.Builder
	for _, c := range text {
		if i := int(c - firstPart); i >= 0 && i < len(r.parts) {
			b.WriteString(r.parts[i].text)
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}

// sentence makes the first letter a capital, and adds a full stop where there is none.
func (r *rich) sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if i := int(first - firstPart); i < 0 || i >= len(r.parts) {
		text = capital(text[:size]) + text[size:]
	}
	if plain := r.plain(text); plain != "" && !strings.ContainsAny(plain[len(plain)-1:], ".!?") {
		text += "."
	}
	return text
}

// shortTime formats a time to the minute, with the day unless that is today, in the viewer's time
// zone, which is named if it is UTC.
func (v *view) shortTime(t time.Time) string {
	at, form := t.In(v.zone), "15:04"
	if at.Format(time.DateOnly) != v.site.now().In(v.zone).Format(time.DateOnly) {
		form = v.texts.T("2006-01-02 15:04")
	}
	if v.zone == time.UTC {
		form += " MST"
	}
	return at.Format(form)
}
