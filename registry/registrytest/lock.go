package registrytest

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/holdfast/holdfast/registry"
)

func lockTests() []test {
	return []test{
		{"R01_all_of_an_items_keys_or_none", allOrNone},
		{"R01_locks_are_granted_in_submit_order", submitOrder},
		{"R01_a_later_deposit_does_not_overtake_an_earlier_one", noOvertaking},
		{"R01_a_batch_that_is_expanded_late_keeps_its_place", expandedLate},
		{"R01_a_batch_that_comes_to_nothing_keeps_nobody", comesToNothing},
		{"R01_rows_that_are_expanded_late_keep_their_place", rowsLate},
		{"R01_rows_of_one_batch_that_name_one_object_keep_their_order", rowsOfOneObject},
		{"R01_a_lock_is_kept_over_a_lost_attempt", keptOverLoss},
		{"R01_a_lock_is_kept_from_one_that_was_submitted_earlier", keptFromEarlier},
		{"R01_a_settled_item_frees_its_locks_and_wakes_who_waits", settleUnlocks},
		{"R01_no_wake_up_is_lost_before_the_snooze", noLostWakeUp},
		{"R01_a_waiter_that_settles_lets_the_next_one_go", waiterSettles},
		{"R01_an_open_intent_keeps_its_lock", intentKeepsLock},
		{"R01_a_folder_that_two_objects_would_have_is_a_lock", folderLock},
		{"R11_one_of_many_gets_it", lockRace},
		{"lock_store", lockStore},
	}
}

// processing makes n jobs and claims each at process, in submit order.
func (f *fixture) processing(n int) []registry.Claim {
	f.Helper()
	_, jobs := f.batch(n)
	claims := make([]registry.Claim, n)
	for _, job := range jobs {
		f.bring(job, registry.Process)
	}
	for i, job := range jobs {
		claims[i] = f.takeItem(job)
	}
	return claims
}

// named asks for an object by local ids, proposing a name that no other call proposes.
func (f *fixture) named(l registry.Lease, local ...string) (registry.Identity, error) {
	return f.Identify(f.Context(), l, registry.IdentifyRequest{
		Owner: owner, LocalIDs: local, Proposed: f.unique("ark:/99999/fk"),
	})
}

// locks must get the object.
func (f *fixture) locks(l registry.Lease, local ...string) registry.Identity {
	f.Helper()
	id, err := f.named(l, local...)
	f.must(err)
	return id
}

// waits must be refused because of holder.
func (f *fixture) waits(l, holder registry.Lease, local ...string) {
	f.Helper()
	_, err := f.named(l, local...)
	var locked *registry.LockedError
	if !errors.As(err, &locked) {
		f.Fatalf("identify: %v, want that it is locked", err)
	}
	if locked.ItemID != holder.ItemID {
		f.Errorf("locked by %s, want %s", locked.ItemID, holder.ItemID)
	}
}

// snooze is what a worker does that has to wait for a lock.
func (f *fixture) snooze(l registry.Lease) {
	f.Helper()
	f.settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeSnooze, Reason: registry.ReasonLocked, Delay: time.Minute, Error: "locked"})
}

func allOrNone(f *fixture) {
	c := f.processing(3)
	f.locks(c[1].Lease, "b")
	f.waits(c[0].Lease, c[1].Lease, "a", "b")
	f.waits(c[2].Lease, c[0].Lease, "a") // c[0] has nothing, but stands in front
	f.done(c[1].Lease)
	f.finish(c[1].Item.ID)
	f.locks(c[0].Lease, "a", "b")
	f.waits(c[2].Lease, c[0].Lease, "a")
}

func submitOrder(f *fixture) {
	c := f.processing(4)
	f.locks(c[0].Lease, "x")
	f.waits(c[3].Lease, c[0].Lease, "x")
	f.snooze(c[3].Lease)
	f.waits(c[1].Lease, c[0].Lease, "x")
	f.snooze(c[1].Lease)
	f.waits(c[2].Lease, c[0].Lease, "x")
	f.snooze(c[2].Lease)
	f.done(c[0].Lease)
	f.finish(c[0].Item.ID)
	for i := 1; i < 4; i++ {
		for j := i + 1; j < 4; j++ {
			if got := f.item(c[j].Item.ID).Status; got != registry.Pending {
				f.Errorf("job %d is %s in the turn of job %d", j, got, i)
			}
		}
		l := f.take(registry.Process, "").Lease
		if l.ItemID != c[i].Item.ID {
			f.Fatalf("turn %d went to %s, want %s", i, l.ItemID, c[i].Item.ID)
		}
		f.refusedAt(registry.Process, registry.ReasonLocked, c[i+1:]...)
		f.locks(l, "x")
		f.done(l)
		f.finish(l.ItemID)
	}
}

// refusedAt checks that none of the claimed items can be had again now.
func (f *fixture) refusedAt(stage registry.Stage, why registry.Reason, claims ...registry.Claim) {
	f.Helper()
	for _, c := range claims {
		if got := f.refused(stage, c.Item.ID).Reason; got != why {
			f.Errorf("claim of %s: %s, want %s", c.Item.ID, got, why)
		}
	}
}

// noOvertaking: two deposits name the same object; the second one is through its download first.
func noOvertaking(f *fixture) {
	for _, named := range []registry.Spec{{LocalIDs: []string{"x"}}, {PrimaryID: "ark:/99999/x"}} {
		var jobs []string
		for range 2 {
			batch := f.submit()
			c := f.takeItem(batch)
			job := newJobs(1)
			job[0].Spec.LocalIDs, job[0].Spec.PrimaryID = named.LocalIDs, named.PrimaryID
			_, err := f.AddJobs(f.Context(), c.Lease, job)
			f.must(err)
			f.done(c.Lease)
			jobs = append(jobs, f.children(batch)...)
		}
		f.bring(jobs[1], registry.Process)
		if got := f.refused(registry.Process, jobs[1]).Reason; got != registry.ReasonLocked {
			f.Errorf("the later one: %s, want locked", got)
		}
		f.bring(jobs[0], registry.Process)
		f.finish(jobs[0])
		if c := f.takeItem(jobs[1]); c.Item.ID != jobs[1] {
			f.Errorf("claimed %s", c.Item.ID)
		}
	}
}

// ofObject makes a submission name an object.
func ofObject(s *registry.Submission) { s.Spec.LocalIDs = []string{"x"} }

// expandRows expands a batch to n jobs that name one object.
func (f *fixture) expandRows(c registry.Claim, n int) (jobs []string) {
	f.Helper()
	rows := newJobs(n)
	for i := range rows {
		rows[i].Spec.LocalIDs = []string{"x"}
	}
	_, err := f.AddJobs(f.Context(), c.Lease, rows)
	f.must(err)
	f.done(c.Lease)
	return f.children(c.Item.ID)
}

// inTurn brings jobs to process, the last one first, and checks that each goes only when those before it have ended.
func (f *fixture) inTurn(jobs ...string) {
	f.Helper()
	for i := len(jobs) - 1; i >= 0; i-- {
		f.bring(jobs[i], registry.Process)
	}
	for i, job := range jobs {
		c := f.take(registry.Process, job)
		if c.Item.ID != job {
			f.Fatalf("turn %d went to %s, want %s", i, c.Item.ID, job)
		}
		for _, later := range jobs[i+1:] {
			if got := f.refused(registry.Process, later).Reason; got != registry.ReasonLocked {
				f.Errorf("a later one in the turn of job %d: %s, want locked", i, got)
			}
		}
		f.locks(c.Lease, "x")
		f.done(c.Lease)
		f.finish(job)
	}
}

// twoBatches submits a batch and, a moment later, another one, and claims both to be expanded.
func (f *fixture) twoBatches(change ...func(*registry.Submission)) (early, late registry.Claim) {
	f.Helper()
	early = f.take(registry.Expand, f.submit(change...))
	f.clock.pass(time.Microsecond)
	return early, f.take(registry.Expand, f.submit(change...))
}

// expandedLate: the source of the first of two deposits is slow to say what it has.
func expandedLate(f *fixture) {
	early, late := f.twoBatches(ofObject)
	b := f.expandRows(late, 1)[0]
	f.bring(b, registry.Process)
	if got := f.refused(registry.Process, b).Reason; got != registry.ReasonLocked {
		f.Errorf("the later deposit, while the earlier one is being expanded: %s, want locked", got)
	}
	f.inTurn(f.expandRows(early, 1)[0], b)
}

func comesToNothing(f *fixture) {
	for _, s := range []registry.Settlement{
		{Outcome: registry.OutcomeDone},
		{Outcome: registry.OutcomeFailed, Class: registry.ContentFault, Error: "no manifest"},
	} {
		early, late := f.twoBatches(ofObject)
		job := f.expandRows(late, 1)[0]
		f.bring(job, registry.Process)
		if got := f.refused(registry.Process, job).Reason; got != registry.ReasonLocked {
			f.Errorf("behind a batch that may have a job: %s, want locked", got)
		}
		s.Lease = early.Lease
		f.settle(s)
		c := f.take(registry.Process, job)
		f.locks(c.Lease, "x")
		f.done(c.Lease)
		f.finish(job)
	}
}

// rowsLate: what two manifests name shows only when they are expanded, the later one first.
func rowsLate(f *fixture) {
	early, late := f.twoBatches()
	b := f.expandRows(late, 1)
	f.inTurn(append(f.expandRows(early, 1), b...)...)
}

func rowsOfOneObject(f *fixture) {
	f.inTurn(f.expandRows(f.take(registry.Expand, f.submit()), 3)...)
}

func keptOverLoss(f *fixture) {
	c := f.processing(2)
	first := f.locks(c[0].Lease, "x")
	f.renew(beat(c[1].Lease))
	f.settle(registry.Settlement{Lease: c[0].Lease, Outcome: registry.OutcomeRetry, Error: "no", Delay: time.Hour})
	f.waits(c[1].Lease, c[0].Lease, "x")
	f.snooze(c[1].Lease)
	f.clock.pass(time.Hour)
	f.takeItem(c[0].Item.ID)
	f.sweep(0)
	f.sweep(2 * lease) // and lost
	f.clock.pass(time.Hour)
	l := f.takeItem(c[0].Item.ID).Lease
	if again := f.locks(l, "x"); again != first {
		f.Errorf("identity %+v, want %+v", again, first)
	}
}

func keptFromEarlier(f *fixture) {
	c := f.processing(2)
	f.locks(c[1].Lease, "x") // the later one is the faster one
	f.waits(c[0].Lease, c[1].Lease, "x")
	f.snooze(c[0].Lease)
	f.settle(registry.Settlement{Lease: c[1].Lease, Outcome: registry.OutcomeRetry, Error: "no"})
	l := f.takeItem(c[1].Item.ID).Lease
	f.locks(l, "x") // it keeps what it has: it may have written half of a version
	f.refusedAt(registry.Process, registry.ReasonLocked, c[0])
}

func settleUnlocks(f *fixture) {
	for _, end := range []func(registry.Claim){
		func(c registry.Claim) { f.done(c.Lease); f.finish(c.Item.ID) },
		func(c registry.Claim) {
			f.settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeFailed, Class: registry.ContentFault, Error: "no"})
		},
		func(c registry.Claim) {
			f.settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeReleased})
			f.command(c.Item.ID, registry.ActCancel, "")
		},
	} {
		c := f.processing(2)
		x := f.unique("local")
		f.locks(c[0].Lease, x)
		f.waits(c[1].Lease, c[0].Lease, x)
		f.snooze(c[1].Lease)
		f.refusedAt(registry.Process, registry.ReasonLocked, c[1])
		end(c[0])
		if got := f.offered(100); !has(got, c[1].Item.ID) {
			f.Errorf("due %v: who waited for the lock is not rung for", got)
		}
		l := f.take(registry.Process, c[1].Item.ID).Lease
		f.locks(l, x)
		f.done(l)
		f.finish(l.ItemID)
	}
}

// A folder's lock is taken with the others, kept and freed as they are.
func folderLock(f *fixture) {
	c := f.processing(2)
	ask := func(i int, ark string) error {
		_, err := f.Identify(f.Context(), c[i].Lease, registry.IdentifyRequest{Owner: owner, Supplied: ark, Folders: []string{"folder:storage:X"}})
		return err
	}
	f.must(ask(0, "ark:/99999/X"))
	f.must(ask(0, "ark:/99999/X"))
	locked := new(registry.LockedError)
	if err := ask(1, "ark:/12345/X"); !errors.As(err, &locked) || locked.ItemID != c[0].Item.ID {
		f.Fatalf("identify: %v, want that %s has the folder", err, c[0].Item.ID)
	}
	f.snooze(c[1].Lease)
	f.refusedAt(registry.Process, registry.ReasonLocked, c[1])
	f.settle(registry.Settlement{Lease: c[0].Lease, Outcome: registry.OutcomeFailed, Class: registry.ContentFault, Error: "no"})
	c[1] = f.take(registry.Process, c[1].Item.ID)
	f.must(ask(1, "ark:/12345/X"))
}

func noLostWakeUp(f *fixture) {
	c := f.processing(2)
	f.locks(c[0].Lease, "x")
	f.waits(c[1].Lease, c[0].Lease, "x")
	f.done(c[0].Lease)
	f.finish(c[0].Item.ID) // frees the lock while the other is still on its way to its snooze
	f.snooze(c[1].Lease)
	f.take(registry.Process, c[1].Item.ID)
}

func waiterSettles(f *fixture) {
	c := f.processing(3)
	f.locks(c[1].Lease, "x")
	f.waits(c[0].Lease, c[1].Lease, "x")
	f.waits(c[2].Lease, c[1].Lease, "x")
	f.snooze(c[2].Lease)
	f.done(c[1].Lease)
	f.finish(c[1].Item.ID)
	f.refusedAt(registry.Process, registry.ReasonLocked, c[2])
	f.settle(registry.Settlement{Lease: c[0].Lease, Outcome: registry.OutcomeFailed, Class: registry.ContentFault, Error: "no"})
	f.locks(f.take(registry.Process, c[2].Item.ID).Lease, "x")
}

func intentKeepsLock(f *fixture) {
	c := f.processing(2)
	id := f.locks(c[0].Lease, "x")
	f.intend(c[0].Lease, id.ARK, 1, `"plan"`)
	f.settle(registry.Settlement{Lease: c[0].Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "storage is down"})
	f.waits(c[1].Lease, c[0].Lease, "x")
	f.snooze(c[1].Lease)
	f.command(c[0].Item.ID, registry.ActRequeue, "")
	l := f.takeItem(c[0].Item.ID).Lease
	f.locks(l, "x")
	f.record(l, id.ARK, 1)
	f.done(l)
	f.finish(l.ItemID)
	next := f.locks(f.take(registry.Process, c[1].Item.ID).Lease, "x")
	if next.ARK != id.ARK || next.Head != 1 {
		f.Errorf("the next one got %+v, want %s at head 1", next, id.ARK)
	}
}

func lockRace(f *fixture) {
	const n = 10
	claims := f.processing(n)
	results := make(chan error, n)
	for _, c := range claims {
		go func() {
			_, err := f.Identify(f.Context(), c.Lease, registry.IdentifyRequest{Owner: owner, Supplied: "ark:/99999/one"})
			results <- err
		}()
	}
	got := 0
	for range n {
		err := <-results
		var locked *registry.LockedError
		switch {
		case err == nil:
			got++
		case !errors.As(err, &locked):
			f.Error(err)
		}
	}
	if got != 1 {
		f.Errorf("%d items have the lock, want 1", got)
	}
}

func lockStore(f *fixture) {
	c := f.processing(2)
	for i, ark := range []string{"ark:/99999/a", "ark:/99999/b"} {
		id, err := f.Identify(f.Context(), c[i].Lease, registry.IdentifyRequest{Owner: owner, Supplied: ark})
		f.must(err)
		if id.ARK != ark || id.Minted {
			f.Errorf("identity %+v", id)
		}
	}
	if got := f.item(c[0].Item.ID).Results["ark"]; !json.Valid(got) {
		f.Errorf("results[ark]=%s", got)
	}
}
