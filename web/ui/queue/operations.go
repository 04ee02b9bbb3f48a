// Package queue serves the pages about the queue as a whole: operations, holds, and the search.
package queue

import (
	"context"
	"embed"
	"html/template"
	"net/http"
	"slices"
	"time"

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
	s.Add(files, template.FuncMap{"holdURL": holdURL, "releaseURL": page.ReleaseURL, "itemsURL": itemsURL, "stageTerm": stageTerm}, "operations", "operate", "holds", "releasehold", "releaseholds")
	s.Serve("GET /{$}", p.home)
	s.Get("/operations", p.operations)
	s.Get("/operations/act", p.askAct)
	s.Post("/operations/act", p.act)
	s.Post("/operations/limits", p.limit)
	s.Get("/holds", p.holds)
	s.Post("/holds", p.hold)
	s.Get("/holds/release", p.askRelease)
	s.Post("/holds/release", p.release)
	s.Get("/holds/release-all", p.askReleaseAll)
	s.Post("/holds/release-all", p.releaseAll)
}

// Bounds of the lists on the page.
const (
	shownRunning = 5
	shownWorkers = 100
	shownLimits  = 100
)

// operationsPage is the content of the operations page.
type operationsPage struct {
	Queue     registry.QueueStatus
	Oversees  bool // the viewer sees more than what may hold their own items
	Deposits  []stageRow
	Others    []stageRow
	Workers   []workerRow
	MoreWorks int // workers that are not listed
	Slots     int
	Busy      int
	Running   []registry.WorkItem
	Causes    page.Failures
	Limits    []registry.Limit
	Charts    *charts
	Holdings  *holdings
	Short     int64              // objects with fewer copies than the profile asks for
	Changing  []registry.Storage // storages that are filled or retired
	May       mayDo
}

// mayDo says which acts the viewer may ask.
type mayDo struct{ Hold, Drain, Accept, Limit bool }

// workerRow is a worker with the hold on it.
type workerRow struct {
	registry.WorkerInfo

	Slots, Busy int
	Stages      []stageLoad
	Hold        *registry.Hold
}

// stageLoad is what a worker does of a stage.
type stageLoad struct {
	Stage       registry.Stage
	Slots, Busy int
}

// home leads to the first page of the viewer: of depositors their deposits, of others the operations.
func (p pages) home(w http.ResponseWriter, r *http.Request) {
	to := "/operations"
	switch q := r.URL.Query(); {
	case q.Has("q"): // addresses of before
		to = "/items?" + q.Encode()
	case p.Caller(r.Context()).Role == registry.RoleDepositor && p.Has("/deposits"):
		to = "/deposits"
	}
	http.Redirect(w, r, to, http.StatusFound)
}

func (p pages) operations(r *http.Request) (page.Page, error) {
	ctx := r.Context()
	s := operationsPage{Oversees: p.May(ctx, "list-workers"), May: mayDo{
		Hold: p.May(ctx, "add-hold"), Drain: p.May(ctx, "drain"), Accept: p.May(ctx, "set-accepting"), Limit: p.May(ctx, "set-limit"),
	}}
	var err error
	if s.Queue, err = p.API.QueueStatus(ctx); err != nil {
		return page.Page{}, err
	}
	running, err := p.API.Items(ctx, registry.ItemQuery{Action: registry.Ingest, Status: registry.Running, Limit: shownRunning})
	if err != nil {
		return page.Page{}, err
	}
	s.Running = running.Rows
	// A batch with failed jobs is not a cause of its own: its jobs are shown.
	s.Causes, err = p.FailuresOf(ctx, registry.Query{Terms: []registry.Term{{Field: "class", Value: string(registry.JobsFault), Not: true}}})
	if err != nil {
		return page.Page{}, err
	}
	if s.Oversees {
		if err := p.oversee(r, &s); err != nil {
			return page.Page{}, err
		}
	}
	return page.Page{Name: "operations", Title: p.Texts(r).T("Operations"), Section: "operations", Live: true, Alike: true, Content: s}, nil
}

// oversee adds what depositors do not see.
func (p pages) oversee(r *http.Request, s *operationsPage) error {
	ctx := r.Context()
	span := registry.ThroughputSpan(r.URL.Query().Get("span"))
	if span == "" {
		span = registry.ThroughputHour
	}
	if !slices.Contains(registry.ThroughputSpans(), span) {
		return page.Invalid("span in the address is none of hour, day and month")
	}
	t, err := p.API.Throughput(ctx, span)
	if err != nil {
		return err
	}
	drawn := draw(t)
	s.Charts = &drawn
	rates := map[registry.Stage]int64{}
	for _, done := range t.Stages {
		rates[done.Stage] = done.Done * int64(perHour)
	}
	if t.NotedTo.Unix() <= 0 {
		rates = nil
	}
	s.Deposits, s.Others = stageRows(s.Queue, rates)
	if s.Limits, err = p.API.Limits(ctx); err != nil {
		return err
	}
	s.Limits = s.Limits[:min(len(s.Limits), shownLimits)]
	kept, err := p.API.Holdings(ctx)
	if err != nil {
		return err
	}
	s.Holdings = holdingsOf(kept)
	report, err := p.API.Storages(ctx)
	if err != nil {
		return err
	}
	s.Short = report.Short()
	for _, storage := range report.Storages {
		if storage.Changing() {
			s.Changing = append(s.Changing, storage)
		}
	}
	return p.addWorkers(ctx, s)
}

// perHour is how often the time of recent steps fits into an hour.
const perHour = time.Hour / registry.ThroughputRecent

func (p pages) addWorkers(ctx context.Context, s *operationsPage) error {
	workers, err := p.API.Workers(ctx)
	if err != nil {
		return err
	}
	holds, err := p.API.Holds(ctx)
	if err != nil {
		return err
	}
	for _, w := range workers {
		row := workerRow{WorkerInfo: w}
		for stage, slots := range w.Capacity {
			load := stageLoad{stage, slots, w.Running[stage]}
			row.Slots, row.Busy = row.Slots+load.Slots, row.Busy+load.Busy
			row.Stages = append(row.Stages, load)
		}
		slices.SortFunc(row.Stages, func(a, b stageLoad) int { return byRoute(a.Stage, b.Stage) })
		if i := slices.IndexFunc(holds, func(h registry.Hold) bool { return h.CoversWorker(w.ID) }); i >= 0 {
			row.Hold = &holds[i]
		}
		s.Slots, s.Busy = s.Slots+row.Slots, s.Busy+row.Busy
		if len(s.Workers) < shownWorkers {
			s.Workers = append(s.Workers, row)
		} else {
			s.MoreWorks++
		}
	}
	return nil
}

// byRoute compares stages by their place on the route; functions come last.
func byRoute(a, b registry.Stage) int {
	place := func(s registry.Stage) int {
		if i := slices.Index(registry.Stages(), s); i >= 0 {
			return i
		}
		return len(registry.Stages())
	}
	if d := place(a) - place(b); d != 0 {
		return d
	}
	if a < b {
		return -1
	}
	return 1
}
