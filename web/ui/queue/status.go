// Package queue serves the pages about the queue as a whole: what runs and waits, and holds.
package queue

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/query"
	"github.com/holdfast/holdfast/web/ui/page"
)

//go:embed page/*.html
var files embed.FS

// pages are the pages of this package.
type pages struct{ *page.Site }

// Add adds the pages to a site.
func Add(s *page.Site) {
	p := pages{s}
	s.Add(files, template.FuncMap{"holdURL": holdURL}, "status", "holds")
	s.Get("/{$}", p.status)
	s.Get("/holds", p.holds)
	s.Post("/holds/release", p.release)
}

// countLimit is the largest number of jobs that the status page counts; more are shown as "500+".
const countLimit = 500

// statusPage is the content of the status page.
type statusPage struct {
	Queue   *registry.QueueStatus // nil: unknown
	Counts  []stateCount
	Workers []registry.WorkerInfo
	Running []registry.WorkItem
	Failed  []registry.WorkItem // the latest
	Causes  page.Failures
	Query   string // of the search
	Wrong   string // the error of the query
	Fields  []query.Field
	Batches []batchRow
	Found   []registry.WorkItem
	Next    string
}

// stateCount is the number of jobs in a state.
type stateCount struct {
	State registry.State
	Count int64
	More  bool // more jobs exist than were counted
}

// batchRow is a batch with the progress of its jobs.
type batchRow struct {
	registry.WorkItem
	Progress registry.BatchProgress
}

func (p pages) status(r *http.Request) (page.Page, error) {
	const shownRunning, shownFailed = 10, 10
	ctx := r.Context()
	s := statusPage{Query: r.URL.Query().Get("q"), Fields: query.Fields()}
	match, err := query.Parse(s.Query)
	if err != nil {
		// The page shows the query again, with its error.
		s.Wrong = page.Sentence(err.Error())
	}
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
	if s.Wrong == "" {
		if err := p.search(r, match, &s); err != nil {
			return page.Page{}, err
		}
	}
	return page.Page{Name: "status", Title: p.Texts(r).T("Operations"), Section: "operations", Live: s.Query == "", Content: s}, nil
}

// search lists the items that match the query or, without a query, the batches.
func (p pages) search(r *http.Request, match registry.Query, s *statusPage) error {
	q := registry.ItemQuery{Match: match, After: r.URL.Query().Get("after"), Limit: 20}
	if s.Query == "" {
		q.Action = registry.Batch
	}
	list, err := p.API.Items(r.Context(), q)
	var tooMuch *registry.QueryError
	if errors.As(err, &tooMuch) {
		s.Wrong = tooMuch.Error()
		return nil
	}
	if err != nil {
		return err
	}
	s.Next = page.Next(r, list.Next)
	if s.Query != "" {
		s.Found = list.Rows
		return nil
	}
	for _, it := range list.Rows {
		progress, err := p.API.BatchProgress(r.Context(), it.ID)
		if err != nil {
			return fmt.Errorf("add up batch %s: %w", it.ID, err)
		}
		s.Batches = append(s.Batches, batchRow{WorkItem: it, Progress: progress})
	}
	return nil
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
