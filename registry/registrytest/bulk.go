package registrytest

import (
	"slices"
	"strings"
	"sync"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
)

func bulkTests() []test {
	return []test{
		{"requeues_what_matched", bulkRequeue},
		{"in_portions_nothing_twice", bulkPortions},
		{"refusals_are_told", bulkRefusals},
		{"is_one_audit_entry", bulkAudit},
		{"can_be_stopped", bulkStopped},
		{"leaves_alone_what_came_later", bulkLater},
		{"needs_a_query", bulkEmpty},
		{"within_collections", bulkWithin},
		{"one_key_50_clients", bulkKey},
		{"counts_by_state", countStates},
	}
}

// match makes a query of words as FIELD:VALUE.
func match(words ...string) (q registry.Query) {
	for _, w := range words {
		field, value, _ := strings.Cut(w, ":")
		q.Terms = append(q.Terms, registry.Term{Field: field, Value: value})
	}
	return q
}

// bulk asks for an act on all that matches.
func (f *fixture) bulk(act registry.Act, words ...string) registry.WorkItem {
	f.Helper()
	it, err := f.Bulk(f.Context(), registry.BulkRequest{Match: match(words...), Act: act, Reason: "because", Actor: "admin", Confirmed: true})
	f.must(err)
	return it
}

// carriedOut carries out all bulk acts that wait, oldest first.
func (f *fixture) carriedOut() (all []registry.BulkProgress) {
	f.Helper()
	for _, it := range f.all(registry.ItemQuery{Action: registry.Bulk, Status: registry.Pending}) {
		all = append(all, f.apply(it.ID))
	}
	return all
}

// apply carries a bulk act out.
func (f *fixture) apply(id string) registry.BulkProgress {
	f.Helper()
	l := f.takeItem(id).Lease
	for {
		p, err := f.ApplyNext(f.Context(), l)
		f.must(err)
		if p.Done {
			f.done(l)
			return p
		}
	}
}

// failed makes n jobs that have failed.
func (f *fixture) failed(n int) []string {
	f.Helper()
	_, jobs := f.batch(n)
	for _, id := range jobs {
		f.fail(id, registry.ContentFault)
	}
	return jobs
}

func bulkRequeue(f *fixture) {
	failed := f.failed(3)
	_, others := f.batch(2)
	it := f.bulk(registry.ActRequeue, "state:Failed")
	if it.Action != registry.Bulk || it.State != registry.StatePending || it.CreatedBy != "admin" || !strings.Contains(it.Name, "requeue state:Failed") {
		f.Errorf("%+v", it)
	}
	p := f.apply(it.ID)
	if diff := cmp.Diff(registry.BulkProgress{Done: true, Matched: 3, Applied: 3}, p); diff != "" {
		f.Errorf("(-want +got):\n%s", diff)
	}
	for _, id := range failed {
		if it := f.item(id); it.RetryCount != 1 || it.Status != registry.Pending {
			f.Errorf("%+v", it)
		}
	}
	for _, id := range others {
		if it := f.item(id); it.RetryCount != 0 {
			f.Errorf("not asked for: %+v", it)
		}
	}
	f.state(it.ID, registry.StateCompleted)
}

// The act is interrupted after each portion and taken up by another attempt.
func bulkPortions(f *fixture) {
	failed := f.failed(250)
	it := f.bulk(registry.ActRequeue, "state:failed")
	var last registry.BulkProgress
	for n := 1; !last.Done; n++ {
		l := f.takeItem(it.ID).Lease
		p, err := f.ApplyNext(f.Context(), l)
		f.must(err)
		if p.Applied <= last.Applied || p.Applied > last.Applied+100 || p.Matched != 250 {
			f.Errorf("portion %d: %+v after %+v", n, p, last)
		}
		last = p
		if p.Done {
			f.done(l)
			break
		}
		f.clock.pass(2 * lease) // killed
		if lost := f.sweep(2 * lease); !slices.Contains(lost, l) {
			f.Fatalf("lost %v", lost)
		}
		_, err = f.ApplyNext(f.Context(), l)
		f.is(err, registry.ErrClaimLost)
	}
	for _, id := range failed {
		if got := f.item(id).RetryCount; got != 1 {
			f.Errorf("item %s was requeued %d times", id, got)
		}
	}
}

func bulkRefusals(f *fixture) {
	c := f.processing(1)[0]
	ark := f.locks(c.Lease, "x").ARK
	f.intend(c.Lease, ark, 1, `{}`)
	f.settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault})
	failed := f.failed(25)
	events := len(f.events(c.Item.ID))
	p := f.apply(f.bulk(registry.ActDelete, "state:failed").ID)
	if p.Applied != 25 || p.Refused != 1 || len(p.Refusals) != 1 || !strings.Contains(p.Refusals[0], c.Item.ID) {
		f.Errorf("%+v", p)
	}
	f.state(c.Item.ID, registry.StateFailed)
	if got := len(f.events(c.Item.ID)); got != events {
		f.Errorf("the refused act left an event")
	}
	for _, id := range failed {
		f.state(id, registry.StateDeleted)
	}
	// A requeue of what is deleted is refused, each, and only some of that is told.
	p = f.apply(f.bulk(registry.ActRequeue, "state:deleted").ID)
	if p.Applied != 0 || p.Refused != 25 || len(p.Refusals) != 20 {
		f.Errorf("%+v", p)
	}
	// Without a confirmation the consequences are a refusal, too.
	_, jobs := f.reported(4)
	it, err := f.Bulk(f.Context(), registry.BulkRequest{Match: match("batch:" + f.item(jobs[0]).ParentID), Act: registry.ActDelete, Actor: "admin"})
	f.must(err)
	if p := f.apply(it.ID); p.Applied != 1 || p.Refused != 3 { // a cancelled job without staging; two failed ones and a completed one
		f.Errorf("%+v", p)
	}
}

func bulkAudit(f *fixture) {
	failed := f.failed(2)
	it := f.bulk(registry.ActRequeue, "state:failed")
	f.apply(it.ID)
	es, err := f.Events(f.Context(), it.ID, 0, 10)
	f.must(err)
	first := es[0]
	f.says(string(first.Data), "requeue", "state", "failed", "because", `"matched":2`)
	if first.Type != string(registry.ActSubmit) || first.Actor != "admin" {
		f.Errorf("%+v", first)
	}
	for _, id := range failed {
		es, err := f.Events(f.Context(), id, 0, 10)
		f.must(err)
		last := es[len(es)-1]
		if last.Type != string(registry.ActRequeue) || last.Actor != "admin" {
			f.Errorf("%+v", last)
		}
	}
}

func bulkStopped(f *fixture) {
	failed := f.failed(150)
	it := f.bulk(registry.ActRequeue, "state:failed")
	l := f.takeItem(it.ID).Lease
	_, err := f.ApplyNext(f.Context(), l)
	f.must(err)
	f.command(it.ID, registry.ActCancel, "")
	_, err = f.ApplyNext(f.Context(), l)
	f.is(err, registry.ErrClaimLost)
	done := 0
	for _, id := range failed {
		done += f.item(id).RetryCount
	}
	if done != 100 {
		f.Errorf("%d were requeued", done)
	}
	f.command(it.ID, registry.ActRequeue, "") // and goes on where it stood
	if p := f.apply(it.ID); p.Applied != 150 {
		f.Errorf("%+v", p)
	}
}

func bulkLater(f *fixture) {
	f.failed(1)
	it := f.bulk(registry.ActRequeue, "state:failed")
	f.clock.pass(lease)
	later := f.failed(1)
	if p := f.apply(it.ID); p.Applied != 1 {
		f.Errorf("%+v", p)
	}
	f.state(later[0], registry.StateFailed)
}

func bulkEmpty(f *fixture) {
	_, err := f.Bulk(f.Context(), registry.BulkRequest{Act: registry.ActRequeue, Actor: "admin"})
	f.is(err, registry.ErrEmptyQuery)
	for _, act := range []registry.Act{registry.ActClaim, "", "nonsense"} {
		if it, err := f.Bulk(f.Context(), registry.BulkRequest{Match: match("state:failed"), Act: act, Actor: "admin"}); err == nil {
			f.Errorf("%q in bulk: %+v", act, it)
		}
	}
}

func bulkWithin(f *fixture) {
	failed := f.failed(1)
	for _, within := range [][]string{{}, {"other"}} {
		it, err := f.Bulk(f.Context(), registry.BulkRequest{Match: match("state:failed"), Within: within, Act: registry.ActRequeue, Actor: "admin"})
		f.must(err)
		if p := f.apply(it.ID); p.Applied+p.Refused+p.Matched != 0 {
			f.Errorf("within %v: %+v", within, p)
		}
	}
	f.state(failed[0], registry.StateFailed)
}

func bulkKey(f *fixture) {
	f.failed(2)
	b := registry.BulkRequest{Match: match("state:failed"), Act: registry.ActRequeue, Actor: "admin", IdempotencyKey: "k"}
	var mu sync.Mutex
	ids := map[string]bool{}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			it, err := f.Bulk(f.Context(), b)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				f.Errorf("%v", err)
			}
			ids[it.ID] = true
		})
	}
	all.Wait()
	if made := f.all(registry.ItemQuery{Action: registry.Bulk}); len(ids) != 1 || len(made) != 1 {
		f.Errorf("%d answers, %d items", len(ids), len(made))
	}
	b.Reason = "another"
	_, err := f.Bulk(f.Context(), b)
	f.is(err, registry.ErrIdempotencyConflict)
}

func countStates(f *fixture) {
	f.failed(3)
	batch, jobs := f.batch(4)
	f.finish(jobs[0])
	f.takeItem(jobs[1])
	f.hold(registry.HoldItem, jobs[2])
	for _, tt := range []struct {
		q    registry.ItemQuery
		want map[registry.State]int64
	}{
		{registry.ItemQuery{ParentID: batch}, map[registry.State]int64{
			registry.StateCompleted: 1, registry.StateEstimating: 1, registry.StateHeld: 1, registry.StatePending: 1,
		}},
		{registry.ItemQuery{Match: match("state:failed")}, map[registry.State]int64{registry.StateFailed: 3}},
		{registry.ItemQuery{Match: match("batch:"+batch, "state:completed")}, map[registry.State]int64{registry.StateCompleted: 1}},
		{registry.ItemQuery{Within: []string{}}, map[registry.State]int64{}},
		{registry.ItemQuery{Within: []string{mnemonic}, Action: registry.Batch}, map[registry.State]int64{
			registry.StateProcessing: 1, registry.StateReporting: 1,
		}},
	} {
		got, err := f.CountItems(f.Context(), tt.q)
		f.must(err)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			f.Errorf("%+v (-want +got):\n%s", tt.q, diff)
		}
		rows := f.all(tt.q)
		n := int64(0)
		for _, c := range got {
			n += c
		}
		if int64(len(rows)) != n {
			f.Errorf("%+v: %d rows, counted %d", tt.q, len(rows), n)
		}
	}
}
