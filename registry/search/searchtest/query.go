package searchtest

import (
	"maps"
	"slices"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func queryTests() tests {
	return tests{
		"terms_all_match":                      termsAllMatch,
		"states_as_people_see_them":            statesMatch,
		"ages_by_the_stores_clock":             agesMatch,
		"text_is_taken_as_it_is":               textAsItIs,
		"titles_are_found":                     titlesFound,
		"pages_go_on_where_they_ended":         queryPages,
		"a_term_that_nobody_parsed_is_refused": unparsedTerm,
	}
}

// wantMatch compares the list and the counts of a query with these items, in this order.
func (f *fixture) wantMatch(text string, want ...string) {
	f.Helper()
	q := registry.ItemQuery{Match: f.Parsed(text)}
	if got := ids(f.All(q)); !slices.Equal(got, want) {
		f.Errorf("%s: %v, want %v", text, got, want)
	}
	counts, err := f.Store.CountItems(f.Context(), q)
	f.Must(err)
	states := map[registry.State]int64{}
	for _, id := range want {
		states[f.Item(id).State]++
	}
	if !maps.Equal(counts, states) {
		f.Errorf("%s: counts %v, want %v", text, counts, states)
	}
	for _, most := range []int{1, len(want), len(want) + 1} {
		if q.Most = most; most == 0 {
			continue
		}
		counts, err := f.Store.CountItems(f.Context(), q)
		f.Must(err)
		var total int64
		for state, n := range counts {
			if total += n; n > states[state] {
				f.Errorf("%s: counts %v of at most %d, want no more than %v", text, counts, most, states)
			}
		}
		if total != int64(min(most, len(want))) {
			f.Errorf("%s: counts %v of at most %d, but %d match", text, counts, most, len(want))
		}
	}
}

func termsAllMatch(f *fixture) {
	f.Collection("other", registry.Profile{})
	apart := f.Submit(func(s *registry.Submission) { s.Collection, s.Name, s.Actor = "other", "Field notes", "alice" })
	batch, jobs := f.Batch(3)
	f.FailItem(jobs[1], registry.ContentFault)
	f.Bring(jobs[2], registry.Download)
	f.wantMatch("", jobs[2], jobs[1], jobs[0], batch, apart)
	f.wantMatch("action:batch", batch, apart)
	f.wantMatch("state:failed collection:"+registrytest.Mnemonic+" error:BROKEN class:content", jobs[1])
	f.wantMatch("stage:download,notify", jobs[2])
	f.wantMatch("action:ingest -status:failed", jobs[2], jobs[0])
	f.wantMatch("batch:"+batch, jobs...)
	f.wantMatch("batch:"+batch+" -state:failed", jobs[0], jobs[2])
	f.wantMatch("by:alice", apart)
	f.wantMatch("-by:alice action:batch", batch)
	f.wantMatch("collection:other,nowhere", apart)
	f.wantMatch("storage:nowhere")
	f.wantMatch("storage:nowhere,"+registrytest.Storage+" batch:"+batch, jobs...)
	f.wantMatch("id:"+jobs[0], jobs[0])
	f.wantMatch(jobs[0], jobs[0])
	f.wantMatch("graph:none")
	f.wantMatch("retries:>0")
	f.wantMatch("state:failed state:completed")
	_, err := f.Store.Command(f.Context(), registry.Command{ItemID: jobs[1], Act: registry.ActRequeue, Actor: "admin"})
	f.Must(err)
	f.wantMatch("retries:1", jobs[1])
	f.wantMatch("error:broken")
}

func statesMatch(f *fixture) {
	batch, jobs := f.Batch(3)
	f.Bring(jobs[0], registry.Process)
	f.wantMatch("state:processing", jobs[0], batch) // the job waits for its next step, the batch for its jobs
	f.wantMatch("state:pending", jobs[2], jobs[1])
	f.Must(f.Store.AddHold(f.Context(), registry.Hold{Scope: registry.HoldItem, Key: jobs[2], Reason: "r", Actor: "a"}))
	f.wantMatch("state:PENDING", jobs[1])
	f.wantMatch("state:held", jobs[2])
	f.wantMatch("held:yes", jobs[2])
	f.wantMatch("held:no", jobs[1], jobs[0], batch)
	f.Must(f.Store.AddHold(f.Context(), registry.Hold{Scope: registry.HoldBatch, Key: batch, Reason: "r", Actor: "a"}))
	f.wantMatch("state:held", jobs[2], jobs[1], jobs[0], batch)
	f.wantMatch("state:processing,pending")
	f.Must(f.Store.AddHold(f.Context(), registry.Hold{Scope: registry.HoldAll, Reason: "r", Actor: "a"}))
	f.wantMatch("held:yes action:ingest", jobs[2], jobs[1], jobs[0])
}

func agesMatch(f *fixture) {
	old := f.Submit()
	f.Clock.Pass(2 * time.Hour)
	young := f.Submit()
	f.Clock.Pass(time.Hour)
	f.wantMatch("older:2h", old)
	f.wantMatch("newer:2h", young)
	f.wantMatch("newer:3h", young, old) // to the moment
	f.wantMatch("older:3h")
	f.wantMatch("older:1m newer:1w", young, old)
}

func textAsItIs(f *fixture) {
	name := func(n string) string {
		return f.Submit(func(s *registry.Submission) { s.Name, s.Spec.URL = n, "https://example.org/"+f.Unique("x") })
	}
	percent, quote, short, long := name("100%_sure"), name(`say "hello" \ now`), name("ab"), name("Field notes of AB")
	f.wantMatch("%_s", percent)
	f.wantMatch(`"\"hello\" \\"`, quote)
	f.wantMatch("ab", long, short)
	f.wantMatch(`"field NOTES"`, long)
	f.wantMatch("notes ab field", long)
	f.wantMatch("-ab", quote, percent)
	f.wantMatch("name:sure", percent)
	f.wantMatch("error:sure")
	f.wantMatch("sure OR hello")
	f.wantMatch("*")
}

func queryPages(f *fixture) {
	var want []string
	for i := range 9 {
		id := f.Submit(func(s *registry.Submission) { s.Name = f.Unique("needle ") })
		if i%2 == 0 {
			f.Clock.Pass(time.Second)
		}
		want = append([]string{id}, want...)
	}
	for _, text := range []string{"", "needle", "state:pending", "action:batch", "collection:" + registrytest.Mnemonic, "needle state:pending,held", "newer:1h"} {
		for _, limit := range []int{1, 2, 8, 9, 10} {
			if got := ids(f.All(registry.ItemQuery{Match: f.Parsed(text), Limit: limit})); !slices.Equal(got, want) {
				f.Errorf("%q, limit %d: %v, want %v", text, limit, got, want)
			}
		}
	}
	page, err := f.Store.Items(f.Context(), registry.ItemQuery{Match: f.Parsed("needle"), Limit: 4})
	f.Must(err)
	f.Submit(func(s *registry.Submission) { s.Name = "needle again" })
	rest, err := f.Store.Items(f.Context(), registry.ItemQuery{Match: f.Parsed("needle"), After: page.Next})
	f.Must(err)
	if got := ids(append(page.Rows, rest.Rows...)); !slices.Equal(got, want) {
		f.Errorf("pages %v, want %v", got, want)
	}
}

func unparsedTerm(f *fixture) {
	f.Submit()
	_, err := f.Store.Items(f.Context(), registry.ItemQuery{Match: registry.Query{Terms: []registry.Term{{Field: "weather", Value: "fine"}}}})
	if err == nil {
		f.Error("a field that there is not was taken")
	}
}

// titlesFound looks for items by the titles that lists show them by.
func titlesFound(f *fixture) {
	titled := func(actor, name, title string) string {
		return f.Submit(func(s *registry.Submission) {
			s.Actor, s.Name, s.Spec.Title, s.Spec.URL = actor, name, title, "https://example.org/"+f.Unique("x")
		})
	}
	psalter, other := titled("alice", "scan-1.zip", "Psalter of Q7"), titled("bob", "scan-2.zip", "Another psalter")
	named := titled("alice", "psalter.zip", "")
	f.wantMatch("psalter", named, other, psalter)
	f.wantMatch("title:PSALTER", other, psalter)
	f.wantMatch("name:psalter", named)
	f.wantMatch("psalter scan", other, psalter)
	f.wantMatch("psalter by:alice", named, psalter)
	f.wantMatch("title:psalter -title:another", psalter)
	f.wantMatch("-title:psalter", named)
	f.wantMatch("q7", psalter)
	f.wantMatch("title:q7", psalter)
	f.wantMatch(`title:"of Q7"`, psalter)
	f.wantMatch("error:psalter")
	// A title that is the batch's is no title of its jobs.
	batch := titled("alice", "list.checkm", "Charters")
	jobs := registrytest.NewJobs(2)
	jobs[0].Spec.Title, jobs[0].Spec.TitleShared = "Charters", true
	jobs[1].Spec.Title = "Charter of 1215"
	_, err := f.Store.AddJobs(f.Context(), f.TakeItem(batch).Lease, jobs)
	f.Must(err)
	f.wantMatch("charters", batch)
	f.wantMatch("title:charter -action:batch", f.Children(batch)[1])
}
