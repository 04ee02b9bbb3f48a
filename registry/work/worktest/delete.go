package worktest

import (
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func deleteTests() tests {
	return tests{
		"needs_a_confirmation":                             deleteConfirmation,
		"of_a_held_job":                                    deleteHeld,
		"takes_a_job_out_of_its_batchs_failures":           deletedAmongFailures,
		"of_a_batch_with_failed_jobs":                      deleteBatch,
		"of_a_held_batch":                                  deleteHeldBatch,
		"mrt-zk_a_deleted_batch_is_not_reported":           deletedNotReported,
		"tidies_once":                                      tidiesOnce,
		"of_what_was_never_claimed_leaves_nothing_to_tidy": nothingToTidy,

		"R26_staging_is_looked_after_again_when_a_worker_was_superseded": tidiesAgain,
	}
}

func ptr[T any](v T) *T { return &v }

func deleteConfirmation(f *fixture) {
	batch, jobs := f.Batch(2)
	f.Bring(jobs[0], registry.Download)
	f.Settle(registry.Settlement{
		Lease: f.TakeItem(jobs[0]).Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "broken",
		DoneBytes: ptr(int64(1_234_000_000)),
	})
	f.Says(f.Unconfirmed(jobs[0], registry.ActDelete), "batch "+batch+" is not completed: its report will not list this job", "1.1 GiB in staging are deleted")
	f.Finish(jobs[1])
	f.Done(f.Take(registry.Report, batch).Lease)
	if text := f.Unconfirmed(jobs[0], registry.ActDelete); strings.Contains(text, "depositor") {
		f.Errorf("the batch has reported, and still: %s", text)
	}
	it := f.Confirm(jobs[0], registry.ActDelete)
	if it.State != registry.StateDeleted || it.Note != "deleted by admin: because" {
		f.Errorf("%+v", it)
	}
	f.RefusedCommand(jobs[0], registry.ActRequeue, "", registry.StateDeleted, registry.StatePending)
}

func deleteHeld(f *fixture) {
	batch, jobs := f.Batch(2)
	f.RefusedCommand(jobs[0], registry.ActDelete, "", registry.StatePending, registry.StateDeleted)
	f.Hold(registry.HoldItem, jobs[0])
	f.Confirm(jobs[0], registry.ActDelete)
	f.State(jobs[0], registry.StateDeleted)
	f.Finish(jobs[1])
	f.Done(f.Take(registry.Report, batch).Lease)
	f.State(batch, registry.StateCompleted)
}

// deletedAmongFailures: a deleted job is no longer among its batch's failures. A batch with only
// deleted jobs has no outcome. One with other jobs is incomplete, so the same content is accepted
// again.
func deletedAmongFailures(f *fixture) {
	batch, jobs := f.Batch(3)
	f.Finish(jobs[0])
	f.FailItem(jobs[1], registry.ContentFault)
	f.FailItem(jobs[2], registry.SystemFault)
	if r := f.Closing(batch); r.Failed != 2 {
		f.Errorf("report %+v", r)
	}
	f.State(batch, registry.StateFailed)
	f.Confirm(jobs[1], registry.ActDelete)
	f.Command(batch, registry.ActUpdateReport, "")
	if r := f.Closing(batch); r.Jobs != 2 || r.Failed != 1 || r.Content != 0 {
		f.Errorf("report after one was deleted: %+v", r)
	}
	f.State(batch, registry.StateFailed)
	if p, err := f.Store.BatchProgress(f.Context(), batch); err != nil || p.Failed != 1 || p.Completed != 1 || p.Content != 0 || p.Jobs != 3 || p.Open != 0 {
		f.Errorf("progress %+v, %v", p, err)
	}
	f.Confirm(jobs[2], registry.ActDelete)
	f.Command(batch, registry.ActUpdateReport, "")
	if r := f.Closing(batch); r.Jobs != 1 || r.Failed != 0 {
		f.Errorf("report after both were deleted: %+v", r)
	}
	f.State(batch, registry.StateCompleted)
	if g := f.Failures("batch:" + batch); len(g) != 0 {
		f.Errorf("failures %+v", g)
	}

	batch, jobs = f.Batch(1)
	f.FailItem(jobs[0], registry.ContentFault)
	f.Confirm(jobs[0], registry.ActDelete)
	if r := f.Closing(batch); r.Jobs != 0 || r.Failed != 0 {
		f.Errorf("report of nothing: %+v", r)
	}
	f.State(batch, registry.StateFailed)
}

// reported makes a failed, reported batch of n jobs: one completed, n-2 failed, one cancelled.
func (f *fixture) reported(n int) (batch string, jobs []string) {
	f.Helper()
	batch, jobs = f.Batch(n)
	f.Finish(jobs[0])
	for _, id := range jobs[1 : n-1] {
		f.Settle(registry.Settlement{
			Lease: f.TakeItem(id).Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, DoneBytes: ptr(int64(500)),
		})
	}
	f.Command(jobs[n-1], registry.ActCancel, "")
	l := f.TakeItem(batch).Lease
	f.CloseReport(l)
	f.Done(l)
	f.State(batch, registry.StateFailed)
	return batch, jobs
}

func deleteBatch(f *fixture) {
	batch, jobs := f.reported(5)
	f.Command(jobs[1], registry.ActRequeue, "") // it runs again
	running := f.TakeItem(jobs[1]).Lease
	f.Says(f.Unconfirmed(batch, registry.ActDelete), "the last report", "4 jobs are deleted, 1 of them stopped first", "1.5 KiB in staging of 3 jobs are deleted", "what 1 completed job stored stays")
	f.Confirm(batch, registry.ActDelete)
	f.State(batch, registry.StateDeleted)
	bulk := f.CarriedOut()
	if len(bulk) != 1 || bulk[0].Applied != 4 || bulk[0].Refused != 0 || bulk[0].Matched != 4 {
		f.Errorf("%+v", bulk)
	}
	f.refuses(running, jobs[1])
	f.State(jobs[0], registry.StateCompleted)
	for _, id := range jobs[1:] {
		f.State(id, registry.StateDeleted)
	}
	if got := f.Item(batch).BlockerCount; got != 0 {
		f.Errorf("blocker_count=%d", got)
	}
}

func deleteHeldBatch(f *fixture) {
	id := f.Submit()
	f.RefusedCommand(id, registry.ActDelete, "", registry.StatePending, registry.StateDeleted)
	f.Hold(registry.HoldBatch, id)
	f.Says(f.Unconfirmed(id, registry.ActDelete), "the depositor is not notified of this")
	f.Confirm(id, registry.ActDelete)
	f.State(id, registry.StateDeleted)
	if bulk := f.CarriedOut(); len(bulk) != 0 {
		f.Errorf("nothing was to be done: %+v", bulk)
	}
}

// deletedNotReported: a batch that was deleted while a job was past the point of no return is never
// reported, however its jobs end.
func deletedNotReported(f *fixture) {
	id := f.Submit()
	c := f.TakeItem(id)
	_, err := f.Store.AddJobs(f.Context(), c.Lease, registrytest.NewJobs(1))
	f.Must(err)
	f.Done(c.Lease)
	job := f.Children(id)[0]
	f.Bring(job, registry.Process)
	l := f.TakeItem(job).Lease
	ark := f.Named(l, "x").ARK
	f.Intend(l, ark, 1, `{}`)
	f.Hold(registry.HoldBatch, id)
	f.Confirm(id, registry.ActDelete)
	f.CarriedOut()
	f.Record(l, ark, 1)
	f.Done(l)
	f.Finish(job)
	f.State(id, registry.StateDeleted)
	if got := f.Item(id).Closing; got != 0 {
		f.Errorf("closing=%d", got)
	}
	if got := f.Refused(registry.Report, id).Reason; got != registry.ReasonSettled {
		f.Errorf("refused: %s", got)
	}
}

func tidiesOnce(f *fixture) {
	id := f.Job(registry.Download)
	f.TakeItem(id)
	f.Confirm(id, registry.ActAbort)
	f.TidyOf(id)
	f.Confirm(id, registry.ActDelete)
	tidy := f.TidyOf(id)
	if tidy.Collection != registrytest.Mnemonic || tidy.ParentID != "" {
		f.Errorf("%+v", tidy)
	}
	// Long after the last attempt nobody can write any more.
	id = f.Job(registry.Download)
	f.FailItem(id, registry.SystemFault)
	f.Clock.Pass(time.Hour)
	f.Confirm(id, registry.ActDelete)
	if tidy := f.TidyOf(id); tidy.RunAt.After(f.Clock.Now()) {
		f.Errorf("tidied at %s, now is %s", tidy.RunAt, f.Clock.Now())
	}
}

// tidiesAgain: a worker that wrongly counts as dead, or has not heard of a cancel, may write to its
// attempt's names after the item completed and released its staging.
func tidiesAgain(f *fixture) {
	unharmed := f.Job(registry.Download)
	f.Finish(unharmed)
	if all := f.All(registry.ItemQuery{Action: registry.Tidy}); len(all) > 0 {
		f.Errorf("no worker was superseded: %+v", all)
	}
	for name, supersede := range map[string]func(id string){
		"lost":  func(string) { f.Sweep(2 * registrytest.Lease) },
		"taken": func(id string) { f.Command(id, registry.ActCancel, ""); f.Command(id, registry.ActRequeue, "") },
	} {
		id := f.Job(registry.Download)
		f.TakeItem(id)
		supersede(id)
		f.Finish(id)
		tidy := f.TidyOf(id)
		if wait := tidy.RunAt.Sub(f.Clock.Now()); wait < registrytest.Lease || tidy.Status != registry.Pending {
			f.Errorf("%s: tidied %v after the end, %s", name, wait, tidy.Status)
		}
	}
}

func nothingToTidy(f *fixture) {
	_, jobs := f.Batch(1)
	f.Confirm(jobs[0], registry.ActAbort)
	if all := f.All(registry.ItemQuery{Action: registry.Tidy}); len(all) > 0 {
		f.Errorf("%+v", all)
	}
}
