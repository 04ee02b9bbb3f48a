package registrytest

import (
	"slices"
	"time"

	"github.com/holdfast/holdfast/registry"
)

func wakeTests() []test {
	return []test{
		{"I1_a_new_item_is_rung_for", wakeNew},
		{"R20_best_first_and_at_most_a_window", wakeWindow},
		{"R20_a_claim_frees_its_place", wakeClaimFrees},
		{"R20_a_message_of_before_rings_for_another", wakeBefore},
		{"R20_a_refusal_frees_its_place", wakeRefusalFrees},
		{"R19_an_unanswered_message_is_repeated_ever_later", wakeRenudge},
		{"R19_a_failed_publish_is_taken_back", wakeUndo},
		{"R19_what_was_lost_in_bulk_is_offered_again", wakeReoffer},
		{"R20_what_cannot_run_is_not_offered", wakeSkips},
		{"R20_a_release_of_a_hold_rings", wakeUnhold},
		{"a_new_worker_is_rung_for", wakeNewWorker},
		{"commits_ring", wakeRings},
	}
}

// offer looks what is due, with a window of n.
func (f *fixture) offer(n int) []registry.Wake {
	f.Helper()
	wakes, err := f.Due(f.Context(), registry.DueRequest{Window: n, Renudge: 30 * time.Second, RenudgeMax: 10 * time.Minute})
	f.must(err)
	return wakes
}

func (f *fixture) offered(n int) []string {
	f.Helper()
	var ids []string
	for _, w := range f.offer(n) {
		ids = append(ids, w.ItemID)
	}
	return ids
}

// slots makes a worker known that has n slots at a stage.
func (f *fixture) slots(worker string, stage registry.Stage, n int) {
	f.Helper()
	_, err := f.Renew(f.Context(), registry.RenewRequest{Worker: registry.WorkerInfo{ID: worker, Capacity: map[registry.Stage]int{stage: n}}})
	f.must(err)
}

func wakeNew(f *fixture) {
	id := f.submit()
	if got, want := f.offer(2), []registry.Wake{{Action: registry.Batch, Stage: registry.Expand, ItemID: id}}; !slices.Equal(got, want) {
		f.Fatalf("due %+v, want %+v", got, want)
	}
	if got := f.offer(2); len(got) != 0 {
		f.Errorf("offered twice: %+v", got)
	}
	f.done(f.take(registry.Expand, id).Lease)
	if got, want := f.offer(2), []registry.Wake{{Action: registry.Batch, Stage: registry.Report, ItemID: id}}; !slices.Equal(got, want) {
		f.Errorf("after the step: due %+v, want %+v", got, want)
	}
}

func wakeWindow(f *fixture) {
	var ids []string
	for p := range 10 {
		ids = append([]string{f.submit(func(s *registry.Submission) { priority := 9 - p; s.Priority = &priority })}, ids...)
	}
	if got := f.offered(2); !slices.Equal(got, ids[:2]) {
		f.Fatalf("a stage without workers gets %v, want the best %v", got, ids[:2])
	}
	f.slots("w1", registry.Expand, 2)
	f.slots("w2", registry.Expand, 1)
	if got := f.offered(2); !slices.Equal(got, ids[:6]) {
		f.Errorf("with three slots due %v, want the best %v", got, ids[:6])
	}
	if got := f.offered(2); len(got) != 0 {
		f.Errorf("the window is full, due %v", got)
	}
}

func wakeClaimFrees(f *fixture) {
	_, jobs := f.batch(4)
	f.offered(2)
	f.take(registry.Estimate, jobs[0])
	if got := f.offered(2); !slices.Equal(got, jobs[2:3]) {
		f.Errorf("due %v, want one more", got)
	}
}

// wakeBefore: the second item's message fetches the first, which comes back before its own message, the last one, fetches
// it again. The second item has no message on its way then, and must be rung for at once.
func wakeBefore(f *fixture) {
	_, jobs := f.batch(2)
	if got := f.offered(2); !slices.Equal(got, jobs) {
		f.Fatalf("due %v, want %v", got, jobs)
	}
	first := f.take(registry.Estimate, jobs[1])
	if first.Item.ID != jobs[0] {
		f.Fatalf("got %s, want %s, whose turn it is", first.Item.ID, jobs[0])
	}
	f.settle(registry.Settlement{Lease: first.Lease, Outcome: registry.OutcomeReleased})
	if got := f.take(registry.Estimate, jobs[0]).Item.ID; got != jobs[0] {
		f.Fatalf("got %s, want %s again", got, jobs[0])
	}
	if got := f.offered(2); !slices.Equal(got, jobs[1:]) {
		f.Errorf("due %v, want %v", got, jobs[1:])
	}
}

func wakeRefusalFrees(f *fixture) {
	_, jobs := f.batch(4)
	f.offered(2)
	f.must(f.AddHold(f.Context(), registry.Hold{Scope: registry.HoldStage, Key: string(registry.Estimate), Actor: "admin"}))
	f.refused(registry.Estimate, jobs[0])
	f.must(f.AddHold(f.Context(), registry.Hold{Scope: registry.HoldItem, Key: jobs[0], Actor: "admin"}))
	f.must(f.AddHold(f.Context(), registry.Hold{Scope: registry.HoldItem, Key: jobs[1], Actor: "admin"}))
	f.must(f.RemoveHold(f.Context(), registry.HoldStage, string(registry.Estimate), "admin"))
	if got := f.offered(2); !slices.Equal(got, jobs[2:]) {
		f.Errorf("due %v, want the two others", got)
	}
}

func wakeRenudge(f *fixture) {
	f.submit()
	var waits []time.Duration
	last := f.clock.now()
	for len(waits) < 8 {
		if len(f.offer(2)) == 1 {
			waits = append(waits, f.clock.now().Sub(last))
			last = f.clock.now()
		}
		f.clock.pass(5 * time.Second)
	}
	want := []time.Duration{
		0, 30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 10 * time.Minute, 10 * time.Minute,
	}
	if !slices.Equal(waits, want) {
		f.Errorf("waits %v, want %v", waits, want)
	}
}

func wakeUndo(f *fixture) {
	id := f.submit()
	wakes := f.offer(2)
	f.must(f.Undo(f.Context(), wakes))
	if got := f.offer(2); !slices.Equal(got, wakes) {
		f.Fatalf("due %v, want %v again", got, wakes)
	}
	l := f.take(registry.Expand, id).Lease
	before := f.item(id)
	f.must(f.Undo(f.Context(), wakes)) // late: the message arrived after all
	if got := f.item(id); got.Status != before.Status || got.Attempt != before.Attempt {
		f.Errorf("undo changed a running item: %+v", got)
	}
	f.settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeRetry, Delay: time.Minute, Error: "no"})
	f.must(f.Undo(f.Context(), wakes))
	if got := f.offer(2); len(got) != 0 {
		f.Errorf("an item that is not due was offered: %v", got)
	}
}

func wakeReoffer(f *fixture) {
	_, jobs := f.batch(4)
	running, later := f.takeItem(jobs[0]), f.takeItem(jobs[1])
	f.settle(registry.Settlement{Lease: later.Lease, Outcome: registry.OutcomeRetry, Delay: time.Hour, Error: "no"})
	f.offered(10)
	before := f.item(jobs[0])
	f.must(f.Reoffer(f.Context()))
	if got := f.offered(10); !slices.Equal(got, jobs[2:]) {
		f.Errorf("due %v, want what nobody answered: %v", got, jobs[2:])
	}
	if got := f.item(jobs[0]); got.Status != before.Status || got.Attempt != running.Lease.N {
		f.Errorf("a running item changed: %+v", got)
	}
	f.must(f.Reoffer(f.Context()))
	f.must(f.Reoffer(f.Context()))
	if got := f.offered(10); !slices.Equal(got, jobs[2:]) {
		f.Errorf("due %v after two calls, want %v", got, jobs[2:])
	}
}

func wakeSkips(f *fixture) {
	batch, jobs := f.batch(3) // the batch is blocked
	f.must(f.AddHold(f.Context(), registry.Hold{Scope: registry.HoldItem, Key: jobs[0], Actor: "admin"}))
	f.settle(registry.Settlement{Lease: f.takeItem(jobs[1]).Lease, Outcome: registry.OutcomeRetry, Delay: time.Minute, Error: "no"})
	if got := f.offered(10); !slices.Equal(got, jobs[2:]) {
		f.Errorf("due %v, want only %v of batch %s", got, jobs[2], batch)
	}
	f.clock.pass(time.Minute)
	if got := f.offered(10); !has(got, jobs[1]) || has(got, jobs[0]) || has(got, batch) {
		f.Errorf("due %v, want %v", got, jobs[1])
	}
}

func wakeUnhold(f *fixture) {
	id := f.submit()
	f.offered(2)
	f.must(f.AddHold(f.Context(), registry.Hold{Scope: registry.HoldAll, Actor: "admin"}))
	f.refused(registry.Expand, id)
	f.must(f.RemoveHold(f.Context(), registry.HoldAll, "", "admin"))
	if got := f.offered(2); !has(got, id) {
		f.Errorf("due %v right after the release, want %s", got, id)
	}
}

func wakeNewWorker(f *fixture) {
	id := f.submit()
	for range 6 {
		f.offered(2)
		f.clock.pass(10 * time.Minute)
	}
	f.offered(2)
	f.slots("w", registry.Expand, 1)
	if got := f.offered(2); !has(got, id) {
		f.Errorf("due %v: a stage's first worker waits for the next repeat", got)
	}
	f.slots("w", registry.Expand, 1)
	if got := f.offered(2); len(got) != 0 {
		f.Errorf("due %v: a renewal is no news", got)
	}
}

// rung waits for the bell, which may be far away.
func (f *fixture) rung(what string) {
	f.Helper()
	select {
	case <-f.Woken():
	case <-time.After(10 * time.Second):
		f.Fatalf("%s did not ring", what)
	}
}

func wakeRings(f *fixture) {
	id := f.submit()
	f.rung("a submission")
	l := f.take(registry.Expand, id).Lease
	f.rung("a claim")
	f.done(l)
	f.rung("a settle")
}
