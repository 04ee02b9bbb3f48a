package worktest

import (
	"slices"
	"sync"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func sweepTests() tests {
	return tests{
		"I4_a_lost_item_goes_on":                         lostGoesOn,
		"a_renewed_lease_is_left_alone":                  renewedIsLeft,
		"I11_losses_are_bounded":                         lossesBounded,
		"R13_a_loss_after_progress_is_not_charged":       lossAfterProgress,
		"R13_losses_after_progress_end_all_the_same":     progressLossesEnd,
		"R13_a_loss_in_company_is_not_charged":           lossInCompany,
		"R13_after_five_losses_it_runs_alone":            runsAlone,
		"R20_what_runs_alone_takes_no_message_of_others": aloneRingsAgain,
		"R13_the_quietest_worker_comes_to_rest":          comesToRest,
		"R14_after_a_gap_it_waits_a_lease":               sweepGap,
		"R14_after_a_clock_set_back_it_waits_no_longer":  sweepClockBack,
		"R29_a_stuck_step_is_taken_away":                 stuckStep,
		"it_is_idempotent_in_many_processes":             sweepRace,
	}
}

func lostGoesOn(f *fixture) {
	id := f.Job(registry.Download)
	l := f.TakeItem(id).Lease
	if lost := f.Sweep(registrytest.Lease - time.Second); len(lost) != 0 {
		f.Fatalf("lost %v before the lease was over", lost)
	}
	if lost := f.Sweep(2 * time.Second); !slices.Equal(lost, []registry.Lease{l}) {
		f.Fatalf("lost %v, want %v", lost, l)
	}
	it := f.Item(id)
	if it.Status != registry.Pending || it.Stage != registry.Download || it.Tries != 1 || it.ErrorClass != registry.SystemFault {
		f.Errorf("lost item: %+v", it)
	}
	as := f.AttemptsOf(id)
	if a := as[len(as)-1]; a.Outcome != registry.OutcomeLost || a.FinishedAt == nil || a.Error == "" {
		f.Errorf("attempt %+v", a)
	}
	es := f.Events(id)
	if es[len(es)-1] != string(registry.ActLose) {
		f.Errorf("events %v", es)
	}
	if next := f.Take(registry.Download, id).Lease; next.N != l.N+1 {
		f.Errorf("next attempt is %d", next.N)
	}
}

func renewedIsLeft(f *fixture) {
	l := f.Take(registry.Expand, f.Submit()).Lease
	for range 10 {
		if lost := f.Sweep(registrytest.Lease / 2); len(lost) != 0 {
			f.Fatalf("lost %v", lost)
		}
		f.Renew(registrytest.Beat(l))
	}
}

func lossesBounded(f *fixture) {
	id := f.Job(registry.Download)
	for range registrytest.Attempts - 1 {
		f.LoseOnce(id)
		if got := f.Item(id).Status; got != registry.Pending {
			f.Fatalf("status=%s before its tries are used up", got)
		}
	}
	f.LoseOnce(id)
	if it := f.Item(id); it.Status != registry.Failed || it.Tries != registrytest.Attempts || it.ErrorClass != registry.SystemFault || !it.NeedsAdminReview {
		f.Errorf("after %d losses: %+v", registrytest.Attempts, it)
	}
}

func lossAfterProgress(f *fixture) {
	id := f.Job(registry.Download)
	f.LoseOnce(id, registry.Beat{Advanced: true, DoneBytes: 10, DoneFiles: -1})
	if it := f.Item(id); it.Tries != 0 || it.Status != registry.Pending || it.ErrorClass != "" {
		f.Errorf("charged: %+v", it)
	}
	f.TakeItem(id) // and it may run at once
}

func progressLossesEnd(f *fixture) {
	id := f.Job(registry.Download)
	for range 100 {
		f.LoseOnce(id, registry.Beat{Advanced: true, DoneBytes: -1, DoneFiles: -1})
		if f.Item(id).Status == registry.Failed {
			return
		}
	}
	f.Error("a step that kills its worker half-way runs for ever")
}

// loseTogether lets one worker claim all these items and loses it.
func (f *fixture) loseTogether(ids []string) {
	f.Helper()
	f.Clock.Pass(2 * time.Hour)
	for _, id := range ids {
		f.TakeItem(id)
	}
	f.Sweep(0)
	f.Sweep(2 * registrytest.Lease)
}

func lossInCompany(f *fixture) {
	_, jobs := f.Batch(3)
	for _, job := range jobs {
		f.Bring(job, registry.Download)
	}
	f.loseTogether(jobs)
	for _, job := range jobs {
		if it := f.Item(job); it.Tries != 0 || it.Status != registry.Pending {
			f.Errorf("charged for a neighbour: %s with %d tries", it.Status, it.Tries)
		}
	}
	f.LoseOnce(jobs[0])
	if got := f.Item(jobs[0]).Tries; got != 1 {
		f.Errorf("tries=%d after a loss alone, want 1", got)
	}
}

// aloneRingsAgain: a message of another item fetches the item that runs alone. That other item gets
// a new message at once, not only at its next repetition.
func aloneRingsAgain(f *fixture) {
	_, jobs := f.Batch(3)
	for _, job := range jobs {
		f.Bring(job, registry.Download)
	}
	for range 5 {
		f.loseTogether(jobs[:2])
	}
	f.Clock.Pass(2 * time.Hour)
	f.Renewal("a", registry.Download, 4)
	const window = 2
	if got := f.Offered(window); !slices.Contains(got, jobs[2]) {
		f.Fatalf("due %v, want %s among them", got, jobs[2])
	}
	c, refused := f.asksAt(registry.Download, "a", jobs[2])
	if refused != "" || c.Item.ID == jobs[2] {
		f.Fatalf("an idle worker gets %s (refused %q), want one that runs alone", c.Item.ID, refused)
	}
	f.Clock.Pass(2 * time.Second)
	if got := f.Offered(window); !slices.Contains(got, jobs[2]) {
		f.Errorf("due %v, want %s, whose message was used up", got, jobs[2])
	}
}

// runsAlone: items that were lost together five times run alone, one at a time, on a worker that
// stops other work for them. The others continue elsewhere. An item that is then lost is charged,
// and the innocent ones complete.
func runsAlone(f *fixture) {
	_, jobs := f.Batch(8)
	for _, job := range jobs {
		f.Bring(job, registry.Download)
	}
	guilty, innocent := jobs[0], jobs[1]
	for range 5 {
		f.loseTogether(jobs[:2])
	}
	for _, job := range jobs[:2] {
		if it := f.Item(job); it.Tries != 0 || it.Status != registry.Pending {
			f.Fatalf("charged in company: %s with %d tries", it.Status, it.Tries)
		}
	}
	f.Clock.Pass(2 * time.Hour)
	gets := func(worker, hint string) registry.Claim {
		f.Helper()
		c, refused := f.asksAt(registry.Download, worker, hint)
		if refused != "" {
			f.Fatalf("%s is refused: %s", worker, refused)
		}
		return c
	}
	nothing := func(worker, hint string) {
		f.Helper()
		if c, refused := f.asksAt(registry.Download, worker, hint); refused != registry.ReasonQueued {
			f.Fatalf("%s gets %s, refused for %q; want nothing, for queued", worker, c.Item.Name, refused)
		}
	}
	f.Renewal("a", registry.Download, 4)
	f.Renewal("b", registry.Download, 4)
	first := gets("a", guilty) // which runs nothing yet
	if first.Item.ID != guilty {
		f.Fatalf("a worker without work got %s, want the one that is to run alone", first.Item.Name)
	}
	nothing("a", jobs[2]) // nothing beside it
	others := []registry.Claim{gets("b", innocent)}
	if got := others[0].Item.ID; got == guilty {
		f.Errorf("b got %s", got)
	}
	if others[0].Item.ID == innocent { // b ran nothing, either: it is kept for the second one
		nothing("b", jobs[3])
		f.Done(others[0].Lease)
	}
	// a is lost with what it ran alone: that is charged.
	for range registrytest.Attempts - 1 {
		f.Sweep(0)
		f.Sweep(2 * registrytest.Lease)
		f.Clock.Pass(2 * time.Hour)
		f.Renewal("b", registry.Download, 4)
		c := gets("b", jobs[2])
		for c.Item.ID != guilty {
			f.Done(c.Lease)
			c = gets("b", guilty)
		}
		nothing("b", jobs[4])
	}
	f.Sweep(0)
	f.Sweep(2 * registrytest.Lease)
	if it := f.Item(guilty); it.Status != registry.Failed || it.Tries != registrytest.Attempts || it.ErrorClass != registry.SystemFault {
		f.Errorf("the guilty one: %s, %d tries, %s", it.Status, it.Tries, it.ErrorClass)
	}
	for _, job := range jobs[1:] {
		f.Finish(job)
		if got := f.Item(job).Tries; got != 0 {
			f.Errorf("%d tries were charged to another one", got)
		}
	}
}

// comesToRest: while every worker is busy, the least busy one gets nothing new until it can run the
// suspect item alone. No worker is kept free for a stopped item.
func comesToRest(f *fixture) {
	_, jobs := f.Batch(9)
	for _, job := range jobs {
		f.Bring(job, registry.Download)
	}
	suspect := jobs[0]
	for range 5 {
		f.loseTogether(jobs[:2])
	}
	f.Clock.Pass(2 * time.Hour)
	f.Command(jobs[1], registry.ActCancel, "") // it is not looked at here
	f.Hold(registry.HoldItem, suspect)
	at := func(worker string) registry.Claim {
		f.Helper()
		c, refused := f.asksAt(registry.Download, worker, "")
		if refused != "" {
			f.Fatalf("%s is refused: %s", worker, refused)
		}
		return c
	}
	f.Renewal("a", registry.Download, 4)
	f.Renewal("b", registry.Download, 4)
	busyA, busyB, more := at("a"), at("b"), at("b")
	f.Release(registry.HoldItem, suspect)
	if c := at("b"); c.Item.ID == suspect {
		f.Fatal("b got the item that is to run alone, beside others")
	}
	if _, refused := f.asksAt(registry.Download, "a", ""); refused != registry.ReasonQueued {
		f.Fatalf("a, which runs least: %q, want that it is to come to rest", refused)
	}
	if got := at("b").Item.ID; got == suspect {
		f.Error("b got it")
	}
	why, err := f.Store.Why(f.Context(), suspect)
	f.Must(err)
	if why.Reason != registry.ReasonQueued {
		f.Errorf("it waits for %s", why.Reason)
	}
	f.Says(why.Sentence, "lost 5 times in a row", "runs alone", "worker a")
	f.Done(busyA.Lease)
	if got := at("a").Item.ID; got != suspect {
		f.Fatalf("a rests and gets %s", got)
	}
	if _, refused := f.asksAt(registry.Download, "a", ""); refused != registry.ReasonQueued {
		f.Errorf("a, beside it: %q", refused)
	}
	f.Command(suspect, registry.ActCancel, "")
	if got := at("a").Item.ID; got == suspect {
		f.Error("a got an item that was cancelled")
	}
	f.Done(busyB.Lease)
	f.Done(more.Lease)
}

func sweepGap(f *fixture) {
	f.Sweep(registrytest.Lease)
	l := f.Take(registry.Expand, f.Submit()).Lease
	f.Clock.Pass(time.Hour) // the machine slept
	if lost := f.Sweep(registrytest.Lease - time.Second); len(lost) != 0 {
		f.Fatalf("lost %v although no worker could renew", lost)
	}
	if lost := f.Sweep(2 * time.Second); !slices.Contains(lost, l) {
		f.Errorf("lost %v, want %v", lost, l)
	}
}

func sweepClockBack(f *fixture) {
	f.Sweep(0)
	f.Clock.Pass(1000 * time.Hour)
	f.Sweep(0)
	f.Clock.Pass(-1000 * time.Hour)
	l := f.Take(registry.Expand, f.Submit()).Lease
	if lost := f.Sweep(2*registrytest.Lease + time.Second); !slices.Contains(lost, l) {
		f.Errorf("lost %v: the sweep sleeps until a time that was a mistake", lost)
	}
}

func stuckStep(f *fixture) {
	id := f.Job(registry.Download)
	r := f.Request(registry.Download, id)
	r.StuckAfter = 2 * time.Minute
	c, err := f.Store.Claim(f.Context(), r)
	f.Must(err)
	run := func(d time.Duration, advanced bool) (lost []registry.Lease) {
		f.Helper()
		for range d / (registrytest.Lease / 3) {
			b := registrytest.Beat(c.Lease)
			b.Advanced = advanced
			f.Renew(b)
			lost = append(lost, f.Sweep(registrytest.Lease/3)...)
		}
		return lost
	}
	if lost := run(10*time.Minute, true); len(lost) != 0 {
		f.Fatalf("lost %v although it gets on", lost)
	}
	if lost := run(100*time.Second, false); len(lost) != 0 {
		f.Fatalf("lost %v before its time", lost)
	}
	if lost := run(time.Minute, false); !slices.Contains(lost, c.Lease) {
		f.Fatalf("a step that hangs was not taken away: %v", lost)
	}
	if it := f.Item(id); it.Tries != 1 || it.Status != registry.Pending {
		f.Errorf("tries=%d status=%s: standing still is the step's fault", it.Tries, it.Status)
	}
}

func sweepRace(f *fixture) {
	const items = 10
	f.Batch(items)
	for range items {
		f.Take(registry.Estimate, "")
	}
	f.Sweep(registrytest.Lease - time.Second)
	f.Clock.Pass(2 * time.Second)
	var mu sync.Mutex
	lost := map[registry.Lease]int{}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			ls, err := f.Store.Sweep(f.Context(), registrytest.Lease)
			if err != nil {
				f.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, l := range ls {
				lost[l]++
			}
		})
	}
	all.Wait()
	if len(lost) != items {
		f.Errorf("%d lost, want %d", len(lost), items)
	}
	for l, n := range lost {
		if n != 1 {
			f.Errorf("%v was lost %d times", l, n)
		}
		// R13: which of them took the worker down cannot be told, so none of them is charged.
		if got := f.Item(l.ItemID).Tries; got != 0 {
			f.Errorf("item %s has %d tries, want 0", l.ItemID, got)
		}
	}
}
