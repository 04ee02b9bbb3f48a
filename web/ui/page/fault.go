package page

import (
	"html/template"
	"strings"

	"github.com/holdfast/holdfast/registry/wording"
	"github.com/holdfast/holdfast/web/ui/lang"
	"github.com/holdfast/holdfast/web/wire"
)

// said shows words of Holdfast that have no facts, in the viewer's language if the catalogue has them.
func (v *view) said(text string) template.HTML {
	r := &rich{view: v}
	return r.html(r.english(text))
}

// saidSentence is said, as a sentence.
func (v *view) saidSentence(text string) template.HTML {
	r := &rich{view: v}
	return r.html(r.says(text, lang.Sentence))
}

// fault says what is wrong, and what to do, in the viewer's language as far as the catalogue has it.
func (v *view) fault(f wire.Fault) template.HTML {
	r := &rich{view: v}
	var all []string
	add := func(text string) {
		if text != "" {
			all = append(all, r.says(text, lang.Sentence))
		}
	}
	switch {
	case f.Statement != nil:
		all = append(all, r.sentence(wording.Statement(words{r}, *f.Statement, "")))
	default:
		add(ownWords(f))
	}
	if f.Rule != "" {
		if f.Expected != "" {
			all = append(all, r.T("Expected: %s.", r.english(f.Expected)))
		}
		if f.Found != "" {
			all = append(all, r.T("Found: %s.", r.data(f.Found)))
		}
	}
	add(f.Fix)
	return r.html(strings.Join(all, " "))
}

// ownWords is the message of a fault without what its other fields say: that of a fault of a payload has
// all of them on one line.
func ownWords(f wire.Fault) string {
	text, ok := strings.CutPrefix(f.Message, f.Rule)
	if f.Rule == "" || !ok {
		return f.Message
	}
	for _, part := range []struct{ name, text string }{{"fix: ", f.Fix}, {"found: ", f.Found}, {"expected: ", f.Expected}} {
		if part.text != "" {
			text = strings.TrimSuffix(text, "; "+part.name+part.text)
		}
	}
	return strings.TrimPrefix(text, "; ")
}
