// Package function serves the pages of what programs outside Holdfast do: schedules and processes.
package function

import (
	"embed"
	"html/template"
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
	s.Add(files, template.FuncMap{"scheduleURL": scheduleURL}, "schedules", "schedule", "scheduleform", "processes", "process", "functions")
	s.Get("/schedules", p.listSchedules)
	s.Post("/schedules/acts", p.actOnSchedule)
	s.Get("/schedules/{name}", p.schedule)
	s.Get("/schedules/{name}/edit", p.editSchedule)
	s.Post("/schedules/{name}/edit", p.saveSchedule)
	s.Post("/schedules/{name}/remove", p.removeSchedule)
	s.Get("/new/schedule", p.editSchedule)
	s.Post("/new/schedule", p.saveSchedule)
	s.Get("/functions", p.functions)
	s.Get("/processes", p.listProcesses)
	s.Get("/processes/{namespace}/{process}", p.process)
	s.Post("/processes/{namespace}/{process}", p.actOnProcess)
}

// schedulesPage is the content of the list of schedules.
type schedulesPage struct {
	Rows   []registry.Schedule
	MayAct bool
	Key    string // of runs from this page: a form that is sent twice runs the schedule once
}

// scheduleActs are the buttons of a schedule.
type scheduleActs struct {
	registry.Schedule

	Key  string
	Page bool // they lead to the schedule's page, not to the list
}

// Acts are the acts of one of the schedules.
func (s schedulesPage) Acts(of registry.Schedule) scheduleActs { return scheduleActs{of, s.Key, false} }

func (p pages) listSchedules(r *http.Request) (page.Page, error) {
	rows, err := p.API.Schedules(r.Context())
	if err != nil {
		return page.Page{}, err
	}
	content := schedulesPage{Rows: rows, MayAct: p.May(r.Context(), "pause-schedule"), Key: page.NewKey()}
	return page.Page{Name: "schedules", Title: p.Texts(r).T("Schedules"), Section: "schedules", Content: content}, nil
}

// actOnSchedule runs, pauses or resumes a schedule. It leads to the task that was submitted, or to the
// list.
func (p pages) actOnSchedule(r *http.Request) (to string, again *page.Page, err error) {
	ctx, name := r.Context(), r.PostForm.Get("name")
	to = "/schedules"
	if r.PostForm.Get("at") == "page" {
		to = scheduleURL(name)
	}
	switch act := r.PostForm.Get("act"); act {
	case "pause":
		reason := strings.TrimSpace(r.PostForm.Get("reason"))
		if err := p.CheckReason(r, reason, "", true); err != nil {
			return "", nil, err
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
