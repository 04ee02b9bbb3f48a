package worktest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func feedTests() tests {
	return tests{
		"R17_a_reader_who_follows_many_writers_misses_nothing": feedFollowed,
		"filters_and_pages":                 feedFiltered,
		"an_events_collection_is_its_items": feedCollection,
		"waiting_ends_with_news":            feedAwaited,
		"waiting_ends_with_its_context":     feedGivenUp,
		"refusals":                          refusals,
		"audit_is_what_people_did":          audited,
		"lists_within_collections":          listsWithin,
	}
}

// feedFollowed: many writers run at once, and some of their writes fail. Readers page through the
// feed meanwhile. Each reader sees every event once, in order.
func feedFollowed(f *fixture) {
	const writers, each, readers = 16, 12, 3
	begin, err := f.Store.FeedEnd(f.Context())
	f.Must(err)
	ctx, cancel := context.WithTimeout(f.Context(), time.Minute)
	defer cancel()
	total := writers * each * 2 // a submission and a cancellation are an event each
	seen := make([][]registry.Event, readers)
	var reading, writing sync.WaitGroup
	for r := range readers {
		reading.Go(func() {
			after := begin
			for len(seen[r]) < total {
				if f.Store.AwaitFeed(ctx, after) != nil {
					return
				}
				events, err := f.Store.Feed(ctx, registry.FeedQuery{After: after, Limit: 7 * (r + 1)})
				if err != nil {
					f.Errorf("feed: %v", err)
					return
				}
				for _, e := range events {
					if e.Seq <= after {
						f.Errorf("event %d after %d: a gap was filled later, or it came twice", e.Seq, after)
					}
					after = e.Seq
				}
				seen[r] = append(seen[r], events...)
			}
		})
	}
	for range writers {
		writing.Go(func() {
			for range each {
				r, err := f.Store.Submit(ctx, registrytest.Submission())
				if err != nil {
					f.Errorf("submit: %v", err)
					return
				}
				cancelled := registry.Command{ItemID: r.BatchID, Act: registry.ActCancel, Actor: "boss"}
				if _, err := f.Store.Command(ctx, cancelled); err != nil {
					f.Errorf("cancel: %v", err)
				}
				if _, err := f.Store.Command(ctx, cancelled); err == nil { // is undone, and its number given again
					f.Error("cancelled twice")
				}
			}
		})
	}
	writing.Wait()
	reading.Wait()
	whole, err := f.Store.Feed(f.Context(), registry.FeedQuery{After: begin, Limit: 500})
	f.Must(err)
	if len(whole) != total {
		f.Fatalf("%d events in the end, want %d", len(whole), total)
	}
	ids := map[string]bool{}
	for _, e := range whole {
		if e.ID == "" || ids[e.ID] {
			f.Errorf("event %d has the id %q, which is none of its own", e.Seq, e.ID)
		}
		ids[e.ID] = true
	}
	for r := range readers {
		if diff := cmp.Diff(whole, seen[r]); diff != "" {
			f.Errorf("reader %d (-all +seen):\n%s", r, diff)
		}
	}
}

func feedFiltered(f *fixture) {
	f.Collection("other", registry.Profile{})
	mine := f.Submit()
	theirs := f.Submit(func(s *registry.Submission) { s.Collection = "other" })
	f.Take(registry.Expand, mine)
	_, err := f.Store.Command(f.Context(), registry.Command{ItemID: theirs, Act: registry.ActCancel, Actor: "boss"})
	f.Must(err)
	told := func(q registry.FeedQuery) (out []string) {
		f.Helper()
		events, err := f.Store.Feed(f.Context(), q)
		f.Must(err)
		for _, e := range events {
			name := map[string]string{mine: "mine", theirs: "theirs"}[e.ItemID]
			if name != "" {
				out = append(out, name+" "+e.Type)
			}
		}
		return out
	}
	all := []string{"mine submit", "theirs submit", "mine claim", "theirs cancel"}
	for _, tt := range []struct {
		name string
		q    registry.FeedQuery
		want []string
	}{
		{"all", registry.FeedQuery{}, all},
		{"a type", registry.FeedQuery{Types: []string{"submit"}}, all[:2]},
		{"types", registry.FeedQuery{Types: []string{"submit", "cancel"}}, []string{all[0], all[1], all[3]}},
		{"an item", registry.FeedQuery{ItemID: mine}, []string{all[0], all[2]}},
		{"within", registry.FeedQuery{Within: []string{"other"}}, []string{all[1], all[3]}},
		{"within two", registry.FeedQuery{Within: []string{"other", registrytest.Mnemonic}}, all},
		{"within none", registry.FeedQuery{Within: []string{}}, nil},
		{"within, of an item elsewhere", registry.FeedQuery{Within: []string{"other"}, ItemID: mine}, nil},
		{"before the first", registry.FeedQuery{After: -5}, all},
	} {
		if diff := cmp.Diff(tt.want, told(tt.q)); diff != "" {
			f.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	var paged []string
	end, err := f.Store.FeedEnd(f.Context())
	f.Must(err)
	for after := int64(0); after < end; {
		events, err := f.Store.Feed(f.Context(), registry.FeedQuery{After: after, Types: []string{"submit", "cancel"}, Limit: 1})
		f.Must(err)
		if len(events) == 0 {
			break
		}
		after = events[0].Seq
		paged = append(paged, events[0].Type)
	}
	if diff := cmp.Diff([]string{"submit", "submit", "cancel"}, paged); diff != "" {
		f.Errorf("page by page (-want +got):\n%s", diff)
	}
}

func feedCollection(f *fixture) {
	batch, jobs := f.Batch(1)
	f.Token("t", registry.RoleViewer)
	for _, id := range []string{batch, jobs[0]} {
		events, err := f.Store.Events(f.Context(), id, 0, 100)
		f.Must(err)
		if len(events) == 0 {
			f.Errorf("item %s has no events", id)
		}
		for _, e := range events {
			if e.Collection != registrytest.Mnemonic {
				f.Errorf("event %s of %s is in collection %q", e.Type, id, e.Collection)
			}
		}
	}
	for id, want := range map[string]string{"t": "", registrytest.Mnemonic: registrytest.Mnemonic} {
		events, err := f.Store.Events(f.Context(), id, 0, 1)
		f.Must(err)
		if len(events) != 1 || events[0].Collection != want {
			f.Errorf("events of %s: %+v, want one in collection %q", id, events, want)
		}
	}
}

func feedAwaited(f *fixture) {
	end, err := f.Store.FeedEnd(f.Context())
	f.Must(err)
	if end == 0 {
		f.Fatal("no event yet")
	}
	f.Must(f.Store.AwaitFeed(f.Context(), end-1)) // at once
	waiting := make(chan error, 1)
	go func() { waiting <- f.Store.AwaitFeed(f.Context(), end) }()
	id := f.Submit()
	f.Must(<-waiting)
	events, err := f.Store.Feed(f.Context(), registry.FeedQuery{After: end})
	f.Must(err)
	if len(events) != 1 || events[0].ItemID != id {
		f.Errorf("events %+v, want the submission", events)
	}
}

func feedGivenUp(f *fixture) {
	end, err := f.Store.FeedEnd(f.Context())
	f.Must(err)
	ctx, cancel := context.WithTimeout(f.Context(), 20*time.Millisecond)
	defer cancel()
	f.Is(f.Store.AwaitFeed(ctx, end), context.DeadlineExceeded)
	ctx, cancel = context.WithCancel(f.Context())
	cancel()
	f.Is(f.Store.AwaitFeed(ctx, end), context.Canceled)
}

func refusals(f *fixture) {
	want := registry.Refusal{
		Actor: "somebody", Operation: "POST /x", Code: "forbidden", Status: 403, Detail: "no \x00", Remote: "192.0.2.1", RequestID: "r", Count: 3,
	}
	f.Must(f.Store.Refused(f.Context(), want))
	f.Must(f.Store.Refused(f.Context(), registry.Refusal{Code: "unauthenticated", Status: 401}))
	events, err := f.Store.Feed(f.Context(), registry.FeedQuery{Types: []string{registry.EventRefused}})
	f.Must(err)
	if len(events) != 2 || events[0].Actor != "somebody" || events[1].Actor != "" || !events[0].At.Equal(f.Clock.Now()) {
		f.Fatalf("events %+v", events)
	}
	var got registry.Refusal
	f.Must(json.Unmarshal(events[0].Data, &got))
	want.Detail = "no \uFFFD"
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("refusal (-want +got):\n%s", diff)
	}
	within, err := f.Store.Feed(f.Context(), registry.FeedQuery{Types: []string{registry.EventRefused}, Within: []string{registrytest.Mnemonic}})
	f.Must(err)
	if len(within) != 0 {
		f.Errorf("refusals are in collection %s: %+v", registrytest.Mnemonic, within)
	}
}

func audited(f *fixture) {
	batch, jobs := f.Batch(3) // the jobs are the worker's doing
	l := f.Take(registry.Estimate, jobs[0]).Lease
	f.Settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "no"})
	_, err := f.Store.Command(f.Context(), registry.Command{ItemID: jobs[0], Act: registry.ActRequeue, Actor: "ann"})
	f.Must(err)
	_, err = f.Store.Command(f.Context(), registry.Command{ItemID: jobs[1], Act: registry.ActCancel, Actor: "bob"})
	f.Must(err)
	f.Token("t", registry.RoleViewer)
	f.Hold(registry.HoldBatch, batch)
	f.Must(f.Store.Refused(f.Context(), registry.Refusal{Code: "unauthenticated"}))
	f.Must(f.Store.NoteAccess(f.Context(), registry.Access{Kind: registry.EventExported, Actor: "eve", ObjectID: "ark:/99999/fk4a", Version: 1, By: registry.ByAPI}))
	f.Must(f.Store.NoteBackup(f.Context(), registry.Backup{Name: "a.tar.zst"}))
	list := func(q registry.AuditQuery) (told []string) {
		f.Helper()
		for {
			page, err := f.Store.Audit(f.Context(), q)
			f.Must(err)
			for _, e := range page.Rows {
				told = append(told, fmt.Sprintf("%s by %s", e.Type, e.Actor))
			}
			if page.Next == "" {
				return told
			}
			if len(page.Rows) != q.Limit {
				f.Errorf("%d rows and a next page, want %d", len(page.Rows), q.Limit)
			}
			q.After = page.Next
		}
	}
	want := []string{
		"backup-made by registry", "exported by eve", "refused by ", "hold by admin", "token-created by root", "cancel by bob", "requeue by ann", "submit by depositor", "collection by admin",
	}
	if diff := cmp.Diff(want, list(registry.AuditQuery{})); diff != "" {
		f.Errorf("audit (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, list(registry.AuditQuery{Limit: 2})); diff != "" {
		f.Errorf("audit by pages (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[5:6], list(registry.AuditQuery{Actor: "bob"})); diff != "" {
		f.Errorf("audit of bob (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{want[2], want[7]}, list(registry.AuditQuery{Types: []string{"refused", "submit"}})); diff != "" {
		f.Errorf("audit of two types (-want +got):\n%s", diff)
	}
	all, err := f.Store.Audit(f.Context(), registry.AuditQuery{})
	f.Must(err)
	middle := all.Rows[5].At
	if diff := cmp.Diff(want, append(list(registry.AuditQuery{Since: middle}), list(registry.AuditQuery{Until: middle})...)); diff != "" {
		f.Errorf("audit from a time on, and before it (-want +got):\n%s", diff)
	}
	first, err := f.Store.Audit(f.Context(), registry.AuditQuery{Limit: 2})
	f.Must(err)
	second, err := f.Store.Audit(f.Context(), registry.AuditQuery{Limit: 2, After: first.Next})
	f.Must(err)
	again, err := f.Store.Audit(f.Context(), registry.AuditQuery{Limit: 2, Before: second.Prev})
	f.Must(err)
	if diff := cmp.Diff(first, again); diff != "" || first.Prev != "" {
		f.Errorf("the page before the second one (-want +got):\n%s", diff)
	}
	_, err = f.Store.Audit(f.Context(), registry.AuditQuery{After: "!"})
	f.Is(err, registry.ErrNotFound)
	_, err = f.Store.Audit(f.Context(), registry.AuditQuery{After: first.Next, Before: first.Next})
	f.Is(err, registry.ErrInvalid)
}

func listsWithin(f *fixture) {
	f.Collection("other", registry.Profile{})
	mine := f.Submit()
	theirs := f.Submit(func(s *registry.Submission) { s.Collection = "other" })
	for _, tt := range []struct {
		within []string
		want   []string
	}{
		{nil, []string{mine, theirs}},
		{[]string{}, nil},
		{[]string{registrytest.Mnemonic}, []string{mine}},
		{[]string{"other", "unknown"}, []string{theirs}},
	} {
		page, err := f.Store.Items(f.Context(), registry.ItemQuery{Within: tt.within})
		f.Must(err)
		var got []string
		for _, it := range page.Rows {
			got = append(got, it.ID)
		}
		slices.Sort(got)
		slices.Sort(tt.want)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			f.Errorf("within %v (-want +got):\n%s", tt.within, diff)
		}
	}
}
