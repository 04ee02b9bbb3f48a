package function

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/page"
	"github.com/holdfast/holdfast/web/wire"
)

// schedulePage is the content of a schedule's page.
type schedulePage struct {
	registry.Schedule

	Firings []registry.Firing
	Older   string // address of older firings
	MayAct  bool
	Key     string // of a run from this page
}

// Acts are the acts of the page.
func (s schedulePage) Acts() scheduleActs { return scheduleActs{s.Schedule, s.Key, true} }

func (p pages) schedule(r *http.Request) (page.Page, error) {
	ctx, name := r.Context(), r.PathValue("name")
	s, err := p.API.Schedule(ctx, name)
	if err != nil {
		return page.Page{}, err
	}
	firings, err := p.API.Firings(ctx, name, r.URL.Query().Get("after"), 0)
	if err != nil {
		return page.Page{}, err
	}
	content := schedulePage{Schedule: s, Firings: firings.Rows, Older: page.Next(r, firings.Next), MayAct: p.May(ctx, "edit-schedule"), Key: page.NewKey()}
	return page.Page{Name: "schedule", Title: s.Name, Section: "schedules", Content: content}, nil
}

// scheduleForm is the form of a new or changed schedule.
type scheduleForm struct {
	Name      string
	New       bool
	Request   wire.ScheduleRequest
	Args      string // as typed
	Priority  string
	Jitter    string
	Functions []registry.Function
	Overlaps  []registry.Overlap
	CatchUps  []registry.CatchUp
	Tried     *registry.Schedule // as it would be; nil: it was not asked for
}

// Action is the address of the form.
func (f scheduleForm) Action() string {
	if f.New {
		return "/new/schedule"
	}
	return scheduleURL(f.Name) + "/edit"
}

// scheduleURL is the address of a schedule's page.
func scheduleURL(name string) string { return "/schedules/" + url.PathEscape(name) }

func (p pages) editSchedule(r *http.Request) (page.Page, error) {
	f := scheduleForm{Name: r.PathValue("name"), New: r.PathValue("name") == ""}
	if !p.May(r.Context(), "edit-schedule") {
		return page.Page{}, page.Forbidden()
	}
	if f.New {
		f.Request = wire.ScheduleRequest{Zone: r.URL.Query().Get("zone"), Overlap: registry.OverlapSkip, CatchUp: registry.CatchUpOnce}
		return p.scheduleForm(r, f)
	}
	s, err := p.API.Schedule(r.Context(), f.Name)
	if err != nil {
		return page.Page{}, err
	}
	f.Request = wire.ScheduleRequestOf(s)
	f.Args = string(f.Request.Task.Args)
	if n := f.Request.Task.Priority; n != nil {
		f.Priority = strconv.Itoa(*n)
	}
	if n := f.Request.JitterSeconds; n > 0 {
		f.Jitter = strconv.FormatInt(n, 10)
	}
	return p.scheduleForm(r, f)
}

func (p pages) scheduleForm(r *http.Request, f scheduleForm) (page.Page, error) {
	f.Overlaps, f.CatchUps = registry.Overlaps(), registry.CatchUps()
	title := p.Texts(r).T("New schedule")
	if !f.New {
		title = p.Texts(r).T("Edit the schedule") + ": " + f.Name
	}
	var err error
	f.Functions, err = p.API.Functions(r.Context())
	return page.Page{Name: "scheduleform", Title: title, Section: "schedules", Content: f}, err
}

// saveSchedule creates a schedule, or replaces the version of one that the form showed. A refusal shows
// the form again, and so does a dry run, with the next times.
func (p pages) saveSchedule(r *http.Request) (string, *page.Page, error) {
	field := func(name string) string { return strings.TrimSpace(r.PostForm.Get(name)) }
	f := scheduleForm{Name: r.PathValue("name"), Args: field("args"), Priority: field("priority"), Jitter: field("jitter")}
	if f.Name == "" {
		f.Name, f.New = field("name"), true
	}
	f.Request = wire.ScheduleRequest{
		Cron: field("cron"), Zone: field("zone"), Overlap: registry.Overlap(field("overlap")), CatchUp: registry.CatchUp(field("catch_up")),
		Task: wire.ScheduleTask{Function: field("function"), Title: field("title"), Subject: field("subject"), Collection: field("collection")},
	}
	faults := f.read(field("version"))
	if len(faults) > 0 {
		return "", nil, wire.NewProblem(http.StatusUnprocessableEntity, wire.CodeInvalid, "the schedule was not saved", faults...)
	}
	var saved registry.Schedule
	var err error
	try := r.PostForm.Get("do") == "try"
	if f.New {
		saved, err = p.API.AddSchedule(r.Context(), wire.NewScheduleRequest{Name: f.Name, ScheduleRequest: f.Request}, try)
	} else {
		saved, err = p.API.EditSchedule(r.Context(), f.Name, f.Request, try)
	}
	if err == nil && try {
		f.Tried = &saved
		again, err := p.scheduleForm(r, f)
		again.Status = http.StatusOK
		return "", &again, err
	}
	return scheduleURL(f.Name), nil, err
}

// read reads the fields that are no text.
func (f *scheduleForm) read(version string) (faults []wire.Fault) {
	fault := func(field, text string) {
		faults = append(faults, wire.Fault{Location: "body." + field, Message: fmt.Sprintf("%q is not a whole number", text[:min(len(text), 50)])})
	}
	var err error
	if version != "" {
		if f.Request.Version, err = strconv.ParseInt(version, 10, 64); err != nil {
			fault("version", version)
		}
	}
	if f.Jitter != "" {
		if f.Request.JitterSeconds, err = strconv.ParseInt(f.Jitter, 10, 64); err != nil {
			fault("jitter", f.Jitter)
		}
	}
	if f.Priority != "" {
		n, err := strconv.Atoi(f.Priority)
		if f.Request.Task.Priority = &n; err != nil {
			fault("priority", f.Priority)
		}
	}
	if f.Args != "" {
		if f.Request.Task.Args = json.RawMessage(f.Args); !json.Valid(f.Request.Task.Args) {
			faults = append(faults, wire.Fault{Location: "body.args", Message: "is not JSON; write text in quotes"})
			f.Request.Task.Args = nil
		}
	}
	return faults
}

// removeSchedule removes a schedule.
func (p pages) removeSchedule(r *http.Request) (string, *page.Page, error) {
	err := p.API.RemoveSchedule(r.Context(), r.PathValue("name"))
	if errors.Is(err, registry.ErrNotFound) {
		err = nil
	}
	return "/schedules", nil, err
}
