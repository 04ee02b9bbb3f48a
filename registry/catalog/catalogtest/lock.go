package catalogtest

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func lockTests() tests {
	return tests{
		"R01_all_of_an_items_keys_or_none":                            allOrNone,
		"R01_locks_are_granted_in_submit_order":                       submitOrder,
		"R01_a_later_deposit_does_not_overtake_an_earlier_one":        noOvertaking,
		"R01_a_batch_that_is_expanded_late_keeps_its_place":           expandedLate,
		"R01_a_batch_that_comes_to_nothing_keeps_nobody":              comesToNothing,
		"R01_rows_that_are_expanded_late_keep_their_place":            rowsLate,
		"R01_rows_of_one_batch_that_name_one_object_keep_their_order": rowsOfOneObject,
		"R01_a_lock_is_kept_over_a_lost_attempt":                      keptOverLoss,
		"R01_a_lock_is_kept_from_one_that_was_submitted_earlier":      keptFromEarlier,
		"R01_a_settled_item_frees_its_locks_and_wakes_who_waits":      settleUnlocks,
		"R01_no_wake_up_is_lost_before_the_snooze":                    noLostWakeUp,
		"R01_a_waiter_that_settles_lets_the_next_one_go":              waiterSettles,
		"R01_an_open_intent_keeps_its_lock":                           intentKeepsLock,
		"R01_a_folder_that_two_objects_would_have_is_a_lock":          folderLock,
		"R11_one_of_many_gets_it":                                     lockRace,
		"lock_store":                                                  lockStore,
	}
}

func allOrNone(f *fixture) {
	c := f.Processing(3)
	f.Named(c[1].Lease, "b")
	f.Waits(c[0].Lease, c[1].Lease, "a", "b")
	f.Waits(c[2].Lease, c[0].Lease, "a") // c[0] has nothing, but stands in front
	f.Done(c[1].Lease)
	f.Finish(c[1].Item.ID)
	f.Named(c[0].Lease, "a", "b")
	f.Waits(c[2].Lease, c[0].Lease, "a")
}

func submitOrder(f *fixture) {
	c := f.Processing(4)
	f.Named(c[0].Lease, "x")
	f.Waits(c[3].Lease, c[0].Lease, "x")
	f.Snooze(c[3].Lease)
	f.Waits(c[1].Lease, c[0].Lease, "x")
	f.Snooze(c[1].Lease)
	f.Waits(c[2].Lease, c[0].Lease, "x")
	f.Snooze(c[2].Lease)
	f.Done(c[0].Lease)
	f.Finish(c[0].Item.ID)
	for i := 1; i < 4; i++ {
		for j := i + 1; j < 4; j++ {
			if got := f.Item(c[j].Item.ID).Status; got != registry.Pending {
				f.Errorf("job %d is %s in the turn of job %d", j, got, i)
			}
		}
		l := f.Take(registry.Process, "").Lease
		if l.ItemID != c[i].Item.ID {
			f.Fatalf("turn %d went to %s, want %s", i, l.ItemID, c[i].Item.ID)
		}
		f.refusedAt(registry.Process, registry.ReasonLocked, c[i+1:]...)
		f.Named(l, "x")
		f.Done(l)
		f.Finish(l.ItemID)
	}
}

// refusedAt checks that none of the claimed items can be claimed again now.
func (f *fixture) refusedAt(stage registry.Stage, why registry.Reason, claims ...registry.Claim) {
	f.Helper()
	for _, c := range claims {
		if got := f.Refused(stage, c.Item.ID).Reason; got != why {
			f.Errorf("claim of %s: %s, want %s", c.Item.ID, got, why)
		}
	}
}

// noOvertaking: of two deposits to one object, the second is downloaded first and still waits.
func noOvertaking(f *fixture) {
	for _, named := range []registry.Spec{{LocalIDs: []string{"x"}}, {PrimaryID: "ark:/99999/x"}} {
		var jobs []string
		for range 2 {
			batch := f.Submit()
			c := f.TakeItem(batch)
			job := registrytest.NewJobs(1)
			job[0].Spec.LocalIDs, job[0].Spec.PrimaryID = named.LocalIDs, named.PrimaryID
			_, err := f.Store.AddJobs(f.Context(), c.Lease, job)
			f.Must(err)
			f.Done(c.Lease)
			jobs = append(jobs, f.Children(batch)...)
		}
		f.Bring(jobs[1], registry.Process)
		if got := f.Refused(registry.Process, jobs[1]).Reason; got != registry.ReasonLocked {
			f.Errorf("the later one: %s, want locked", got)
		}
		f.Bring(jobs[0], registry.Process)
		f.Finish(jobs[0])
		if c := f.TakeItem(jobs[1]); c.Item.ID != jobs[1] {
			f.Errorf("claimed %s", c.Item.ID)
		}
	}
}

// ofObject makes a submission name an object.
func ofObject(s *registry.Submission) { s.Spec.LocalIDs = []string{"x"} }

// expandRows expands a batch to n jobs for one object.
func (f *fixture) expandRows(c registry.Claim, n int) (jobs []string) {
	f.Helper()
	rows := registrytest.NewJobs(n)
	for i := range rows {
		rows[i].Spec.LocalIDs = []string{"x"}
	}
	_, err := f.Store.AddJobs(f.Context(), c.Lease, rows)
	f.Must(err)
	f.Done(c.Lease)
	return f.Children(c.Item.ID)
}

// inTurn brings jobs to process, the last one first, and checks that each continues only after
// those before it.
func (f *fixture) inTurn(jobs ...string) {
	f.Helper()
	for i := len(jobs) - 1; i >= 0; i-- {
		f.Bring(jobs[i], registry.Process)
	}
	for i, job := range jobs {
		c := f.Take(registry.Process, job)
		if c.Item.ID != job {
			f.Fatalf("turn %d went to %s, want %s", i, c.Item.ID, job)
		}
		for _, later := range jobs[i+1:] {
			if got := f.Refused(registry.Process, later).Reason; got != registry.ReasonLocked {
				f.Errorf("a later one in the turn of job %d: %s, want locked", i, got)
			}
		}
		f.Named(c.Lease, "x")
		f.Done(c.Lease)
		f.Finish(job)
	}
}

// twoBatches submits two batches, one moment apart, and claims both at expand.
func (f *fixture) twoBatches(change ...func(*registry.Submission)) (early, late registry.Claim) {
	f.Helper()
	early = f.Take(registry.Expand, f.Submit(change...))
	f.Clock.Pass(time.Microsecond)
	return early, f.Take(registry.Expand, f.Submit(change...))
}

// expandedLate: the source of the first of two deposits answers late.
func expandedLate(f *fixture) {
	early, late := f.twoBatches(ofObject)
	b := f.expandRows(late, 1)[0]
	f.Bring(b, registry.Process)
	if got := f.Refused(registry.Process, b).Reason; got != registry.ReasonLocked {
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
		f.Bring(job, registry.Process)
		if got := f.Refused(registry.Process, job).Reason; got != registry.ReasonLocked {
			f.Errorf("behind a batch that may have a job: %s, want locked", got)
		}
		s.Lease = early.Lease
		f.Settle(s)
		c := f.Take(registry.Process, job)
		f.Named(c.Lease, "x")
		f.Done(c.Lease)
		f.Finish(job)
	}
}

// rowsLate: the objects of two manifests are known only after expand, and the later batch is
// expanded first.
func rowsLate(f *fixture) {
	early, late := f.twoBatches()
	b := f.expandRows(late, 1)
	f.inTurn(append(f.expandRows(early, 1), b...)...)
}

func rowsOfOneObject(f *fixture) {
	f.inTurn(f.expandRows(f.Take(registry.Expand, f.Submit()), 3)...)
}

func keptOverLoss(f *fixture) {
	c := f.Processing(2)
	first := f.Named(c[0].Lease, "x")
	f.Renew(registrytest.Beat(c[1].Lease))
	f.Settle(registry.Settlement{Lease: c[0].Lease, Outcome: registry.OutcomeRetry, Error: "no", Delay: time.Hour})
	f.Waits(c[1].Lease, c[0].Lease, "x")
	f.Snooze(c[1].Lease)
	f.Clock.Pass(time.Hour)
	f.TakeItem(c[0].Item.ID)
	f.Sweep(0)
	f.Sweep(2 * registrytest.Lease) // and lost
	f.Clock.Pass(time.Hour)
	l := f.TakeItem(c[0].Item.ID).Lease
	if again := f.Named(l, "x"); again != first {
		f.Errorf("identity %+v, want %+v", again, first)
	}
}

func keptFromEarlier(f *fixture) {
	c := f.Processing(2)
	f.Named(c[1].Lease, "x") // the later one is the faster one
	f.Waits(c[0].Lease, c[1].Lease, "x")
	f.Snooze(c[0].Lease)
	f.Settle(registry.Settlement{Lease: c[1].Lease, Outcome: registry.OutcomeRetry, Error: "no"})
	l := f.TakeItem(c[1].Item.ID).Lease
	f.Named(l, "x") // it keeps what it has: it may have written half of a version
	f.refusedAt(registry.Process, registry.ReasonLocked, c[0])
}

func settleUnlocks(f *fixture) {
	for _, end := range []func(registry.Claim){
		func(c registry.Claim) { f.Done(c.Lease); f.Finish(c.Item.ID) },
		func(c registry.Claim) {
			f.Settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeFailed, Class: registry.ContentFault, Error: "no"})
		},
		func(c registry.Claim) {
			f.Settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeReleased})
			f.Command(c.Item.ID, registry.ActCancel, "")
		},
	} {
		c := f.Processing(2)
		x := f.Unique("local")
		f.Named(c[0].Lease, x)
		f.Waits(c[1].Lease, c[0].Lease, x)
		f.Snooze(c[1].Lease)
		f.refusedAt(registry.Process, registry.ReasonLocked, c[1])
		end(c[0])
		if got := f.Offered(100); !slices.Contains(got, c[1].Item.ID) {
			f.Errorf("due %v: who waited for the lock is not rung for", got)
		}
		l := f.Take(registry.Process, c[1].Item.ID).Lease
		f.Named(l, x)
		f.Done(l)
		f.Finish(l.ItemID)
	}
}

// folderLock: a folder's lock is taken, kept and freed together with the others.
func folderLock(f *fixture) {
	c := f.Processing(2)
	ask := func(i int, ark string) error {
		_, err := f.Store.Identify(f.Context(), c[i].Lease, registry.IdentifyRequest{Owner: registrytest.Owner, Supplied: ark, Folders: []string{"folder:storage:X"}})
		return err
	}
	f.Must(ask(0, "ark:/99999/X"))
	f.Must(ask(0, "ark:/99999/X"))
	locked := new(registry.LockedError)
	if err := ask(1, "ark:/12345/X"); !errors.As(err, &locked) || locked.ItemID != c[0].Item.ID {
		f.Fatalf("identify: %v, want that %s has the folder", err, c[0].Item.ID)
	}
	f.Snooze(c[1].Lease)
	f.refusedAt(registry.Process, registry.ReasonLocked, c[1])
	f.Settle(registry.Settlement{Lease: c[0].Lease, Outcome: registry.OutcomeFailed, Class: registry.ContentFault, Error: "no"})
	c[1] = f.Take(registry.Process, c[1].Item.ID)
	f.Must(ask(1, "ark:/12345/X"))
}

func noLostWakeUp(f *fixture) {
	c := f.Processing(2)
	f.Named(c[0].Lease, "x")
	f.Waits(c[1].Lease, c[0].Lease, "x")
	f.Done(c[0].Lease)
	f.Finish(c[0].Item.ID) // frees the lock while the other is still on its way to its snooze
	f.Snooze(c[1].Lease)
	f.Take(registry.Process, c[1].Item.ID)
}

func waiterSettles(f *fixture) {
	c := f.Processing(3)
	f.Named(c[1].Lease, "x")
	f.Waits(c[0].Lease, c[1].Lease, "x")
	f.Waits(c[2].Lease, c[1].Lease, "x")
	f.Snooze(c[2].Lease)
	f.Done(c[1].Lease)
	f.Finish(c[1].Item.ID)
	f.refusedAt(registry.Process, registry.ReasonLocked, c[2])
	f.Settle(registry.Settlement{Lease: c[0].Lease, Outcome: registry.OutcomeFailed, Class: registry.ContentFault, Error: "no"})
	f.Named(f.Take(registry.Process, c[2].Item.ID).Lease, "x")
}

func intentKeepsLock(f *fixture) {
	c := f.Processing(2)
	id := f.Named(c[0].Lease, "x")
	f.Intend(c[0].Lease, id.ARK, 1, `"plan"`)
	f.Settle(registry.Settlement{Lease: c[0].Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "storage is down"})
	f.Waits(c[1].Lease, c[0].Lease, "x")
	f.Snooze(c[1].Lease)
	f.Command(c[0].Item.ID, registry.ActRequeue, "")
	l := f.TakeItem(c[0].Item.ID).Lease
	f.Named(l, "x")
	f.Record(l, id.ARK, 1)
	f.Done(l)
	f.Finish(l.ItemID)
	next := f.Named(f.Take(registry.Process, c[1].Item.ID).Lease, "x")
	if next.ARK != id.ARK || next.Head != 1 {
		f.Errorf("the next one got %+v, want %s at head 1", next, id.ARK)
	}
}

func lockRace(f *fixture) {
	const n = 10
	claims := f.Processing(n)
	results := make(chan error, n)
	for _, c := range claims {
		go func() {
			_, err := f.Store.Identify(f.Context(), c.Lease, registry.IdentifyRequest{Owner: registrytest.Owner, Supplied: "ark:/99999/one"})
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
	c := f.Processing(2)
	for i, ark := range []string{"ark:/99999/a", "ark:/99999/b"} {
		id, err := f.Store.Identify(f.Context(), c[i].Lease, registry.IdentifyRequest{Owner: registrytest.Owner, Supplied: ark})
		f.Must(err)
		if id.ARK != ark || id.Minted {
			f.Errorf("identity %+v", id)
		}
	}
	if got := f.Item(c[0].Item.ID).Results["ark"]; !json.Valid(got) {
		f.Errorf("results[ark]=%s", got)
	}
}
