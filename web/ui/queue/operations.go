// Package queue serves the pages about the queue as a whole: what runs and waits, and holds.
package queue

import (
	"context"
	"embed"
	"html/template"
	"net/http"

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
	s.Add(files, template.FuncMap{"holdURL": holdURL}, "operations", "items", "holds")
	s.Serve("GET /{$}", p.home)
	s.Get("/operations", p.operations)
	s.Get("/items", p.items)
	s.Get("/holds", p.holds)
	s.Post("/holds/release", p.release)
}

// countLimit is the largest number of jobs that the page counts; more are shown as "500+".
const countLimit = 500

// operationsPage is the content of the operations page.
type operationsPage struct {
	Queue   *registry.QueueStatus // nil: unknown
	Counts  []stateCount
	Workers []registry.WorkerInfo
	Running []registry.WorkItem
	Failed  []registry.WorkItem // the latest
	Causes  page.Failures
}

// stateCount is the number of jobs in a state.
type stateCount struct {
	State registry.State
	Count int64
	More  bool // more jobs exist than were counted
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
	const shownRunning, shownFailed = 10, 10
	ctx := r.Context()
	var s operationsPage
	running, err := p.jobs(ctx, registry.Running)
	if err != nil {
		return page.Page{}, err
	}
	pending, err := p.jobs(ctx, registry.Pending)
	if err != nil {
		return page.Page{}, err
	}
	failed, err := p.jobs(ctx, registry.Failed)
	if err != nil {
		return page.Page{}, err
	}
	queue, err := p.API.QueueStatus(ctx)
	if err != nil {
		return page.Page{}, err
	}
	s.Queue = &queue
	s.Counts = tally(running, pending, failed)
	s.Running = running.Rows[:min(shownRunning, len(running.Rows))]
	s.Failed = failed.Rows[:min(shownFailed, len(failed.Rows))]
	// A batch with failed jobs is not a cause of its own: its jobs are shown.
	s.Causes, err = p.FailuresOf(ctx, registry.Query{Terms: []registry.Term{{Field: "class", Value: string(registry.JobsFault), Not: true}}})
	if err != nil {
		return page.Page{}, err
	}
	if p.May(ctx, "list-workers") {
		if s.Workers, err = p.API.Workers(ctx); err != nil {
			return page.Page{}, err
		}
	}
	return page.Page{Name: "operations", Title: p.Texts(r).T("Operations"), Section: "operations", Live: true, Content: s}, nil
}

func (p pages) jobs(ctx context.Context, status registry.Status) (registry.Page[registry.WorkItem], error) {
	return p.API.Items(ctx, registry.ItemQuery{Action: registry.Ingest, Status: status, Limit: countLimit})
}

// tally counts jobs by state, in the order in which the states occur. A state may occur in several
// lists: a job between two attempts at a stage is pending.
func tally(lists ...registry.Page[registry.WorkItem]) (counts []stateCount) {
	at := map[registry.State]int{}
	for _, list := range lists {
		for _, it := range list.Rows {
			i, ok := at[it.State]
			if !ok {
				i = len(counts)
				at[it.State] = i
				counts = append(counts, stateCount{State: it.State})
			}
			counts[i].Count++
			counts[i].More = counts[i].More || list.Next != ""
		}
	}
	return counts
}
