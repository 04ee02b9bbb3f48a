package worktest

import (
	"slices"
	"time"

	"github.com/holdfast/holdfast/registry"
)

func wakeTests() tests {
	return tests{
		"I1_a_new_item_is_rung_for":                        wakeNew,
		"R20_best_first_and_at_most_a_window":              wakeWindow,
		"R20_a_claim_frees_its_place":                      wakeClaimFrees,
		"R20_a_message_of_before_rings_for_another":        wakeBefore,
		"R20_a_refusal_frees_its_place":                    wakeRefusalFrees,
		"R19_an_unanswered_message_is_repeated_ever_later": wakeRenudge,
		"R19_a_failed_publish_is_taken_back":               wakeUndo,
		"R19_what_was_lost_in_bulk_is_offered_again":       wakeReoffer,
		"R20_what_cannot_run_is_not_offered":               wakeSkips,
		"R20_a_release_of_a_hold_rings":                    wakeUnhold,
		"a_new_worker_is_rung_for":                         wakeNewWorker,
		"commits_ring":                                     wakeRings,
	}
}

// slots announces a worker with n slots at a stage.
func (f *fixture) slots(worker string, stage registry.Stage, n int) {
	f.Helper()
	_, err := f.Store.Renew(f.Context(), registry.RenewRequest{Worker: registry.WorkerInfo{ID: worker, Capacity: map[registry.Stage]int{stage: n}}})
	f.Must(err)
}

func wakeNew(f *fixture) {
	id := f.Submit()
	if got, want := f.Offer(2), []registry.Wake{{Action: registry.Batch, Stage: registry.Expand, ItemID: id}}; !slices.Equal(got, want) {
		f.Fatalf("due %+v, want %+v", got, want)
	}
	if got := f.Offer(2); len(got) != 0 {
		f.Errorf("offered twice: %+v", got)
	}
	f.Done(f.Take(registry.Expand, id).Lease)
	if got, want := f.Offer(2), []registry.Wake{{Action: registry.Batch, Stage: registry.Report, ItemID: id}}; !slices.Equal(got, want) {
		f.Errorf("after the step: due %+v, want %+v", got, want)
	}
}

func wakeWindow(f *fixture) {
	var ids []string
	for p := range 10 {
		ids = append([]string{f.Submit(func(s *registry.Submission) { priority := 9 - p; s.Priority = &priority })}, ids...)
	}
	if got := f.Offered(2); !slices.Equal(got, ids[:2]) {
		f.Fatalf("a stage without workers gets %v, want the best %v", got, ids[:2])
	}
	f.slots("w1", registry.Expand, 2)
	f.slots("w2", registry.Expand, 1)
	if got := f.Offered(2); !slices.Equal(got, ids[:6]) {
		f.Errorf("with three slots due %v, want the best %v", got, ids[:6])
	}
	if got := f.Offered(2); len(got) != 0 {
		f.Errorf("the window is full, due %v", got)
	}
}

func wakeClaimFrees(f *fixture) {
	_, jobs := f.Batch(4)
	f.Offered(2)
	f.Take(registry.Estimate, jobs[0])
	if got := f.Offered(2); !slices.Equal(got, jobs[2:3]) {
		f.Errorf("due %v, want one more", got)
	}
}

// wakeBefore: the second item's message fetches the first item. That item comes back before its own
// message, the last one, fetches it again. Now the second item has no message left and must get one
// at once.
func wakeBefore(f *fixture) {
	_, jobs := f.Batch(2)
	if got := f.Offered(2); !slices.Equal(got, jobs) {
		f.Fatalf("due %v, want %v", got, jobs)
	}
	first := f.Take(registry.Estimate, jobs[1])
	if first.Item.ID != jobs[0] {
		f.Fatalf("got %s, want %s, whose turn it is", first.Item.ID, jobs[0])
	}
	f.Settle(registry.Settlement{Lease: first.Lease, Outcome: registry.OutcomeReleased})
	if got := f.Take(registry.Estimate, jobs[0]).Item.ID; got != jobs[0] {
		f.Fatalf("got %s, want %s again", got, jobs[0])
	}
	if got := f.Offered(2); !slices.Equal(got, jobs[1:]) {
		f.Errorf("due %v, want %v", got, jobs[1:])
	}
}

func wakeRefusalFrees(f *fixture) {
	_, jobs := f.Batch(4)
	f.Offered(2)
	f.Must(f.Store.AddHold(f.Context(), registry.Hold{Scope: registry.HoldStage, Key: string(registry.Estimate), Actor: "admin"}))
	f.Refused(registry.Estimate, jobs[0])
	f.Must(f.Store.AddHold(f.Context(), registry.Hold{Scope: registry.HoldItem, Key: jobs[0], Actor: "admin"}))
	f.Must(f.Store.AddHold(f.Context(), registry.Hold{Scope: registry.HoldItem, Key: jobs[1], Actor: "admin"}))
	f.Must(f.Store.RemoveHold(f.Context(), registry.HoldStage, string(registry.Estimate), "admin"))
	if got := f.Offered(2); !slices.Equal(got, jobs[2:]) {
		f.Errorf("due %v, want the two others", got)
	}
}

func wakeRenudge(f *fixture) {
	f.Submit()
	var waits []time.Duration
	last := f.Clock.Now()
	for len(waits) < 8 {
		if len(f.Offer(2)) == 1 {
			waits = append(waits, f.Clock.Now().Sub(last))
			last = f.Clock.Now()
		}
		f.Clock.Pass(5 * time.Second)
	}
	want := []time.Duration{
		0, 30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 10 * time.Minute, 10 * time.Minute,
	}
	if !slices.Equal(waits, want) {
		f.Errorf("waits %v, want %v", waits, want)
	}
}

func wakeUndo(f *fixture) {
	id := f.Submit()
	wakes := f.Offer(2)
	f.Must(f.Store.Undo(f.Context(), wakes))
	if got := f.Offer(2); !slices.Equal(got, wakes) {
		f.Fatalf("due %v, want %v again", got, wakes)
	}
	l := f.Take(registry.Expand, id).Lease
	before := f.Item(id)
	f.Must(f.Store.Undo(f.Context(), wakes)) // late: the message arrived after all
	if got := f.Item(id); got.Status != before.Status || got.Attempt != before.Attempt {
		f.Errorf("undo changed a running item: %+v", got)
	}
	f.Settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeRetry, Delay: time.Minute, Error: "no"})
	f.Must(f.Store.Undo(f.Context(), wakes))
	if got := f.Offer(2); len(got) != 0 {
		f.Errorf("an item that is not due was offered: %v", got)
	}
}

func wakeReoffer(f *fixture) {
	_, jobs := f.Batch(4)
	running, later := f.TakeItem(jobs[0]), f.TakeItem(jobs[1])
	f.Settle(registry.Settlement{Lease: later.Lease, Outcome: registry.OutcomeRetry, Delay: time.Hour, Error: "no"})
	f.Offered(10)
	before := f.Item(jobs[0])
	f.Must(f.Store.Reoffer(f.Context()))
	if got := f.Offered(10); !slices.Equal(got, jobs[2:]) {
		f.Errorf("due %v, want what nobody answered: %v", got, jobs[2:])
	}
	if got := f.Item(jobs[0]); got.Status != before.Status || got.Attempt != running.Lease.N {
		f.Errorf("a running item changed: %+v", got)
	}
	f.Must(f.Store.Reoffer(f.Context()))
	f.Must(f.Store.Reoffer(f.Context()))
	if got := f.Offered(10); !slices.Equal(got, jobs[2:]) {
		f.Errorf("due %v after two calls, want %v", got, jobs[2:])
	}
}

func wakeSkips(f *fixture) {
	batch, jobs := f.Batch(3) // the batch is blocked
	f.Must(f.Store.AddHold(f.Context(), registry.Hold{Scope: registry.HoldItem, Key: jobs[0], Actor: "admin"}))
	f.Settle(registry.Settlement{Lease: f.TakeItem(jobs[1]).Lease, Outcome: registry.OutcomeRetry, Delay: time.Minute, Error: "no"})
	if got := f.Offered(10); !slices.Equal(got, jobs[2:]) {
		f.Errorf("due %v, want only %v of batch %s", got, jobs[2], batch)
	}
	f.Clock.Pass(time.Minute)
	if got := f.Offered(10); !slices.Contains(got, jobs[1]) || slices.Contains(got, jobs[0]) || slices.Contains(got, batch) {
		f.Errorf("due %v, want %v", got, jobs[1])
	}
}

func wakeUnhold(f *fixture) {
	id := f.Submit()
	f.Offered(2)
	f.Must(f.Store.AddHold(f.Context(), registry.Hold{Scope: registry.HoldAll, Actor: "admin"}))
	f.Refused(registry.Expand, id)
	f.Must(f.Store.RemoveHold(f.Context(), registry.HoldAll, "", "admin"))
	if got := f.Offered(2); !slices.Contains(got, id) {
		f.Errorf("due %v right after the release, want %s", got, id)
	}
}

func wakeNewWorker(f *fixture) {
	id := f.Submit()
	for range 6 {
		f.Offered(2)
		f.Clock.Pass(10 * time.Minute)
	}
	f.Offered(2)
	f.slots("w", registry.Expand, 1)
	if got := f.Offered(2); !slices.Contains(got, id) {
		f.Errorf("due %v: a stage's first worker waits for the next repeat", got)
	}
	f.slots("w", registry.Expand, 1)
	if got := f.Offered(2); len(got) != 0 {
		f.Errorf("due %v: a renewal is no news", got)
	}
}

// rung waits until the relay is woken.
func (f *fixture) rung(what string) {
	f.Helper()
	select {
	case <-f.Store.Woken():
	case <-time.After(10 * time.Second):
		f.Fatalf("%s did not ring", what)
	}
}

func wakeRings(f *fixture) {
	id := f.Submit()
	f.rung("a submission")
	l := f.Take(registry.Expand, id).Lease
	f.rung("a claim")
	f.Done(l)
	f.rung("a settle")
}
