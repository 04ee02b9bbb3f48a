package worktest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func stopTests() tests {
	return tests{
		"R18_cancel_before_settle":            cancelFirst,
		"R18_settle_before_cancel":            settleFirst,
		"R18_cancel_races_settle":             cancelRace,
		"abort_of_what_runs":                  abortRunning,
		"delete_of_what_runs_needs_a_cancel":  deleteRunning,
		"withdrawn_is_told":                   withdrawnTold,
		"withdrawn_waits":                     withdrawnWaits,
		"cancel_frees_locks_and_keeps_room":   cancelKeeps,
		"abort_keeps_room_until_it_is_tidied": abortKeeps,
		"cancel_of_a_batch_being_expanded":    cancelExpanding,
		"cancel_of_a_batch_with_jobs":         cancelBatch,
		"abort_of_a_batch":                    abortBatch,
		"abort_needs_a_confirmation":          abortConfirmation,
		"bulk_abort_needs_a_confirmation":     bulkAbortConfirmation,
	}
}

func cancelFirst(f *fixture) {
	batch, jobs := f.Batch(1)
	c := f.TakeItem(jobs[0])
	it := f.Command(jobs[0], registry.ActCancel, "")
	if it.State != registry.StateCancelled || it.FinishedAt == nil || it.Note != "cancelled by admin: because" {
		f.Errorf("cancelled while it ran: %+v", it)
	}
	f.refuses(c.Lease, jobs[0])
	a := f.AttemptsOf(jobs[0])[0]
	if a.Outcome != registry.OutcomeWithdrawn || a.FinishedAt == nil || a.Error != "cancelled by admin: because" {
		f.Errorf("attempt %+v", a)
	}
	f.Clock.Pass(time.Hour)
	if lost := f.Sweep(0); len(lost) > 0 {
		f.Errorf("lost %v", lost)
	}
	f.RefusedCommand(jobs[0], registry.ActCancel, "", registry.StateCancelled, registry.StateCancelled)
	f.Done(f.Take(registry.Report, batch).Lease)
	f.State(batch, registry.StateFailed)
	// It may be taken up again where it stood.
	f.Command(jobs[0], registry.ActRequeue, "")
	f.Finish(jobs[0])
}

func settleFirst(f *fixture) {
	id := f.Job(registry.Notify)
	c := f.TakeItem(id)
	f.Done(c.Lease)
	f.RefusedCommand(id, registry.ActCancel, "", registry.StateCompleted, registry.StateCancelled)
	f.RefusedCommand(id, registry.ActAbort, "", registry.StateCompleted, registry.StateAborted)
	f.Done(c.Lease) // the repeat is answered as before
}

func cancelRace(f *fixture) {
	for range 10 {
		id := f.Job(registry.Notify)
		l := f.TakeItem(id).Lease
		var mu sync.Mutex
		var settled, cancelled int
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				var err error
				if i%2 == 0 {
					_, err = f.Store.Settle(f.Context(), registry.Settlement{Lease: l, Outcome: registry.OutcomeDone, MaxAttempts: registrytest.Attempts})
				} else {
					_, err = f.Store.Command(f.Context(), registry.Command{ItemID: id, Act: registry.ActCancel, Actor: "admin"})
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
		it := f.Item(id)
		won := settled == 4 && cancelled == 0 && it.Status == registry.Completed || settled == 0 && cancelled == 1 && it.Status == registry.Cancelled
		if !won {
			f.Errorf("%d settlements and %d cancels were taken, and the item is %s", settled, cancelled, it.Status)
		}
		if got := len(f.AttemptsOf(id)); got != 6 {
			f.Errorf("%d attempts", got)
		}
	}
}

func abortRunning(f *fixture) {
	id := f.Job(registry.Download)
	c := f.TakeItem(id)
	f.Confirm(id, registry.ActAbort)
	f.State(id, registry.StateAborted)
	f.refuses(c.Lease, id)
	f.RefusedCommand(id, registry.ActRequeue, "", registry.StateAborted, registry.StatePending)
}

func deleteRunning(f *fixture) {
	id := f.Job(registry.Download)
	c := f.TakeItem(id)
	f.RefusedCommand(id, registry.ActDelete, "", registry.StateDownloading, registry.StateDeleted)
	f.Done(c.Lease)
	id = f.Job(registry.Download)
	f.TakeItem(id)
	f.Command(id, registry.ActCancel, "")
	f.Confirm(id, registry.ActDelete)
	f.State(id, registry.StateDeleted)
}

// withdrawn asks what was taken from the fixture's worker.
func (f *fixture) withdrawn(after int64) ([]registry.Lease, int64) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), 10*time.Second)
	defer cancel()
	taken, next, err := f.Store.Withdrawn(ctx, registry.WithdrawnQuery{Worker: "worker-1", After: after})
	f.Must(err)
	return taken, next
}

func withdrawnTold(f *fixture) {
	_, jobs := f.Batch(3)
	var leases []registry.Lease
	for range jobs {
		leases = append(leases, f.Take(registry.Estimate, "").Lease)
	}
	var after int64
	// The clock stands still: what is taken at the same moment is told all the same, each once.
	for _, l := range leases {
		f.Command(l.ItemID, registry.ActCancel, "")
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
	id := f.Job(registry.Download)
	l := f.TakeItem(id).Lease
	short, cancel := context.WithTimeout(f.Context(), 50*time.Millisecond)
	defer cancel()
	if taken, next, err := f.Store.Withdrawn(short, registry.WithdrawnQuery{Worker: "worker-1", After: 7}); len(taken) > 0 || next != 7 || err != nil {
		f.Errorf("when there was nothing: %v, %d, %v", taken, next, err)
	}
	told := make(chan []registry.Lease)
	go func() {
		taken, _, _ := f.Store.Withdrawn(f.Context(), registry.WithdrawnQuery{Worker: "worker-1"})
		told <- taken
	}()
	others := make(chan int)
	other, end := context.WithCancel(f.Context())
	go func() {
		taken, _, _ := f.Store.Withdrawn(other, registry.WithdrawnQuery{Worker: "worker-2"})
		others <- len(taken)
	}()
	f.Confirm(id, registry.ActAbort)
	if taken := <-told; len(taken) != 1 || taken[0] != l {
		f.Errorf("told %v, want %v", taken, l)
	}
	end()
	if n := <-others; n != 0 {
		f.Errorf("another worker was told of %d", n)
	}
}

func cancelKeeps(f *fixture) {
	c := f.Processing(2)
	f.Named(c[0].Lease, "x")
	f.Waits(c[1].Lease, c[0].Lease, "x")
	f.Snooze(c[1].Lease)
	f.Must(f.Store.Reserve(f.Context(), c[0].Lease, registry.Reservation{Volume: "v", Bytes: 60, Total: 100, Threshold: 1}))
	f.Command(c[0].Item.ID, registry.ActCancel, "")
	l := f.TakeItem(c[1].Item.ID).Lease // its turn has come
	f.Named(l, "x")
	f.NoRoom(l, registry.Reservation{Volume: "v", Bytes: 60, Total: 100, Threshold: 1})
}

func abortKeeps(f *fixture) {
	c := f.Processing(2)
	room := registry.Reservation{Volume: "v", Bytes: 60, Total: 100, Threshold: 1}
	f.Must(f.Store.Reserve(f.Context(), c[0].Lease, room))
	f.Confirm(c[0].Item.ID, registry.ActAbort)
	f.NoRoom(c[1].Lease, room) // its staging is still there
	tidy := f.TidyOf(c[0].Item.ID)
	if wait := tidy.RunAt.Sub(f.Clock.Now()); wait < time.Minute {
		f.Errorf("tidied %s after the abort: its worker may still write", wait)
	}
	if got := f.Refused(registry.Cleanup, tidy.ID).Reason; got != registry.ReasonNotDue {
		f.Errorf("refused: %s", got)
	}
	f.Clock.Pass(5 * time.Minute)
	f.Finish(tidy.ID)
	f.Must(f.Store.Reserve(f.Context(), c[1].Lease, room))
}

func cancelExpanding(f *fixture) {
	id := f.Submit()
	c := f.TakeItem(id)
	_, err := f.Store.AddJobs(f.Context(), c.Lease, registrytest.NewJobs(3))
	f.Must(err)
	jobs := f.Children(id)
	f.Command(id, registry.ActCancel, "")
	f.State(id, registry.StateCancelled)
	_, err = f.Store.AddJobs(f.Context(), c.Lease, registrytest.NewJobs(4))
	f.Is(err, registry.ErrClaimLost)
	f.CarriedOut()
	for _, job := range jobs {
		f.State(job, registry.StateCancelled)
	}
	f.Command(id, registry.ActRequeue, "")
	c = f.TakeItem(id)
	if n, err := f.Store.AddJobs(f.Context(), c.Lease, registrytest.NewJobs(4)); n != 1 || err != nil {
		f.Errorf("%d jobs added, %v", n, err)
	}
	f.Done(c.Lease)
	f.Finish(f.Children(id)[3])
	f.Done(f.Take(registry.Report, id).Lease)
	f.State(id, registry.StateFailed)
}

func cancelBatch(f *fixture) {
	id, jobs := f.Batch(3)
	f.Finish(jobs[0])
	running := f.TakeItem(jobs[1]).Lease
	f.Command(id, registry.ActCancel, "")
	f.State(id, registry.StateProcessing)
	bulk := f.CarriedOut()
	if len(bulk) != 1 || bulk[0].Applied != 2 || bulk[0].Refused != 0 {
		f.Errorf("%+v", bulk)
	}
	f.refuses(running, jobs[1])
	f.State(id, registry.StateReporting)
	l := f.Take(registry.Report, id).Lease
	if r := f.CloseReport(l); r.Completed != 1 || r.Failed != 2 {
		f.Errorf("report %+v", r)
	}
	f.Done(l)
	f.State(id, registry.StateFailed)
	f.RefusedCommand(id, registry.ActCancel, "", registry.StateFailed, registry.StateCancelled)
}

func abortBatch(f *fixture) {
	id, jobs := f.Batch(3)
	f.Finish(jobs[0])
	f.Bring(jobs[1], registry.Process)
	l := f.TakeItem(jobs[1]).Lease
	f.Named(l, "x")
	ark := f.Named(l, "x").ARK
	f.Intend(l, ark, 1, `{}`)
	f.Confirm(id, registry.ActAbort)
	f.State(id, registry.StateAborted)
	bulk := f.CarriedOut()
	if len(bulk) != 1 || bulk[0].Applied != 1 || bulk[0].Refused != 1 || !strings.Contains(bulk[0].Refusals[0], "point of no return") {
		f.Errorf("%+v", bulk)
	}
	f.State(jobs[2], registry.StateAborted)
	// What was announced is rolled forward, and nothing is reported.
	f.Record(l, ark, 1)
	f.Done(l)
	f.Finish(jobs[1])
	f.State(id, registry.StateAborted)
	if got := f.Refused(registry.Report, id).Reason; got != registry.ReasonSettled {
		f.Errorf("report of an aborted batch: %s", got)
	}
}

// abortConfirmation: an abort lists its consequences first, also that it is final and who is
// notified.
func abortConfirmation(f *fixture) {
	id, jobs := f.Batch(5, registrytest.Notifying("ann@example.org"))
	f.Finish(jobs[0])
	f.FailItem(jobs[1], registry.ContentFault)
	f.Bring(jobs[2], registry.Process)
	l := f.TakeItem(jobs[2]).Lease
	f.Named(l, "x")
	f.Intend(l, f.Named(l, "x").ARK, 1, `{}`)
	f.Settle(registry.Settlement{Lease: f.TakeItem(jobs[3]).Lease, Outcome: registry.OutcomeReleased, DoneBytes: ptr(int64(1_500))})
	f.Says(f.Unconfirmed(jobs[3], registry.ActAbort), "the job ends for good: it cannot be requeued", "batch "+id+" reports it as failed", "1.5 KiB in staging are deleted")
	f.Says(f.Unconfirmed(id, registry.ActAbort), "the batch ends for good", "submit what is still wanted", "a mail to ann@example.org says that it was aborted, with the reason given",
		"2 jobs are aborted", "1.5 KiB in staging of 1 job are deleted", "what 1 completed job stored stays", "1 job that failed or was cancelled stays as it is",
		"1 job is past the point of no return: it is not aborted")
	if all := f.CarriedOut(); len(all) != 0 || len(f.Mails(id)) != 0 {
		f.Errorf("nothing was confirmed: %+v, mails %v", all, f.Mails(id))
	}
	f.Confirm(id, registry.ActAbort)
	f.State(id, registry.StateAborted)

	f.Says(f.Unconfirmed(f.Submit(func(s *registry.Submission) { s.Force = true }), registry.ActAbort), "the depositor is not notified of this")
	first, waits := f.prepareTwo()
	f.Says(f.Unconfirmed(first, registry.ActAbort), "1 item that waits for its success is aborted, too")
	f.Confirm(first, registry.ActAbort)
	f.State(waits, registry.StateAborted)
}

// prepareTwo makes two batches. The second waits for the success of the first.
func (f *fixture) prepareTwo() (first, second string) {
	f.Helper()
	next := registrytest.Submission()
	next.Force = true
	next.Requires = []registry.Requirement{{Key: "a", WaitFor: registry.WaitSuccess}}
	one := registrytest.Submission()
	one.Force = true
	_, items := f.Prepare("", registry.Node{Key: "a", Submission: one}, registry.Node{Key: "b", Submission: next})
	return items["a"], items["b"]
}

// bulkAbortConfirmation: an unconfirmed bulk abort does nothing and says why.
func bulkAbortConfirmation(f *fixture) {
	id := f.Submit()
	_, err := f.Store.Bulk(f.Context(), registry.BulkRequest{Match: registrytest.Match("id:" + id), Act: registry.ActAbort, Reason: "because", Actor: "admin"})
	f.Must(err)
	bulk := f.CarriedOut()
	if len(bulk) != 1 || bulk[0].Applied != 0 || bulk[0].Refused != 1 || !strings.Contains(bulk[0].Refusals[0], "needs a confirmation") {
		f.Errorf("%+v", bulk)
	}
	f.State(id, registry.StatePending)
}
