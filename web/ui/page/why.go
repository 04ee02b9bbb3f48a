package page

import (
	"cmp"
	"errors"
	"html/template"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/wording"
	"github.com/holdfast/holdfast/web/ui/lang"
	"github.com/holdfast/holdfast/web/wire"
)

// because says why an item waits, in the viewer's language and time zone.
func (v *view) because(w registry.Why) template.HTML {
	r := &rich{view: v}
	return r.html(r.either(wording.Because(words{r}, w), w.Sentence))
}

// becauseText is because without links, for where HTML is not possible.
func (v *view) becauseText(w registry.Why) string {
	r := &rich{view: v}
	return r.plain(r.either(wording.Because(words{r}, w), w.Sentence))
}

// helps says what would let an item continue.
func (v *view) helps(w registry.Why) template.HTML {
	r := &rich{view: v}
	return r.html(r.either(wording.Helps(words{r}, w), w.Act))
}

// remedy says how to fix items that failed, or text, if this program does not know its advice.
func (v *view) remedy(what registry.Remedy, text string) template.HTML {
	r := &rich{view: v}
	return r.html(r.either(wording.Remedy(words{r}, what), text))
}

// remedyForProducer is remedy as it is told to the producer.
func (v *view) remedyForProducer(what registry.Remedy, text string) template.HTML {
	r := &rich{view: v}
	return r.html(r.either(wording.RemedyForProducer(words{r}, what), text))
}

// either is a sentence of statements or, where this program does not know them, of their English.
func (r *rich) either(worded, english string) string {
	if worded != "" {
		return r.sentence(worded)
	}
	return r.says(english)
}

// consequences says what an act entails that a refusal asks to confirm.
func (v *view) consequences(p *wire.Problem) (all []template.HTML) {
	if p == nil {
		return nil
	}
	var needed *registry.ConfirmationNeeded
	worded := errors.As(p, &needed) && len(needed.Entails) == len(p.Consequences)
	for i, text := range p.Consequences {
		r, said := &rich{view: v}, ""
		if worded {
			said = wording.Statement(words{r}, needed.Entails[i], needed.ItemID)
		}
		all = append(all, r.html(r.either(said, text)))
	}
	return all
}

// words are those of statements and of what Holdfast said, in the viewer's language, with links.
type words struct{ *rich }

// Data implements [lang.Words].
func (w words) Data(text string) string { return w.data(text) }

// English implements [lang.Words].
func (w words) English(text string) string {
	html := template.HTMLEscapeString(text)
	if text != "" && w.texts.Tag != "en" {
		html = `<span lang="en">` + html + `</span>`
	}
	return w.put(template.HTML(html), text) //nolint:gosec // escaped
}

// Name implements [wording.Words].
func (w words) Name(text string) string { return w.data(text) }

// Said implements [wording.Words].
func (w words) Said(text string) string { return w.english(text) }

// Term implements [wording.Words].
func (w words) Term(word any) string { return w.term(word) }

// Stage implements [wording.Words].
func (w words) Stage(s registry.Stage) string { return w.stage(s) }

// State implements [wording.Words].
func (w words) State(s registry.State, next *registry.NextTry) string {
	if next == nil {
		return w.term(s)
	}
	return w.nextTry(*next, w.at)
}

// Item implements [wording.Words].
func (w words) Item(id, name string) string {
	if id == "" {
		return w.T("(of another collection)")
	}
	return w.link("/items/"+url.PathEscape(id), cmp.Or(name, short(id)))
}

// Graph implements [wording.Words].
func (w words) Graph(id string) string { return w.link(GraphURL(id), short(id)) }

// Held implements [wording.Words].
func (w words) Held(h registry.Hold) string { return w.link("/holds", h.Key) }

// Time implements [wording.Words].
func (w words) Time(t time.Time) string { return w.at(t) }

// Size implements [wording.Words].
func (w words) Size(bytes int64) string { return w.bytes(bytes) }

// Unit implements [wording.Words].
func (w words) Unit(name string) string { return w.unit(name) }

var (
	_ wording.Words = words{}
	_ lang.Words    = words{}
)

// stage names a stage: in words, or a function as it is called.
func (r *rich) stage(s registry.Stage) string {
	if name := s.Function(); name != "" {
		return r.data(string(s))
	}
	return r.term(s)
}

// measured names what a step counts, or a measure of it. Those of programs outside Holdfast are shown as
// they are.
func (v *view) measured(name string) string {
	if to, ok := between(name, "files copied to ", " and verified"); ok {
		return v.texts.T("files copied to %s and verified", to)
	}
	if to, ok := between(name, "bytes copied to ", " and verified"); ok {
		return v.texts.T("bytes copied to %s and verified", to)
	}
	if Measured(name) == "" {
		return name
	}
	return v.texts.T(Measured(name))
}

// unit is as measured, with foreign names as data.
func (r *rich) unit(name string) string {
	if text := r.measured(name); text != name || Measured(name) != "" {
		return text
	}
	return r.data(name)
}

// measure is unit, for pages.
func (v *view) measure(name string) template.HTML {
	r := &rich{view: v}
	return r.html(r.unit(name))
}

// between returns what is between a beginning and an end of a text that has both.
func between(text, beginning, end string) (inside string, ok bool) {
	rest, ok := strings.CutPrefix(text, beginning)
	if !ok {
		return "", false
	}
	return strings.CutSuffix(rest, end)
}

// Measured is the text for a unit or a measure of Holdfast's own steps; "" for any other.
func Measured(name string) string {
	switch name {
	case "files":
		return "files"
	case "rows":
		return "rows"
	case "items":
		return "items"
	case "names":
		return "names"
	case "bytes transferred":
		return "bytes transferred"
	case "files transferred":
		return "files transferred"
	case "bytes read back":
		return "bytes read back"
	case "bytes read again":
		return "bytes read again"
	case "bytes scanned":
		return "bytes scanned"
	case "bytes stored and verified":
		return "bytes stored and verified"
	case "bytes unpacked":
		return "bytes unpacked"
	case "files identified":
		return "files identified"
	case "files listed":
		return "files listed"
	case "files planned":
		return "files planned"
	case "files recorded":
		return "files recorded"
	case "files scanned":
		return "files scanned"
	case "files stored and verified":
		return "files stored and verified"
	case "files unpacked":
		return "files unpacked"
	case "rows expanded":
		return "rows expanded"
	case "rows compared":
		return "rows compared"
	case "sizes asked for":
		return "sizes asked for"
	}
	return ""
}
