package ui

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// Schedules are what the page of schedules shows and does on behalf of the caller. The context of
// the request identifies the caller.
type Schedules interface {
	// MaySee reports whether the caller may list schedules.
	MaySee(ctx context.Context) bool
	// MayAct reports whether the caller may run, pause and resume them. Others see no buttons.
	MayAct(ctx context.Context) bool
	// List returns all schedules by name.
	List(ctx context.Context) ([]registry.Schedule, error)
	// Pause is PauseSchedule of registry.Scheduling.
	Pause(ctx context.Context, name, reason string) error
	// Resume is ResumeSchedule of registry.Scheduling.
	Resume(ctx context.Context, name string) error
	// Run is RunSchedule of registry.Scheduling.
	Run(ctx context.Context, name, idempotencyKey string) (registry.Firing, error)
}

// schedulesPage is the content of the list of schedules.
type schedulesPage struct {
	Rows   []registry.Schedule
	MayAct bool
	Key    string // of runs from this page: a form that is sent twice runs the schedule once
}

func (p *pages) listSchedules(r *http.Request) (page, error) {
	if !p.schedules.MaySee(r.Context()) {
		return page{}, errForbidden
	}
	rows, err := p.schedules.List(r.Context())
	if err != nil {
		return page{}, err
	}
	content := schedulesPage{Rows: rows, MayAct: p.schedules.MayAct(r.Context()), Key: rand.Text()}
	return page{Name: "schedules", Title: "Schedules", Section: "schedules", Content: content}, nil
}

// actOnSchedule runs, pauses or resumes a schedule. It redirects to the task that was submitted, or
// to the list.
func (p *pages) actOnSchedule(w http.ResponseWriter, r *http.Request) {
	to, err := p.scheduleActed(r)
	if err != nil {
		p.fail(w, r, err)
		return
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

func (p *pages) scheduleActed(r *http.Request) (to string, err error) {
	ctx := r.Context()
	if !p.schedules.MayAct(ctx) {
		return "", errForbidden
	}
	if err := r.ParseForm(); err != nil {
		return "", fmt.Errorf("%w: the form could not be read", errBadQuery)
	}
	name, act := r.PostForm.Get("name"), r.PostForm.Get("act")
	to = "/schedules"
	switch act {
	case "pause":
		reason := r.PostForm.Get("reason")
		if strings.TrimSpace(reason) == "" {
			return "", fmt.Errorf("%w: a pause needs a reason", errBadQuery)
		}
		err = p.schedules.Pause(ctx, name, reason)
	case "resume":
		err = p.schedules.Resume(ctx, name)
	case "run":
		var f registry.Firing
		if f, err = p.schedules.Run(ctx, name, r.PostForm.Get("key")); err == nil && f.ItemID != "" {
			to = "/items/" + url.PathEscape(f.ItemID)
		}
	default:
		return "", fmt.Errorf("%w: unknown act %.50q", errBadQuery, act)
	}
	if err != nil {
		return "", refusedRun(err)
	}
	p.log.InfoContext(ctx, "schedule acted on", "schedule", name, "act", act)
	return to, nil
}

// refusedRun turns errors that tell the caller what to do into errRefused.
func refusedRun(err error) error {
	var busy *registry.ScheduleBusy
	var unknown *registry.UnknownFunctionError
	var args *registry.ArgumentError
	if errors.As(err, &busy) || errors.As(err, &unknown) || errors.As(err, &args) || errors.Is(err, registry.ErrInvalid) {
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	return err
}

// inZone formats a time of a schedule in its own time zone, or in UTC if this process does not know
// that.
func inZone(t time.Time, zone string) string {
	at, err := time.LoadLocation(zone)
	if err != nil {
		at = time.UTC
	}
	return t.In(at).Format("Mon 2006-01-02 15:04 MST")
}
