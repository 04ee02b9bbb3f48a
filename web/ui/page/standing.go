package page

import (
	"html/template"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/graphview"
	"github.com/holdfast/holdfast/registry/wording"
)

// standing says how far a node of a graph is, or why it does not go on.
func (v *view) standing(s graphview.Standing) template.HTML {
	r := &rich{view: v}
	return r.html(r.standing(s))
}

// standingText is standing as a text, without errors, which are in English.
func (v *view) standingText(s graphview.Standing) string {
	r := &rich{view: v}
	s.Note, s.Repair = "", false
	return r.plain(r.standing(s))
}

func (r *rich) standing(s graphview.Standing) string {
	var parts []string
	for _, p := range s.Progress {
		parts = append(parts, r.measure(p))
	}
	switch {
	case s.Repair && s.Note == "":
		parts = append(parts, r.T("awaits repair; no error was recorded"))
	case s.Repair:
		parts = append(parts, r.T("awaits repair: %s", r.english(s.Note)))
	case s.Note != "":
		parts = append(parts, r.english(s.Note))
	}
	if s.HoldsUp > 0 {
		parts = append(parts, r.T("holds up %d item|holds up %d items", s.HoldsUp))
	}
	if s.Held != nil {
		parts = append(parts, r.T("held by %s: %s", r.data(s.Held.Actor), r.data(s.Held.Reason)))
	}
	var names string
	for i, n := range s.Waits {
		if i > 0 {
			names += ", "
		}
		if names += r.data(graphview.Name(n)); graphview.Stopped(n) {
			names += " (" + r.term(n.State) + ")"
		}
	}
	if s.More > 0 {
		parts = append(parts, r.T("waits for %s and %d more", names, s.More))
	} else if names != "" {
		parts = append(parts, r.T("waits for %s", names))
	}
	return strings.Join(parts, "; ")
}

// measure says a measure with its name, unless its unit says that.
func (r *rich) measure(p registry.Progress) string {
	if name := r.unit(p.Title); p.Title != "" && p.Title != p.Unit {
		return name + ": " + wording.Progress(words{r}, p)
	}
	return wording.Progress(words{r}, p)
}
