package worktest

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func bulkTests() tests {
	return tests{
		"requeues_what_matched":         bulkRequeue,
		"in_portions_nothing_twice":     bulkPortions,
		"refusals_are_told":             bulkRefusals,
		"is_one_audit_entry":            bulkAudit,
		"can_be_stopped":                bulkStopped,
		"leaves_alone_what_came_later":  bulkLater,
		"needs_a_query":                 bulkEmpty,
		"within_collections":            bulkWithin,
		"one_key_50_clients":            bulkKey,
		"counts_by_state":               countStates,
		"can_be_withdrawn_in_its_grace": bulkWithdrawn,
		"starts_after_its_grace":        bulkGrace,
		"preview_is_what_happens":       bulkPreview,
		"preview_follows_the_states":    bulkPreviewStates,
	}
}

// failed makes n failed jobs.
func (f *fixture) failed(n int) []string {
	f.Helper()
	_, jobs := f.Batch(n)
	for _, id := range jobs {
		f.FailItem(id, registry.ContentFault)
	}
	return jobs
}

func bulkRequeue(f *fixture) {
	failed := f.failed(3)
	_, others := f.Batch(2)
	it := f.Bulk(registry.ActRequeue, "state:Failed")
	if it.Action != registry.Bulk || it.State != registry.StatePending || it.CreatedBy != "admin" || !strings.Contains(it.Name, "requeue state:Failed") {
		f.Errorf("%+v", it)
	}
	p := f.Apply(it.ID)
	if diff := cmp.Diff(registry.BulkProgress{Done: true, Matched: 3, Applied: 3}, p); diff != "" {
		f.Errorf("(-want +got):\n%s", diff)
	}
	for _, id := range failed {
		if it := f.Item(id); it.RetryCount != 1 || it.Status != registry.Pending {
			f.Errorf("%+v", it)
		}
	}
	for _, id := range others {
		if it := f.Item(id); it.RetryCount != 0 {
			f.Errorf("not asked for: %+v", it)
		}
	}
	f.State(it.ID, registry.StateCompleted)
}

// bulkPortions: the act is interrupted after each portion and continued by another attempt.
func bulkPortions(f *fixture) {
	failed := f.failed(250)
	it := f.Bulk(registry.ActRequeue, "state:failed")
	var last registry.BulkProgress
	for n := 1; !last.Done; n++ {
		l := f.TakeItem(it.ID).Lease
		p, err := f.Store.ApplyNext(f.Context(), l)
		f.Must(err)
		if p.Applied <= last.Applied || p.Applied > last.Applied+100 || p.Matched != 250 {
			f.Errorf("portion %d: %+v after %+v", n, p, last)
		}
		last = p
		if p.Done {
			f.Done(l)
			break
		}
		f.Clock.Pass(2 * registrytest.Lease) // killed
		if lost := f.Sweep(2 * registrytest.Lease); !slices.Contains(lost, l) {
			f.Fatalf("lost %v", lost)
		}
		_, err = f.Store.ApplyNext(f.Context(), l)
		f.Is(err, registry.ErrClaimLost)
	}
	for _, id := range failed {
		if got := f.Item(id).RetryCount; got != 1 {
			f.Errorf("item %s was requeued %d times", id, got)
		}
	}
}

func bulkRefusals(f *fixture) {
	c := f.Processing(1)[0]
	ark := f.Named(c.Lease, "x").ARK
	f.Intend(c.Lease, ark, 1, `{}`)
	f.Settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault})
	failed := f.failed(25)
	events := len(f.Events(c.Item.ID))
	p := f.Apply(f.Bulk(registry.ActDelete, "state:failed").ID)
	if p.Applied != 25 || p.Refused != 1 || len(p.Refusals) != 1 || !strings.Contains(p.Refusals[0], c.Item.ID) {
		f.Errorf("%+v", p)
	}
	f.State(c.Item.ID, registry.StateFailed)
	if got := len(f.Events(c.Item.ID)); got != events {
		f.Errorf("the refused act left an event")
	}
	for _, id := range failed {
		f.State(id, registry.StateDeleted)
	}
	// A requeue of what is deleted is refused, each, and only some of that is told.
	p = f.Apply(f.Bulk(registry.ActRequeue, "state:deleted").ID)
	if p.Applied != 0 || p.Refused != 25 || len(p.Refusals) != 20 {
		f.Errorf("%+v", p)
	}
	// Without a confirmation the consequences are a refusal, too.
	_, jobs := f.reported(4)
	it, err := f.Store.Bulk(f.Context(), registry.BulkRequest{Match: registrytest.Match("batch:" + f.Item(jobs[0]).ParentID), Act: registry.ActDelete, Actor: "admin"})
	f.Must(err)
	if p := f.Apply(it.ID); p.Applied != 1 || p.Refused != 3 { // a cancelled job without staging; two failed ones and a completed one
		f.Errorf("%+v", p)
	}
}

func bulkAudit(f *fixture) {
	failed := f.failed(2)
	it := f.Bulk(registry.ActRequeue, "state:failed")
	f.Apply(it.ID)
	es, err := f.Store.Events(f.Context(), it.ID, 0, 10)
	f.Must(err)
	first := es[0]
	f.Says(string(first.Data), "requeue", "state", "failed", "because", `"matched":2`)
	if first.Type != string(registry.ActSubmit) || first.Actor != "admin" {
		f.Errorf("%+v", first)
	}
	for _, id := range failed {
		es, err := f.Store.Events(f.Context(), id, 0, 10)
		f.Must(err)
		last := es[len(es)-1]
		if last.Type != string(registry.ActRequeue) || last.Actor != "admin" {
			f.Errorf("%+v", last)
		}
	}
}

func bulkStopped(f *fixture) {
	failed := f.failed(150)
	it := f.Bulk(registry.ActRequeue, "state:failed")
	l := f.TakeItem(it.ID).Lease
	_, err := f.Store.ApplyNext(f.Context(), l)
	f.Must(err)
	f.Command(it.ID, registry.ActCancel, "")
	_, err = f.Store.ApplyNext(f.Context(), l)
	f.Is(err, registry.ErrClaimLost)
	done := 0
	for _, id := range failed {
		done += f.Item(id).RetryCount
	}
	if done != 100 {
		f.Errorf("%d were requeued", done)
	}
	f.Command(it.ID, registry.ActRequeue, "") // and goes on where it stood
	if p := f.Apply(it.ID); p.Applied != 150 {
		f.Errorf("%+v", p)
	}
}

func bulkLater(f *fixture) {
	f.failed(1)
	it := f.Bulk(registry.ActRequeue, "state:failed")
	f.Clock.Pass(registrytest.Lease)
	later := f.failed(1)
	if p := f.Apply(it.ID); p.Applied != 1 {
		f.Errorf("%+v", p)
	}
	f.State(later[0], registry.StateFailed)
}

func bulkEmpty(f *fixture) {
	_, err := f.Store.Bulk(f.Context(), registry.BulkRequest{Act: registry.ActRequeue, Actor: "admin"})
	f.Is(err, registry.ErrEmptyQuery)
	for _, act := range []registry.Act{registry.ActClaim, "", "nonsense"} {
		if it, err := f.Store.Bulk(f.Context(), registry.BulkRequest{Match: registrytest.Match("state:failed"), Act: act, Actor: "admin"}); err == nil {
			f.Errorf("%q in bulk: %+v", act, it)
		}
	}
}

func bulkWithin(f *fixture) {
	failed := f.failed(1)
	for _, within := range [][]string{{}, {"other"}} {
		it, err := f.Store.Bulk(f.Context(), registry.BulkRequest{Match: registrytest.Match("state:failed"), Within: within, Act: registry.ActRequeue, Actor: "admin"})
		f.Must(err)
		if p := f.Apply(it.ID); p.Applied+p.Refused+p.Matched != 0 {
			f.Errorf("within %v: %+v", within, p)
		}
	}
	f.State(failed[0], registry.StateFailed)
}

func bulkKey(f *fixture) {
	f.failed(2)
	b := registry.BulkRequest{Match: registrytest.Match("state:failed"), Act: registry.ActRequeue, Actor: "admin", IdempotencyKey: "k"}
	var mu sync.Mutex
	ids := map[string]bool{}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			it, err := f.Store.Bulk(f.Context(), b)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				f.Errorf("%v", err)
			}
			ids[it.ID] = true
		})
	}
	all.Wait()
	if made := f.All(registry.ItemQuery{Action: registry.Bulk}); len(ids) != 1 || len(made) != 1 {
		f.Errorf("%d answers, %d items", len(ids), len(made))
	}
	b.Reason = "another"
	_, err := f.Store.Bulk(f.Context(), b)
	f.Is(err, registry.ErrIdempotencyConflict)
}

// delayed requests a requeue of all failed items that starts after a grace.
func (f *fixture) delayed(seconds int) registry.WorkItem {
	f.Helper()
	it, err := f.Store.Bulk(f.Context(), registry.BulkRequest{
		Match: registrytest.Match("state:failed"), Act: registry.ActRequeue, Reason: "because", Actor: "admin", Confirmed: true, GraceSeconds: seconds,
	})
	f.Must(err)
	return it
}

// bulkWithdrawn: nobody can start the act before its time, and one that was cancelled before it never
// starts. Requeued, it does what it was asked.
func bulkWithdrawn(f *fixture) {
	failed := f.failed(2)
	it := f.delayed(30)
	if want := f.Clock.Now().Add(30 * time.Second); !it.RunAt.Equal(want) {
		f.Errorf("it starts at %s, want %s", it.RunAt, want)
	}
	if got := f.Refused(registry.Apply, it.ID); got.Reason != registry.ReasonNotDue {
		f.Errorf("claimed in its grace: %+v", got)
	}
	f.Command(it.ID, registry.ActCancel, "")
	f.Clock.Pass(time.Minute)
	f.Sweep(time.Minute)
	if got := f.Refused(registry.Apply, it.ID); got.Reason != registry.ReasonSettled {
		f.Errorf("claimed after it was withdrawn: %+v", got)
	}
	for _, id := range failed {
		if it := f.Item(id); it.RetryCount != 0 || it.Status != registry.Failed {
			f.Errorf("withdrawn, and yet %+v", it)
		}
	}
	if es := f.Events(it.ID); !slices.Contains(es, string(registry.ActCancel)) {
		f.Errorf("events %v", es)
	}
	f.Command(it.ID, registry.ActRequeue, "")
	if p := f.Apply(it.ID); p.Applied != 2 {
		f.Errorf("asked again: %+v", p)
	}
	for _, seconds := range []int{-1, registry.MostGrace + 1} {
		_, err := f.Store.Bulk(f.Context(), registry.BulkRequest{Match: registrytest.Match("state:failed"), Act: registry.ActRequeue, Actor: "admin", GraceSeconds: seconds})
		f.Is(err, registry.ErrInvalid)
	}
}

// bulkGrace: the act starts after its grace, and its worker may die then. What failed meanwhile, but
// was there before, is part of it; what came later is not.
func bulkGrace(f *fixture) {
	f.failed(1)
	_, open := f.Batch(1)
	it := f.delayed(30)
	f.FailItem(open[0], registry.ContentFault)
	f.Clock.Pass(time.Second)
	later := f.failed(1)
	f.Clock.Pass(30 * time.Second)
	lost := f.TakeItem(it.ID).Lease
	f.Clock.Pass(2 * registrytest.Lease)
	if ended := f.Sweep(2 * registrytest.Lease); !slices.Contains(ended, lost) {
		f.Fatalf("lost %v", ended)
	}
	if p := f.Apply(it.ID); p.Applied != 2 || p.Matched != 1 {
		f.Errorf("%+v", p)
	}
	f.State(later[0], registry.StateFailed)
	f.Command(later[0], registry.ActRequeue, "")
	f.failed(1)
	again := f.delayed(30)
	f.Clock.Pass(30 * time.Second)
	l := f.TakeItem(again.ID).Lease // too late to withdraw it as a whole: it is stopped
	f.Command(again.ID, registry.ActCancel, "")
	_, err := f.Store.ApplyNext(f.Context(), l)
	f.Is(err, registry.ErrClaimLost)
}

func bulkPreview(f *fixture) {
	failed := f.failed(3)
	done, _ := f.Batch(1)
	f.Finish(f.Children(done)[0])
	ask := registry.BulkRequest{Match: registrytest.Match("action:ingest"), Act: registry.ActRequeue, Actor: "admin", Reason: "because", Confirmed: true}
	p, err := f.Store.PreviewBulk(f.Context(), ask)
	f.Must(err)
	want := registry.BulkPreview{Matched: 4, Applies: 3, Parts: []registry.BulkPart{
		{State: registry.StateFailed, Count: 3}, {State: registry.StateCompleted, Count: 1, Skipped: "it is Completed and cannot be requeued; no act is possible any more"},
	}}
	if diff := cmp.Diff(want, p); diff != "" {
		f.Errorf("(-want +got):\n%s", diff)
	}
	f.State(failed[0], registry.StateFailed) // nothing has changed
	it, err := f.Store.Bulk(f.Context(), ask)
	f.Must(err)
	if got := f.Apply(it.ID); got.Applied != p.Applies || got.Refused != p.Matched-p.Applies {
		f.Errorf("foreseen %+v, done %+v", p, got)
	}
	ask.From = registry.Record
	if p, err = f.Store.PreviewBulk(f.Context(), ask); err != nil || p.Applies != 0 {
		f.Errorf("from a stage that none was in: %+v, %v", p, err)
	}
	ask.Match = registry.Query{}
	_, err = f.Store.PreviewBulk(f.Context(), ask)
	f.Is(err, registry.ErrEmptyQuery)
}

// bulkPreviewStates compares the preview of each act with the acts that each item allows.
func bulkPreviewStates(f *fixture) {
	f.failed(2)
	batch, jobs := f.Batch(5)
	f.Finish(jobs[0])
	f.TakeItem(jobs[1])
	f.Hold(registry.HoldItem, jobs[2])
	f.Command(jobs[3], registry.ActCancel, "")
	f.Hold(registry.HoldBatch, batch)
	f.Retry(f.Job(registry.Download), 5)
	f.Committed(registry.Record, registry.Announced)
	f.Committed(registry.Notify, registry.Preserved)
	f.Prepare("", registry.Node{Key: "a", Submission: registrytest.Submission()})
	f.DeleteItem(f.failed(1)[0])
	all := registrytest.Match("action:ingest,batch,bulk,tidy,task")
	items := f.All(registry.ItemQuery{Match: all})
	for _, act := range registry.AdminActs() {
		if act == registry.ActAbandon || act == registry.ActGiveUp {
			continue // the one is never in bulk, and the receivers of the other are not seen in rows
		}
		want, got := map[registry.State]int64{}, map[registry.State]int64{}
		for _, it := range items {
			if slices.Contains(it.AllowedActs, act) {
				want[it.State]++
			}
		}
		p, err := f.Store.PreviewBulk(f.Context(), registry.BulkRequest{Match: all, Act: act, Actor: "admin"})
		f.Must(err)
		for _, part := range p.Parts {
			if part.Skipped == "" {
				got[part.State] += part.Count
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || p.Matched != int64(len(items)) {
			f.Errorf("%s of %d, matched %d (-want +got):\n%s", act, len(items), p.Matched, diff)
		}
	}
}

func countStates(f *fixture) {
	f.failed(3)
	batch, jobs := f.Batch(4)
	f.Finish(jobs[0])
	f.TakeItem(jobs[1])
	f.Hold(registry.HoldItem, jobs[2])
	for _, tt := range []struct {
		q    registry.ItemQuery
		want map[registry.State]int64
	}{
		{registry.ItemQuery{ParentID: batch}, map[registry.State]int64{
			registry.StateCompleted: 1, registry.StateEstimating: 1, registry.StateHeld: 1, registry.StatePending: 1,
		}},
		{registry.ItemQuery{Match: registrytest.Match("state:failed")}, map[registry.State]int64{registry.StateFailed: 3}},
		{registry.ItemQuery{Match: registrytest.Match("batch:"+batch, "state:completed")}, map[registry.State]int64{registry.StateCompleted: 1}},
		{registry.ItemQuery{Within: []string{}}, map[registry.State]int64{}},
		{registry.ItemQuery{Within: []string{registrytest.Mnemonic}, Action: registry.Batch}, map[registry.State]int64{
			registry.StateProcessing: 1, registry.StateReporting: 1,
		}},
	} {
		got, err := f.Store.CountItems(f.Context(), tt.q)
		f.Must(err)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			f.Errorf("%+v (-want +got):\n%s", tt.q, diff)
		}
		rows := f.All(tt.q)
		n := int64(0)
		for _, c := range got {
			n += c
		}
		if int64(len(rows)) != n {
			f.Errorf("%+v: %d rows, counted %d", tt.q, len(rows), n)
		}
	}
}
