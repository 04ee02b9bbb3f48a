package registrytest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/holdfast/holdfast/registry"
)

func stopTests() []test {
	return []test{
		{"R18_cancel_before_settle", cancelFirst},
		{"R18_settle_before_cancel", settleFirst},
		{"R18_cancel_races_settle", cancelRace},
		{"abort_of_what_runs", abortRunning},
		{"delete_of_what_runs_needs_a_cancel", deleteRunning},
		{"withdrawn_is_told", withdrawnTold},
		{"withdrawn_waits", withdrawnWaits},
		{"cancel_frees_locks_and_keeps_room", cancelKeeps},
		{"abort_keeps_room_until_it_is_tidied", abortKeeps},
		{"cancel_of_a_batch_being_expanded", cancelExpanding},
		{"cancel_of_a_batch_with_jobs", cancelBatch},
		{"abort_of_a_batch", abortBatch},
		{"abort_needs_a_confirmation", abortConfirmation},
		{"bulk_abort_needs_a_confirmation", bulkAbortConfirmation},
	}
}

func cancelFirst(f *fixture) {
	batch, jobs := f.batch(1)
	c := f.takeItem(jobs[0])
	it := f.command(jobs[0], registry.ActCancel, "")
	if it.State != registry.StateCancelled || it.FinishedAt == nil || it.Note != "cancelled by admin: because" {
		f.Errorf("cancelled while it ran: %+v", it)
	}
	f.refuses(c.Lease, jobs[0])
	a := f.attemptsOf(jobs[0])[0]
	if a.Outcome != registry.OutcomeWithdrawn || a.FinishedAt == nil || a.Error != "cancelled by admin: because" {
		f.Errorf("attempt %+v", a)
	}
	f.clock.pass(time.Hour)
	if lost := f.sweep(0); len(lost) > 0 {
		f.Errorf("lost %v", lost)
	}
	f.refusedCommand(jobs[0], registry.ActCancel, "", registry.StateCancelled, registry.StateCancelled)
	f.done(f.take(registry.Report, batch).Lease)
	f.state(batch, registry.StateFailed)
	// It may be taken up again where it stood.
	f.command(jobs[0], registry.ActRequeue, "")
	f.finish(jobs[0])
}

func settleFirst(f *fixture) {
	id := f.job(registry.Notify)
	c := f.takeItem(id)
	f.done(c.Lease)
	f.refusedCommand(id, registry.ActCancel, "", registry.StateCompleted, registry.StateCancelled)
	f.refusedCommand(id, registry.ActAbort, "", registry.StateCompleted, registry.StateAborted)
	f.done(c.Lease) // the repeat is answered as before
}

func cancelRace(f *fixture) {
	for range 10 {
		id := f.job(registry.Notify)
		l := f.takeItem(id).Lease
		var mu sync.Mutex
		var settled, cancelled int
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				var err error
				if i%2 == 0 {
					_, err = f.Settle(f.Context(), registry.Settlement{Lease: l, Outcome: registry.OutcomeDone, MaxAttempts: attempts})
				} else {
					_, err = f.Command(f.Context(), registry.Command{ItemID: id, Act: registry.ActCancel, Actor: "admin"})
				}
				mu.Lock()
				defer mu.Unlock()
				var late *registry.TransitionError
				switch {
				case err == nil && i%2 == 0:
					settled++
				case err == nil:
					cancelled++
				case i%2 == 0 && !errors.Is(err, registry.ErrClaimLost), i%2 == 1 && !errors.As(err, &late):
					f.Errorf("%v", err)
				}
			})
		}
		all.Wait()
		it := f.item(id)
		won := settled == 4 && cancelled == 0 && it.Status == registry.Completed || settled == 0 && cancelled == 1 && it.Status == registry.Cancelled
		if !won {
			f.Errorf("%d settlements and %d cancels were taken, and the item is %s", settled, cancelled, it.Status)
		}
		if got := len(f.attemptsOf(id)); got != 6 {
			f.Errorf("%d attempts", got)
		}
	}
}

func abortRunning(f *fixture) {
	id := f.job(registry.Download)
	c := f.takeItem(id)
	f.sure(id, registry.ActAbort)
	f.state(id, registry.StateAborted)
	f.refuses(c.Lease, id)
	f.refusedCommand(id, registry.ActRequeue, "", registry.StateAborted, registry.StatePending)
}

func deleteRunning(f *fixture) {
	id := f.job(registry.Download)
	c := f.takeItem(id)
	f.refusedCommand(id, registry.ActDelete, "", registry.StateDownloading, registry.StateDeleted)
	f.done(c.Lease)
	id = f.job(registry.Download)
	f.takeItem(id)
	f.command(id, registry.ActCancel, "")
	f.sure(id, registry.ActDelete)
	f.state(id, registry.StateDeleted)
}

// withdrawn asks what was taken from the fixture's worker, and must get an answer.
func (f *fixture) withdrawn(after int64) ([]registry.Lease, int64) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), 10*time.Second)
	defer cancel()
	taken, next, err := f.Withdrawn(ctx, "worker-1", after)
	f.must(err)
	return taken, next
}

func withdrawnTold(f *fixture) {
	_, jobs := f.batch(3)
	var leases []registry.Lease
	for range jobs {
		leases = append(leases, f.take(registry.Estimate, "").Lease)
	}
	var after int64
	// The clock stands still: what is taken at the same moment is told all the same, each once.
	for _, l := range leases {
		f.command(l.ItemID, registry.ActCancel, "")
		taken, next := f.withdrawn(after)
		if len(taken) != 1 || taken[0] != l || next <= after {
			f.Errorf("told %v up to %d, want %v", taken, next, l)
		}
		after = next
	}
	if taken, _ := f.withdrawn(0); len(taken) != 3 {
		f.Errorf("from the beginning: %v", taken)
	}
}

func withdrawnWaits(f *fixture) {
	id := f.job(registry.Download)
	l := f.takeItem(id).Lease
	short, cancel := context.WithTimeout(f.Context(), 50*time.Millisecond)
	defer cancel()
	if taken, next, err := f.Withdrawn(short, "worker-1", 7); len(taken) > 0 || next != 7 || err != nil {
		f.Errorf("when there was nothing: %v, %d, %v", taken, next, err)
	}
	told := make(chan []registry.Lease)
	go func() {
		taken, _, _ := f.Withdrawn(f.Context(), "worker-1", 0)
		told <- taken
	}()
	others := make(chan int)
	other, end := context.WithCancel(f.Context())
	go func() {
		taken, _, _ := f.Withdrawn(other, "worker-2", 0)
		others <- len(taken)
	}()
	f.sure(id, registry.ActAbort)
	if taken := <-told; len(taken) != 1 || taken[0] != l {
		f.Errorf("told %v, want %v", taken, l)
	}
	end()
	if n := <-others; n != 0 {
		f.Errorf("another worker was told of %d", n)
	}
}

func cancelKeeps(f *fixture) {
	c := f.processing(2)
	f.locks(c[0].Lease, "x")
	f.waits(c[1].Lease, c[0].Lease, "x")
	f.snooze(c[1].Lease)
	f.must(f.Reserve(f.Context(), c[0].Lease, registry.Reservation{Volume: "v", Bytes: 60, Total: 100, Threshold: 1}))
	f.command(c[0].Item.ID, registry.ActCancel, "")
	l := f.takeItem(c[1].Item.ID).Lease // its turn has come
	f.locks(l, "x")
	f.full(l, registry.Reservation{Volume: "v", Bytes: 60, Total: 100, Threshold: 1})
}

func abortKeeps(f *fixture) {
	c := f.processing(2)
	room := registry.Reservation{Volume: "v", Bytes: 60, Total: 100, Threshold: 1}
	f.must(f.Reserve(f.Context(), c[0].Lease, room))
	f.sure(c[0].Item.ID, registry.ActAbort)
	f.full(c[1].Lease, room) // its staging is still there
	tidy := f.tidyOf(c[0].Item.ID)
	if wait := tidy.RunAt.Sub(f.clock.now()); wait < time.Minute {
		f.Errorf("tidied %s after the abort: its worker may still write", wait)
	}
	if got := f.refused(registry.Cleanup, tidy.ID).Reason; got != registry.ReasonNotDue {
		f.Errorf("refused: %s", got)
	}
	f.clock.pass(5 * time.Minute)
	f.finish(tidy.ID)
	f.must(f.Reserve(f.Context(), c[1].Lease, room))
}

func cancelExpanding(f *fixture) {
	id := f.submit()
	c := f.takeItem(id)
	_, err := f.AddJobs(f.Context(), c.Lease, newJobs(3))
	f.must(err)
	jobs := f.children(id)
	f.command(id, registry.ActCancel, "")
	f.state(id, registry.StateCancelled)
	_, err = f.AddJobs(f.Context(), c.Lease, newJobs(4))
	f.is(err, registry.ErrClaimLost)
	f.carriedOut()
	for _, job := range jobs {
		f.state(job, registry.StateCancelled)
	}
	f.command(id, registry.ActRequeue, "")
	c = f.takeItem(id)
	if n, err := f.AddJobs(f.Context(), c.Lease, newJobs(4)); n != 1 || err != nil {
		f.Errorf("%d jobs added, %v", n, err)
	}
	f.done(c.Lease)
	f.finish(f.children(id)[3])
	f.done(f.take(registry.Report, id).Lease)
	f.state(id, registry.StateFailed)
}

func cancelBatch(f *fixture) {
	id, jobs := f.batch(3)
	f.finish(jobs[0])
	running := f.takeItem(jobs[1]).Lease
	f.command(id, registry.ActCancel, "")
	f.state(id, registry.StateProcessing)
	bulk := f.carriedOut()
	if len(bulk) != 1 || bulk[0].Applied != 2 || bulk[0].Refused != 0 {
		f.Errorf("%+v", bulk)
	}
	f.refuses(running, jobs[1])
	f.state(id, registry.StateReporting)
	l := f.take(registry.Report, id).Lease
	if r := f.closeReport(l); r.Completed != 1 || r.Failed != 2 {
		f.Errorf("report %+v", r)
	}
	f.done(l)
	f.state(id, registry.StateFailed)
	f.refusedCommand(id, registry.ActCancel, "", registry.StateFailed, registry.StateCancelled)
}

func abortBatch(f *fixture) {
	id, jobs := f.batch(3)
	f.finish(jobs[0])
	f.bring(jobs[1], registry.Process)
	l := f.takeItem(jobs[1]).Lease
	f.locks(l, "x")
	ark := f.locks(l, "x").ARK
	f.intend(l, ark, 1, `{}`)
	f.sure(id, registry.ActAbort)
	f.state(id, registry.StateAborted)
	bulk := f.carriedOut()
	if len(bulk) != 1 || bulk[0].Applied != 1 || bulk[0].Refused != 1 || !strings.Contains(bulk[0].Refusals[0], "point of no return") {
		f.Errorf("%+v", bulk)
	}
	f.state(jobs[2], registry.StateAborted)
	// What was announced is rolled forward, and nothing is reported.
	f.record(l, ark, 1)
	f.done(l)
	f.finish(jobs[1])
	f.state(id, registry.StateAborted)
	if got := f.refused(registry.Report, id).Reason; got != registry.ReasonSettled {
		f.Errorf("report of an aborted batch: %s", got)
	}
}

// An abort says what it cannot take back before anything is done, also that it is for good and who is told.
func abortConfirmation(f *fixture) {
	id, jobs := f.batch(5, notifying("ann@example.org"))
	f.finish(jobs[0])
	f.fail(jobs[1], registry.ContentFault)
	f.bring(jobs[2], registry.Process)
	l := f.takeItem(jobs[2]).Lease
	f.locks(l, "x")
	f.intend(l, f.locks(l, "x").ARK, 1, `{}`)
	f.settle(registry.Settlement{Lease: f.takeItem(jobs[3]).Lease, Outcome: registry.OutcomeReleased, DoneBytes: ptr(int64(1_500))})
	f.says(f.unconfirmed(jobs[3], registry.ActAbort), "the job ends for good: it cannot be requeued", "batch "+id+" reports it as failed", "1.5 kB in staging go")
	f.says(f.unconfirmed(id, registry.ActAbort), "the batch ends for good", "has to be submitted again", "a mail tells ann@example.org that it was aborted, and the reason given",
		"2 jobs are aborted", "1.5 kB in staging of 1 job go", "what 1 completed job stored stays", "1 job that failed or was cancelled stays as it is",
		"1 job is past the point of no return: it is not aborted")
	if all := f.carriedOut(); len(all) != 0 || len(f.mails(id)) != 0 {
		f.Errorf("nothing was confirmed: %+v, mails %v", all, f.mails(id))
	}
	f.sure(id, registry.ActAbort)
	f.state(id, registry.StateAborted)

	f.says(f.unconfirmed(f.submit(func(s *registry.Submission) { s.Force = true }), registry.ActAbort), "the depositor is not notified of this")
	first, waits := f.prepareTwo()
	f.says(f.unconfirmed(first, registry.ActAbort), "1 item that waits for its success is aborted, too")
	f.sure(first, registry.ActAbort)
	f.state(waits, registry.StateAborted)
}

// prepareTwo makes two batches, of which the second waits for the first one's success.
func (f *fixture) prepareTwo() (first, second string) {
	f.Helper()
	next := submission()
	next.Force = true
	next.Requires = []registry.Requirement{{Key: "a", WaitFor: registry.WaitSuccess}}
	one := submission()
	one.Force = true
	_, items := f.prepare("", registry.Node{Key: "a", Submission: one}, registry.Node{Key: "b", Submission: next})
	return items["a"], items["b"]
}

// A bulk act that nobody confirmed aborts nothing, and says why.
func bulkAbortConfirmation(f *fixture) {
	id := f.submit()
	_, err := f.Bulk(f.Context(), registry.BulkRequest{Match: match("id:" + id), Act: registry.ActAbort, Reason: "because", Actor: "admin"})
	f.must(err)
	bulk := f.carriedOut()
	if len(bulk) != 1 || bulk[0].Applied != 0 || bulk[0].Refused != 1 || !strings.Contains(bulk[0].Refusals[0], "needs a confirmation") {
		f.Errorf("%+v", bulk)
	}
	f.state(id, registry.StatePending)
}
