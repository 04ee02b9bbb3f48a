package page

import (
	"encoding/json"
	"html/template"
	"net/http"
	"strings"

	"github.com/holdfast/holdfast/registry/wording"
	"github.com/holdfast/holdfast/web/ui/lang"
	"github.com/holdfast/holdfast/web/webserver"
	"github.com/holdfast/holdfast/web/wire"
)

// said shows words of Holdfast, in the viewer's language as far as the catalogue has them.
func (v *view) said(text string) template.HTML {
	r := &rich{view: v}
	return r.html(r.english(text))
}

// saidSentence is said as a sentence.
func (v *view) saidSentence(text string) template.HTML {
	r := &rich{view: v}
	return r.html(r.says(text))
}

// saidText is said where HTML is not possible.
func (v *view) saidText(text string) string {
	r := &rich{view: v}
	return r.plain(r.english(text))
}

// fault says what is wrong, and what to do, in the viewer's language as far as the catalogue has it.
func (v *view) fault(f wire.Fault) template.HTML {
	r := &rich{view: v}
	return r.html(strings.TrimSpace(r.wrong(f) + " " + r.fix(f)))
}

// wrong says what is wrong.
func (r *rich) wrong(f wire.Fault) string {
	var all []string
	if f.Statement != nil {
		all = append(all, r.sentence(wording.Statement(words{r}, *f.Statement, "")))
	} else if text := ownWords(f); text != "" {
		all = append(all, r.says(text))
	}
	if f.Rule != "" {
		if f.Expected != "" {
			all = append(all, r.T("Expected: %s.", r.english(f.Expected)))
		}
	}
	if f.Found != "" && (f.Rule != "" || strings.HasSuffix(f.Location, "]")) { // of a list, it says which
		all = append(all, r.T("Found: %s.", r.data(f.Found)))
	}
	return strings.Join(all, " ")
}

// fix says what to do; "" if the fault does not.
func (r *rich) fix(f wire.Fault) string {
	if f.Fix == "" {
		return ""
	}
	return r.says(f.Fix)
}

// mostWords bounds the problem that is worded for a script, in bytes.
const mostWords = 1 << 20

// saidProblem is a problem of the API in the viewer's language, as HTML.
type saidProblem struct {
	Detail template.HTML `json:"detail"`
	Faults []saidFault   `json:"faults"` // as many as it has
}

// saidFault is a fault of such a problem.
type saidFault struct {
	Wrong template.HTML `json:"wrong"`
	Fix   template.HTML `json:"fix"`
}

// word answers a script that got a problem from the API, or a report of a check, with its words in the
// viewer's language. It keeps nothing.
func (s *Site) word(w http.ResponseWriter, r *http.Request) {
	var p wire.Problem
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostWords)).Decode(&p); err != nil {
		s.Fail(w, r, Invalid("the problem could not be read"))
		return
	}
	v := s.viewOf(r)
	out := saidProblem{Detail: v.refused(&p), Faults: make([]saidFault, len(p.Faults))}
	for i, f := range p.Faults {
		wrong, fix := &rich{view: v}, &rich{view: v}
		out.Faults[i] = saidFault{wrong.html(wrong.wrong(f)), fix.html(fix.fix(f))}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if err := json.NewEncoder(w).Encode(out); err != nil {
		s.Log.DebugContext(r.Context(), "words were not sent", "err", webserver.ErrorText(err))
	}
}

// refused says what a problem says, apart from its faults.
func (v *view) refused(p *wire.Problem) template.HTML {
	r := &rich{view: v}
	if v.texts.Tag == "en" || p.Worded {
		return template.HTML(template.HTMLEscapeString(lang.Sentence(p.Detail))) //nolint:gosec // escaped
	}
	said := v.texts.RefusalIn(words{r}, p)
	var all []string
	if said.Text != "" && said.Known != lang.Part {
		all = append(all, r.sentence(said.Text))
	}
	if said.English != "" {
		all = append(all, r.says(said.English))
	}
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
