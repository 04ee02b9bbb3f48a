// Package function serves the pages of what programs outside Holdfast do: schedules and processes.
package function

import (
	"crypto/rand"
	"embed"
	"net/http"
	"net/url"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/page"
)

//go:embed page/*.html
var files embed.FS

// pages are the pages of this package.
type pages struct{ *page.Site }

// Add adds the pages to a site.
func Add(s *page.Site) {
	p := pages{s}
	s.Add(files, nil, "schedules", "processes", "process")
	s.Get("/schedules", p.listSchedules)
	s.Post("/schedules/acts", p.actOnSchedule)
	s.Get("/processes", p.listProcesses)
	s.Get("/processes/{namespace}/{process}", p.process)
}

// schedulesPage is the content of the list of schedules.
type schedulesPage struct {
	Rows   []registry.Schedule
	MayAct bool
	Key    string // of runs from this page: a form that is sent twice runs the schedule once
}

func (p pages) listSchedules(r *http.Request) (page.Page, error) {
	rows, err := p.API.Schedules(r.Context())
	if err != nil {
		return page.Page{}, err
	}
	content := schedulesPage{Rows: rows, MayAct: p.May(r.Context(), "pause-schedule"), Key: rand.Text()}
	return page.Page{Name: "schedules", Title: "Schedules", Section: "schedules", Content: content}, nil
}

// actOnSchedule runs, pauses or resumes a schedule. It leads to the task that was submitted, or to the
// list.
func (p pages) actOnSchedule(r *http.Request) (to string, again *page.Page, err error) {
	ctx, name := r.Context(), r.PostForm.Get("name")
	to = "/schedules"
	switch act := r.PostForm.Get("act"); act {
	case "pause":
		reason := strings.TrimSpace(r.PostForm.Get("reason"))
		if reason == "" {
			return "", nil, page.Invalid("a pause needs a reason")
		}
		_, err = p.API.PauseSchedule(ctx, name, reason)
	case "resume":
		_, err = p.API.ResumeSchedule(ctx, name)
	case "run":
		var f registry.Firing
		if f, err = p.API.RunSchedule(ctx, name, r.PostForm.Get("key")); err == nil && f.ItemID != "" {
			to = "/items/" + url.PathEscape(f.ItemID)
		}
	default:
		err = page.Invalid("unknown act %.50q", act)
	}
	return to, nil, err
}
