package searchtest

import (
	"slices"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func listTests() tests {
	return tests{
		"items_newest_first":                itemsNewestFirst,
		"items_filtered":                    itemsFiltered,
		"pages_are_stable_while_items_come": pagesStable,
		"a_bad_cursor_is_refused":           badCursor,
		"events_are_a_feed":                 eventsFeed,
	}
}

func ids(items []registry.WorkItem) []string {
	var out []string
	for _, it := range items {
		out = append(out, it.ID)
	}
	return out
}

func itemsNewestFirst(f *fixture) {
	var want []string
	for i := range 7 {
		if i%3 == 0 {
			f.Clock.Pass(time.Second) // some at the same moment
		}
		want = append([]string{f.Submit()}, want...)
	}
	for _, limit := range []int{0, 1, 2, 3, 7, 8, 1000} {
		if got := ids(f.All(registry.ItemQuery{Limit: limit})); !slices.Equal(got, want) {
			f.Errorf("limit %d: %v, want %v", limit, got, want)
		}
	}
	page, err := f.Store.Items(f.Context(), registry.ItemQuery{Limit: 7})
	f.Must(err)
	if page.Next != "" {
		f.Error("the last page names another one")
	}
	batch, jobs := f.Batch(5)
	if got := ids(f.All(registry.ItemQuery{ParentID: batch, Limit: 2})); !slices.Equal(got, jobs) {
		f.Errorf("jobs %v, want row order %v", got, jobs)
	}
}

func itemsFiltered(f *fixture) {
	f.Collection("other", registry.Profile{})
	apart := f.Submit(func(s *registry.Submission) { s.Collection, s.Name = "other", "100%_sure" })
	batch, jobs := f.Batch(3)
	f.FailItem(jobs[1], registry.ContentFault)
	f.Bring(jobs[2], registry.Download)
	for _, tt := range []struct {
		name string
		q    registry.ItemQuery
		want []string
	}{
		{"batches", registry.ItemQuery{Action: registry.Batch}, []string{batch, apart}},
		{"jobs", registry.ItemQuery{Action: registry.Ingest}, []string{jobs[2], jobs[1], jobs[0]}},
		{"collection", registry.ItemQuery{Collection: "other"}, []string{apart}},
		{"failed", registry.ItemQuery{Status: registry.Failed}, jobs[1:2]},
		{"stage", registry.ItemQuery{Stage: registry.Download}, jobs[2:]},
		{"failed jobs of a batch", registry.ItemQuery{ParentID: batch, Status: registry.Failed}, jobs[1:2]},
		{"name", registry.ItemQuery{Text: "JOB-3"}, jobs[2:]},
		{"note", registry.ItemQuery{Text: "broken"}, jobs[1:2]},
		{"no pattern", registry.ItemQuery{Text: "1%s"}, nil},
		{"as it is", registry.ItemQuery{Text: "%_s"}, []string{apart}},
		{"nothing", registry.ItemQuery{ParentID: "unknown"}, nil},
		{"together", registry.ItemQuery{Action: registry.Ingest, Collection: registrytest.Mnemonic, Status: registry.Pending, Stage: registry.Estimate, Text: "job"}, jobs[:1]},
	} {
		for _, limit := range []int{0, 1} {
			tt.q.Limit = limit
			if got := ids(f.All(tt.q)); !slices.Equal(got, tt.want) {
				f.Errorf("%s: %v, want %v", tt.name, got, tt.want)
			}
		}
	}
}

func pagesStable(f *fixture) {
	var want []string
	for range 4 {
		want = append([]string{f.Submit()}, want...)
	}
	page, err := f.Store.Items(f.Context(), registry.ItemQuery{Limit: 2})
	f.Must(err)
	f.Submit()
	f.FailItem(want[3], registry.ContentFault)
	rest, err := f.Store.Items(f.Context(), registry.ItemQuery{Limit: 2, After: page.Next})
	f.Must(err)
	if got := ids(append(page.Rows, rest.Rows...)); !slices.Equal(got, want) {
		f.Errorf("pages %v, want %v", got, want)
	}
}

func badCursor(f *fixture) {
	for _, after := range []string{"%", "AAAA", "nonsense"} {
		if _, err := f.Store.Items(f.Context(), registry.ItemQuery{After: after}); err == nil {
			f.Errorf("cursor %q was taken", after)
		}
	}
}

func eventsFeed(f *fixture) {
	a, b := f.Submit(), f.Submit()
	f.FailItem(b, registry.ContentFault)
	f.FailItem(a, registry.ContentFault)
	var feed []registry.Event
	for after := int64(0); ; {
		page, err := f.Store.Events(f.Context(), "", after, 2)
		f.Must(err)
		feed = append(feed, page...)
		if len(page) < 2 {
			break
		}
		after = page[1].Seq
	}
	counts := map[string]int{}
	for i, e := range feed {
		counts[e.ItemID]++
		if i > 0 && e.Seq <= feed[i-1].Seq {
			f.Errorf("event %d has cursor %d after %d", i, e.Seq, feed[i-1].Seq)
		}
	}
	// takeItem(b) claimed and released a on its way.
	if counts[b] != 3 || counts[a] != 5 || counts[registrytest.Mnemonic] != 1 {
		f.Errorf("events %v", counts)
	}
}
