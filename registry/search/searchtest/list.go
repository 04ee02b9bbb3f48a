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
		"pages_back_and_forth":              pagesBack,
		"reasons_of_many":                   reasonsOfMany,
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

// pagesBack reads lists of each order to their end and back, in both orders of time.
func pagesBack(f *fixture) {
	for i := range 9 {
		if i%4 == 0 {
			f.Clock.Pass(time.Second) // some at the same moment
		}
		f.Submit(func(s *registry.Submission) { s.Name = "glass plate" })
	}
	batch, _ := f.Batch(5)
	for name, q := range map[string]registry.ItemQuery{
		"all": {}, "a batch": {ParentID: batch}, "a state": {Match: registrytest.Match("state:pending")}, "some text": {Match: registrytest.Match(":plate")},
		"text of an action": {Match: registrytest.Match("action:batch", ":glass")}, "some": {Match: registrytest.Match("action:batch")},
	} {
		q.Limit = 100
		whole, err := f.Store.Items(f.Context(), q)
		f.Must(err)
		want := ids(whole.Rows)
		if len(want) == 0 || whole.Prev != "" || whole.Next != "" {
			f.Fatalf("%s: %d rows, %q, %q", name, len(want), whole.Prev, whole.Next)
		}
		for _, q.Oldest = range []bool{false, true} {
			for _, q.Limit = range []int{1, 2, 3, 100} {
				q.After, q.Before = "", ""
				var there, back []string
				page := registry.Page[registry.WorkItem]{Next: "first"}
				for page.Next != "" {
					page, err = f.Store.Items(f.Context(), q)
					f.Must(err)
					if (page.Prev == "") != (q.After == "") {
						f.Errorf("%s: the page after %q has the previous one %q", name, q.After, page.Prev)
					}
					there, q.After = append(there, ids(page.Rows)...), page.Next
				}
				back = ids(page.Rows)
				for q.After = ""; page.Prev != ""; {
					q.Before = page.Prev
					page, err = f.Store.Items(f.Context(), q)
					f.Must(err)
					if page.Next == "" {
						f.Errorf("%s: the page before %q has no next one", name, q.Before)
					}
					back = append(ids(page.Rows), back...)
				}
				if !slices.Equal(there, want) || !slices.Equal(back, want) {
					f.Errorf("%s, oldest %v, limit %d:\nforth %v\n back %v\n want %v", name, q.Oldest, q.Limit, there, back, want)
				}
			}
			slices.Reverse(want)
		}
	}
	_, err := f.Store.Items(f.Context(), registry.ItemQuery{After: "x", Before: "y"})
	f.Is(err, registry.ErrInvalid)
	_, err = f.Store.Items(f.Context(), registry.ItemQuery{Before: "nonsense"})
	f.Is(err, registry.ErrNotFound)
}

// reasonsOfMany: the phrases of a list, and that they agree with what Why says of each item.
func reasonsOfMany(f *fixture) {
	batch, jobs := f.Batch(4)
	f.Hold(registry.HoldItem, jobs[0])
	f.TakeItem(jobs[1])
	f.FailItem(jobs[2], registry.ContentFault)
	f.Settle(registry.Settlement{Lease: f.TakeItem(jobs[3]).Lease, Outcome: registry.OutcomeRetry, Error: "connection reset", Delay: time.Minute})
	_, nodes := f.Prepare("", registry.Node{Key: "a", Submission: registrytest.Submission()})
	asked := []string{nodes["a"], jobs[3], jobs[2], batch, jobs[1], "nothing", jobs[0]}
	got, err := f.Store.WhyEach(f.Context(), registry.ReasonQuery{IDs: asked})
	f.Must(err)
	said := map[string]registry.Why{}
	for _, w := range got {
		said[w.ItemID] = w
		f.stated(w)
		if one, err := f.Store.Why(f.Context(), w.ItemID); err != nil || one.Reason != w.Reason || w.Sentence == "" {
			f.Errorf("%+v, but %+v, %v", w, one, err)
		}
	}
	if len(got) != 5 || got[0].ItemID != nodes["a"] || got[4].ItemID != jobs[0] {
		f.Errorf("reasons %+v", got)
	}
	for id, word := range map[string]string{jobs[0]: "held by", jobs[1]: "running on", jobs[3]: "connection reset", batch: "waits for 3 items", nodes["a"]: "not sealed"} {
		f.Says(said[id].Sentence, word)
	}
	if until := said[jobs[3]].Until; until == nil || !until.Equal(f.Item(jobs[3]).RunAt) {
		f.Errorf("waits until %v", until)
	}
	none, err := f.Store.WhyEach(f.Context(), registry.ReasonQuery{IDs: asked, Within: []string{"other"}})
	if err != nil || len(none) != 0 {
		f.Errorf("in no collection: %+v, %v", none, err)
	}
	_, err = f.Store.WhyEach(f.Context(), registry.ReasonQuery{IDs: make([]string, registry.MostReasons+1)})
	f.Is(err, registry.ErrInvalid)
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
