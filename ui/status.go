package ui

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/holdfast/holdfast/registry"
)

// countLimit bounds what is counted for a page: more is shown as "500+".
const countLimit = 500

// statusPage is what the first page shows.
type statusPage struct {
	Queue   *registry.QueueStatus // nil: not known
	Counts  []stateCount
	Workers []registry.WorkerInfo
	Running []registry.WorkItem
	Failed  []registry.WorkItem // of late
	Text    string              // what was searched for
	Batches []batchRow
	Next    string
}

// stateCount is how many jobs are in a state.
type stateCount struct {
	State registry.State
	Count int64
	More  bool // there are more, which were not counted
}

// batchRow is a batch with its jobs added up.
type batchRow struct {
	registry.WorkItem
	Progress registry.BatchProgress
}

func (p *pages) status(r *http.Request) (page, error) {
	const shownRunning, shownFailed = 10, 10
	ctx := r.Context()
	s := statusPage{Text: r.URL.Query().Get("text")}
	running, err := p.jobs(ctx, registry.Running)
	if err != nil {
		return page{}, err
	}
	pending, err := p.jobs(ctx, registry.Pending)
	if err != nil {
		return page{}, err
	}
	failed, err := p.jobs(ctx, registry.Failed)
	if err != nil {
		return page{}, err
	}
	switch queue, err := p.registry.QueueStatus(ctx); {
	case err == nil:
		s.Queue = &queue
	case !errors.Is(err, errors.ErrUnsupported):
		return page{}, err
	}
	s.Counts = tally(running, pending, failed)
	s.Running = running.Rows[:min(shownRunning, len(running.Rows))]
	s.Failed = failed.Rows[:min(shownFailed, len(failed.Rows))]
	if s.Workers, err = p.registry.Workers(ctx); err != nil {
		return page{}, err
	}
	batches, err := p.registry.Items(ctx, registry.ItemQuery{
		Action: registry.Batch, Text: s.Text, After: r.URL.Query().Get("after"), Limit: 20,
	})
	if err != nil {
		return page{}, badCursor(r, err)
	}
	for _, it := range batches.Rows {
		progress, err := p.registry.BatchProgress(ctx, it.ID)
		if err != nil {
			return page{}, fmt.Errorf("add up batch %s: %w", it.ID, err)
		}
		s.Batches = append(s.Batches, batchRow{WorkItem: it, Progress: progress})
	}
	s.Next = nextPage(r, batches.Next)
	return page{Name: "status", Title: "Status", Section: "status", Live: true, Content: s}, nil
}

func (p *pages) jobs(ctx context.Context, status registry.Status) (registry.Page[registry.WorkItem], error) {
	return p.registry.Items(ctx, registry.ItemQuery{Action: registry.Ingest, Status: status, Limit: countLimit})
}

// tally counts jobs by state, in the order of first sight. A state may be in several lists: a job between two attempts
// at a stage is pending.
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
