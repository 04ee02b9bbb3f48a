// Package ui serves the HTML pages: what runs, what failed and why, what waits and why, and what is
// preserved. An item's page has a button for each act that the item allows and the viewer may ask
// for.
//
// A page shows the Registry's present state. Text from depositors (names, notes, titles) is always
// escaped. A page needs no script, no other host and no colour.
package ui

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/webserver"
)

//go:embed page/*.html
var pageFiles embed.FS

//go:embed static/style.css
var style []byte

// Registry is what the pages read.
type Registry interface {
	registry.ItemReader
	registry.AttemptReader
	registry.Queue
	registry.Graphs
	registry.ReportReader
	registry.ReportLister
	registry.Inventory
	registry.Catalog
	registry.DeliveryReader
	registry.StepReader
	registry.Submitting
	// FeedEnd is as in registry.Feeds.
	FeedEnd(ctx context.Context) (int64, error)
}

// Options configures the pages. Registry and Log must be set.
type Options struct {
	Registry  Registry
	Forms     Forms     // nil: no buttons
	Account   Account   // nil: pages show no user
	Uploads   Uploads   // nil: no page of uploads
	Schedules Schedules // nil: no page of schedules
	Processes Processes // nil: no pages of processes
	Log       *slog.Logger
	Version   string           // of the program, shown in the footer
	Now       func() time.Time // nil: time.Now
}

// pages holds the handlers' state. It does not change after New.
type pages struct {
	registry  Registry
	forms     Forms
	account   Account
	uploads   Uploads
	schedules Schedules
	processes Processes
	log       *slog.Logger
	version   string
	now       func() time.Time
	templates map[string]*template.Template
}

// New returns the handler of all pages. The caller must decide who may see them. Errors are
// programming errors.
func New(o Options) (http.Handler, error) {
	if o.Registry == nil || o.Log == nil {
		return nil, errors.New("ui: Registry and Log must be set")
	}
	p := &pages{registry: o.Registry, forms: o.Forms, account: o.Account, uploads: o.Uploads, schedules: o.Schedules, processes: o.Processes, log: o.Log, version: o.Version, now: o.Now, templates: map[string]*template.Template{}}
	if p.now == nil {
		p.now = time.Now
	}
	for _, name := range []string{"status", "batch", "item", "graph", "objects", "object", "act", "requeue", "holds", "deletions", "decision", "sessions", "uploads", "upload", "schedules", "processes", "process", "problem"} {
		t, err := template.New("layout.html").Funcs(p.funcs()).ParseFS(pageFiles, "page/layout.html", "page/part.html", "page/"+name+".html")
		if err != nil {
			return nil, fmt.Errorf("parse page %s: %w", name, err)
		}
		p.templates[name] = t
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", p.show(p.status))
	mux.HandleFunc("GET /batches/{id}", p.show(p.batch))
	mux.HandleFunc("GET /items/{id}", p.show(p.item))
	mux.HandleFunc("GET /graphs/{id}", p.show(p.graph))
	mux.HandleFunc("GET /items/{id}/graph", p.show(p.around))
	mux.HandleFunc("GET /items/{id}/acts", p.show(p.askAct))
	mux.HandleFunc("POST /items/{id}/acts", p.act)
	mux.HandleFunc("GET /failures/requeue", p.show(p.askRequeue))
	mux.HandleFunc("POST /failures/requeue", p.requeue)
	mux.HandleFunc("GET /holds", p.show(p.holds))
	mux.HandleFunc("POST /holds/release", p.release)
	mux.HandleFunc("GET /objects", p.show(p.objects))
	mux.HandleFunc("GET /objects/{id...}", p.show(p.object))
	mux.HandleFunc("GET /deletions", p.show(p.deletions))
	mux.HandleFunc("GET /deletions/{id...}", p.show(p.askDecision))
	mux.HandleFunc("POST /deletions/{id...}", p.decide)
	if p.account != nil {
		mux.HandleFunc("GET /sessions", p.show(p.sessions))
		mux.HandleFunc("POST /sessions/end", p.endSession)
	}
	if p.uploads != nil {
		mux.HandleFunc("GET /uploads", p.show(p.listUploads))
		mux.HandleFunc("GET /uploads/{id}", p.show(p.askRemoval))
		mux.HandleFunc("POST /uploads/{id}", p.removeUpload)
	}
	if p.schedules != nil {
		mux.HandleFunc("GET /schedules", p.show(p.listSchedules))
		mux.HandleFunc("POST /schedules/acts", p.actOnSchedule)
	}
	if p.processes != nil {
		mux.HandleFunc("GET /processes", p.show(p.listProcesses))
		mux.HandleFunc("GET /processes/{namespace}/{process}", p.show(p.process))
	}
	mux.HandleFunc("GET /static/style.css", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		w.Header().Set("Cache-Control", "max-age=300")
		_, _ = w.Write(style) // the reader has gone if this fails
	})
	mux.HandleFunc("/", p.show(func(r *http.Request) (page, error) {
		return page{}, fmt.Errorf("page %s: %w", webserver.Path(r), registry.ErrNotFound)
	}))
	return withSecurityHeaders(mux), nil
}

// withSecurityHeaders adds headers that forbid browsers everything the pages do not need.
func withSecurityHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy",
			"default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		next.ServeHTTP(w, r)
	})
}
