// Package registrybench fills databases for measurements, and measures a Registry: lists, filters,
// searches and counts on what the database holds, and claims and settles.
package registrybench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"syscall"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/query"
)

// Lists is what measurements of lists and counts need of a Registry.
type Lists interface {
	registry.ItemReader
	registry.Queue
	registry.ReportReader
}

// Figure is how long calls of one kind take.
type Figure struct {
	Name  string        `json:"name"`
	Query string        `json:"query,omitempty"`
	Rows  int           `json:"rows"` // -1: the Registry refused the query as too expensive
	P50   time.Duration `json:"p50_ns"`
	P95   time.Duration `json:"p95_ns"`
	Max   time.Duration `json:"max_ns"`
	// CPU is the average processor time of this process for a call. On a busy machine it says more
	// than the elapsed time.
	CPU time.Duration `json:"cpu_ns"`
}

// listQueries are the queries to measure: each field, what operators ask for, words that are
// common, rare or absent, and rare combinations of common parts.
func listQueries() []string {
	return []string{
		"", "action:batch", "action:batch state:failed", "state:failed", "state:completed", "state:pending", "state:processing", "state:downloading", "state:held", "-state:completed",
		"status:running", "stage:download", "stage:download state:failed", "collection:collection_00", "collection:collection_23",
		"collection:collection_23 state:failed", "collection:collection_23 state:pending", "collection:collection_23 action:batch", "class:content", "class:jobs", "class:system collection:collection_23",
		"by:\"depositor 7\"", "by:\"depositor 7\" state:failed", "retries:>0", "priority:<6", "older:30d", "older:100d state:failed", "newer:1h", "held:yes", "held:no",
		"timeout", "thesis", "\"host-4711\"", "nowherenowhere", "error:timeout", "error:timeout state:failed", "error:timeout collection:collection_23 older:2h", "error:timeout state:completed",
		"error:timeout state:cancelled", "error:timeout collection:collection_00 state:completed", "thesis glaciers", "thesis state:failed", "thesis collection:collection_23 state:pending", "manuscript", "manuscript collection:collection_00", "manuscript state:failed", "name:0471", "-thesis state:failed", "pd collection:collection_23", "x4 stage:download",
	}
}

// Queries measures the first page of each list, runs times. It asks for all lists in turn, so that
// runs of one query are far apart.
func Queries(ctx context.Context, s Lists, runs int) ([]Figure, error) {
	return measureQueries(ctx, listQueries(), runs, func(ctx context.Context, _ string, q registry.Query) (int, error) {
		page, err := s.Items(ctx, registry.ItemQuery{Match: q})
		return len(page.Rows), err
	})
}

// Pages measures the tenth page of some lists.
func Pages(ctx context.Context, s Lists, runs int) ([]Figure, error) {
	after := map[string]string{}
	texts := []string{"", "state:failed", "collection:collection_00", "thesis", "error:timeout"}
	for _, text := range texts {
		q, err := query.Parse(text)
		if err != nil {
			return nil, err
		}
		for range 9 {
			page, err := s.Items(ctx, registry.ItemQuery{Match: q, After: after[text], Limit: 500})
			if err != nil {
				return nil, err
			}
			after[text] = page.Next
		}
	}
	return measureQueries(ctx, texts, runs, func(ctx context.Context, text string, q registry.Query) (int, error) {
		page, err := s.Items(ctx, registry.ItemQuery{Match: q, After: after[text]})
		return len(page.Rows), err
	})
}

// Counts measures counts by state.
func Counts(ctx context.Context, s Lists, runs int) ([]Figure, error) {
	texts := []string{"", "state:failed", "collection:collection_23", "state:failed error:timeout", "state:pending,held", "thesis"}
	return measureQueries(ctx, texts, runs, func(ctx context.Context, _ string, q registry.Query) (int, error) {
		counts, err := s.CountItems(ctx, registry.ItemQuery{Match: q})
		n := 0
		for _, c := range counts {
			n += int(c)
		}
		return n, err
	})
}

// Failures measures the groups of failed items by cause.
func Failures(ctx context.Context, s Lists, runs int) ([]Figure, error) {
	texts := []string{"", "collection:collection_23", "class:content", "stage:download", "error:timeout", "by:\"depositor 7\""}
	batches, err := s.Failures(ctx, registry.ItemQuery{Action: registry.Ingest, Limit: 1})
	if err != nil {
		return nil, err
	}
	for _, g := range batches.Rows {
		it, err := s.Item(ctx, g.ItemID)
		if err != nil {
			return nil, err
		}
		texts = append(texts, "batch:"+it.ParentID, "cause:"+g.Fingerprint)
	}
	return measureQueries(ctx, texts, runs, func(ctx context.Context, _ string, q registry.Query) (int, error) {
		page, err := s.Failures(ctx, registry.ItemQuery{Match: q})
		return len(page.Rows), err
	})
}

// Glances measures what pages show besides lists: the state of the whole queue, and why items wait
// that are ready, not due or blocked.
func Glances(ctx context.Context, s Lists, runs int) ([]Figure, error) {
	ids := map[string]string{}
	for _, text := range []string{"state:pending stage:estimate", "stage:download status:pending"} {
		q, err := query.Parse(text)
		if err != nil {
			return nil, err
		}
		page, err := s.Items(ctx, registry.ItemQuery{Match: q, Limit: 100})
		if err != nil {
			return nil, err
		}
		for _, it := range page.Rows {
			why, err := s.Why(ctx, it.ID)
			if err != nil {
				return nil, err
			}
			ids["why "+string(it.Stage)+", "+string(why.Reason)] = it.ID
		}
	}
	names := append([]string{"queue status"}, slices.Sorted(maps.Keys(ids))...)
	return measure(ctx, names, runs, func(ctx context.Context, name string) (int, error) {
		if id, ok := ids[name]; ok {
			_, err := s.Why(ctx, id)
			return 1, err
		}
		q, err := s.QueueStatus(ctx)
		n := 0
		for _, stage := range q.Stages {
			n += int(stage.Ready + stage.Waiting + stage.Held)
		}
		return n, err
	})
}

// Objects measures lists and searches of objects, and one object with its files. There must be some.
func Objects(ctx context.Context, s interface {
	registry.Catalog
	registry.Inventory
}, runs int,
) ([]Figure, error) {
	first, err := s.Objects(ctx, registry.ObjectQuery{Limit: 500})
	if err != nil {
		return nil, err
	}
	if len(first.Rows) == 0 {
		return nil, errors.New("there are no objects")
	}
	one := first.Rows[len(first.Rows)-1]
	lists := map[string]registry.ObjectQuery{
		"all": {}, "collection": {Collection: one.Collection}, "after 500": {After: first.Next}, "local id": {LocalID: one.LocalIDs[0]},
		"common text": {Text: "glass plates"}, "rare text": {Text: one.Title}, "absent text": {Text: "nowherenowhere"},
	}
	names := append(slices.Sorted(maps.Keys(lists)), "one object", "its files")
	return measure(ctx, names, runs, func(ctx context.Context, name string) (int, error) {
		switch name {
		case "one object":
			_, err := s.Object(ctx, one.ID)
			return 1, err
		case "its files":
			files, err := s.Files(ctx, one.ID, 0, "", 0)
			return len(files), err
		}
		page, err := s.Objects(ctx, lists[name])
		return len(page.Rows), err
	})
}

func measureQueries(ctx context.Context, texts []string, runs int, ask func(context.Context, string, registry.Query) (int, error)) ([]Figure, error) {
	return measure(ctx, texts, runs, func(ctx context.Context, text string) (int, error) {
		q, err := query.Parse(text)
		if err != nil {
			return 0, err
		}
		return ask(ctx, text, q)
	})
}

func measure(ctx context.Context, texts []string, runs int, ask func(context.Context, string) (int, error)) ([]Figure, error) {
	took := make([][]time.Duration, len(texts))
	rows := make([]int, len(texts))
	used := make([]time.Duration, len(texts))
	for range runs {
		for i, text := range texts {
			before, begun := cpu(), time.Now()
			n, err := ask(ctx, text)
			var refused *registry.QueryError
			if errors.As(err, &refused) {
				n, err = -1, nil // a refusal takes time as well
			}
			if err != nil {
				return nil, fmt.Errorf("query %q: %w", text, err)
			}
			used[i] += cpu() - before
			took[i], rows[i] = append(took[i], time.Since(begun)), n
		}
	}
	figures := make([]Figure, len(texts))
	for i, text := range texts {
		figures[i] = figure("query", took[i])
		figures[i].Query, figures[i].Rows, figures[i].CPU = text, rows[i], used[i]/time.Duration(runs)
	}
	return figures, nil
}

// figure sums up the times of runs.
func figure(name string, took []time.Duration) Figure {
	slices.Sort(took)
	at := func(share float64) time.Duration { return took[min(int(share*float64(len(took))), len(took)-1)] }
	return Figure{Name: name, Rows: len(took), P50: at(0.5), P95: at(0.95), Max: took[len(took)-1]}
}

// cpu returns the processor time of this process so far, or 0 if the system does not say.
func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
