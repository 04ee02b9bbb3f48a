package registrytest

import (
	"errors"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
)

func deleteTests() []test {
	return []test{
		{"needs_a_confirmation", deleteConfirmation},
		{"of_a_held_job", deleteHeld},
		{"takes_a_job_out_of_its_batchs_failures", deletedAmongFailures},
		{"of_a_batch_with_failed_jobs", deleteBatch},
		{"of_a_held_batch", deleteHeldBatch},
		{"mrt-zk_a_deleted_batch_is_not_reported", deletedNotReported},
		{"tidies_once", tidiesOnce},
		{"of_what_was_never_claimed_leaves_nothing_to_tidy", nothingToTidy},
		{"R26_staging_is_looked_after_again_when_a_worker_was_superseded", tidiesAgain},
	}
}

// unconfirmed asks for an act without a confirmation, and returns what it would take along.
func (f *fixture) unconfirmed(id string, act registry.Act) string {
	f.Helper()
	before := f.item(id)
	_, err := f.Command(f.Context(), registry.Command{ItemID: id, Act: act, Reason: "because", Actor: "admin"})
	var needed *registry.ConfirmationNeeded
	if !errors.As(err, &needed) || needed.ItemID != id || needed.Act != act || len(needed.Consequences) == 0 {
		f.Fatalf("%s of item %s without a confirmation: %v", act, id, err)
	}
	if got := f.item(id).Status; got != before.Status {
		f.Errorf("it is %s, was %s", got, before.Status)
	}
	return strings.Join(needed.Consequences, "\n")
}

func (f *fixture) says(text string, words ...string) {
	f.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			f.Errorf("%q does not say %q", text, w)
		}
	}
}

func ptr[T any](v T) *T { return &v }

func deleteConfirmation(f *fixture) {
	batch, jobs := f.batch(2)
	f.bring(jobs[0], registry.Download)
	f.settle(registry.Settlement{
		Lease: f.takeItem(jobs[0]).Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "broken",
		DoneBytes: ptr(int64(1_234_000_000)),
	})
	f.says(f.unconfirmed(jobs[0], registry.ActDelete), "batch "+batch+" is not completed: its depositor will not be told of this job", "1.2 GB in staging go")
	f.finish(jobs[1])
	f.done(f.take(registry.Report, batch).Lease)
	if text := f.unconfirmed(jobs[0], registry.ActDelete); strings.Contains(text, "depositor") {
		f.Errorf("the batch has reported, and still: %s", text)
	}
	it := f.sure(jobs[0], registry.ActDelete)
	if it.State != registry.StateDeleted || it.Note != "deleted by admin: because" {
		f.Errorf("%+v", it)
	}
	f.refusedCommand(jobs[0], registry.ActRequeue, "", registry.StateDeleted, registry.StatePending)
}

func deleteHeld(f *fixture) {
	batch, jobs := f.batch(2)
	f.refusedCommand(jobs[0], registry.ActDelete, "", registry.StatePending, registry.StateDeleted)
	f.hold(registry.HoldItem, jobs[0])
	f.sure(jobs[0], registry.ActDelete)
	f.state(jobs[0], registry.StateDeleted)
	f.finish(jobs[1])
	f.done(f.take(registry.Report, batch).Lease)
	f.state(batch, registry.StateCompleted)
}

// What is deleted is among the batch's failures no more. A batch with nothing else came to nothing, and one with something else is not all that was
// submitted: the same content is taken in again.
func deletedAmongFailures(f *fixture) {
	batch, jobs := f.batch(3)
	f.finish(jobs[0])
	f.fail(jobs[1], registry.ContentFault)
	f.fail(jobs[2], registry.SystemFault)
	if r := f.closing(batch); r.Failed != 2 {
		f.Errorf("report %+v", r)
	}
	f.state(batch, registry.StateFailed)
	f.sure(jobs[1], registry.ActDelete)
	f.command(batch, registry.ActUpdateReport, "")
	if r := f.closing(batch); r.Jobs != 2 || r.Failed != 1 || r.Content != 0 {
		f.Errorf("report after one was deleted: %+v", r)
	}
	f.state(batch, registry.StateFailed)
	if p, err := f.BatchProgress(f.Context(), batch); err != nil || p.Failed != 1 || p.Completed != 1 || p.Content != 0 || p.Jobs != 3 || p.Open != 0 {
		f.Errorf("progress %+v, %v", p, err)
	}
	f.sure(jobs[2], registry.ActDelete)
	f.command(batch, registry.ActUpdateReport, "")
	if r := f.closing(batch); r.Jobs != 1 || r.Failed != 0 {
		f.Errorf("report after both were deleted: %+v", r)
	}
	f.state(batch, registry.StateCompleted)
	if g := f.failures("batch:" + batch); len(g) != 0 {
		f.Errorf("failures %+v", g)
	}

	batch, jobs = f.batch(1)
	f.fail(jobs[0], registry.ContentFault)
	f.sure(jobs[0], registry.ActDelete)
	if r := f.closing(batch); r.Jobs != 0 || r.Failed != 0 {
		f.Errorf("report of nothing: %+v", r)
	}
	f.state(batch, registry.StateFailed)
}

// reported makes a batch of n jobs that failed with one completed job, n-2 failed ones and a cancelled one.
func (f *fixture) reported(n int) (batch string, jobs []string) {
	f.Helper()
	batch, jobs = f.batch(n)
	f.finish(jobs[0])
	for _, id := range jobs[1 : n-1] {
		f.settle(registry.Settlement{
			Lease: f.takeItem(id).Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, DoneBytes: ptr(int64(500)),
		})
	}
	f.command(jobs[n-1], registry.ActCancel, "")
	l := f.takeItem(batch).Lease
	f.closeReport(l)
	f.done(l)
	f.state(batch, registry.StateFailed)
	return batch, jobs
}

func deleteBatch(f *fixture) {
	batch, jobs := f.reported(5)
	f.command(jobs[1], registry.ActRequeue, "") // it runs again
	running := f.takeItem(jobs[1]).Lease
	f.says(f.unconfirmed(batch, registry.ActDelete), "the last report", "4 jobs are deleted, 1 of them stopped first", "1.5 kB in staging of 3 jobs go", "what 1 completed job stored stays")
	f.sure(batch, registry.ActDelete)
	f.state(batch, registry.StateDeleted)
	bulk := f.carriedOut()
	if len(bulk) != 1 || bulk[0].Applied != 4 || bulk[0].Refused != 0 || bulk[0].Matched != 4 {
		f.Errorf("%+v", bulk)
	}
	f.refuses(running, jobs[1])
	f.state(jobs[0], registry.StateCompleted)
	for _, id := range jobs[1:] {
		f.state(id, registry.StateDeleted)
	}
	if got := f.item(batch).BlockerCount; got != 0 {
		f.Errorf("blocker_count=%d", got)
	}
}

func deleteHeldBatch(f *fixture) {
	id := f.submit()
	f.refusedCommand(id, registry.ActDelete, "", registry.StatePending, registry.StateDeleted)
	f.hold(registry.HoldBatch, id)
	f.says(f.unconfirmed(id, registry.ActDelete), "the depositor is not notified of this")
	f.sure(id, registry.ActDelete)
	f.state(id, registry.StateDeleted)
	if bulk := f.carriedOut(); len(bulk) != 0 {
		f.Errorf("nothing was to be done: %+v", bulk)
	}
}

// A batch that was deleted while a job of it was past the point of no return is never reported, however its jobs end.
func deletedNotReported(f *fixture) {
	id := f.submit()
	c := f.takeItem(id)
	_, err := f.AddJobs(f.Context(), c.Lease, newJobs(1))
	f.must(err)
	f.done(c.Lease)
	job := f.children(id)[0]
	f.bring(job, registry.Process)
	l := f.takeItem(job).Lease
	ark := f.locks(l, "x").ARK
	f.intend(l, ark, 1, `{}`)
	f.hold(registry.HoldBatch, id)
	f.sure(id, registry.ActDelete)
	f.carriedOut()
	f.record(l, ark, 1)
	f.done(l)
	f.finish(job)
	f.state(id, registry.StateDeleted)
	if got := f.item(id).Closing; got != 0 {
		f.Errorf("closing=%d", got)
	}
	if got := f.refused(registry.Report, id).Reason; got != registry.ReasonSettled {
		f.Errorf("refused: %s", got)
	}
}

// tidyOf finds the item that tidies up after another; there must be one.
func (f *fixture) tidyOf(id string) registry.WorkItem {
	f.Helper()
	var found []registry.WorkItem
	for _, it := range f.all(registry.ItemQuery{Action: registry.Tidy}) {
		if strings.Contains(string(it.Spec), id) {
			found = append(found, it)
		}
	}
	if len(found) != 1 {
		f.Fatalf("%d items tidy up after %s", len(found), id)
	}
	return found[0]
}

func tidiesOnce(f *fixture) {
	id := f.job(registry.Download)
	f.takeItem(id)
	f.sure(id, registry.ActAbort)
	f.tidyOf(id)
	f.sure(id, registry.ActDelete)
	tidy := f.tidyOf(id)
	if tidy.Collection != mnemonic || tidy.ParentID != "" {
		f.Errorf("%+v", tidy)
	}
	// Long after the last attempt nobody can write any more.
	id = f.job(registry.Download)
	f.fail(id, registry.SystemFault)
	f.clock.pass(time.Hour)
	f.sure(id, registry.ActDelete)
	if tidy := f.tidyOf(id); tidy.RunAt.After(f.clock.now()) {
		f.Errorf("tidied at %s, now is %s", tidy.RunAt, f.clock.now())
	}
}

// A worker that is only thought dead, or has not heard that its item was cancelled, may write to its own attempt's names
// after the item has completed and given everything back.
func tidiesAgain(f *fixture) {
	unharmed := f.job(registry.Download)
	f.finish(unharmed)
	if all := f.all(registry.ItemQuery{Action: registry.Tidy}); len(all) > 0 {
		f.Errorf("no worker was superseded: %+v", all)
	}
	for name, supersede := range map[string]func(id string){
		"lost":  func(string) { f.sweep(2 * lease) },
		"taken": func(id string) { f.command(id, registry.ActCancel, ""); f.command(id, registry.ActRequeue, "") },
	} {
		id := f.job(registry.Download)
		f.takeItem(id)
		supersede(id)
		f.finish(id)
		tidy := f.tidyOf(id)
		if wait := tidy.RunAt.Sub(f.clock.now()); wait < lease || tidy.Status != registry.Pending {
			f.Errorf("%s: tidied %v after the end, %s", name, wait, tidy.Status)
		}
	}
}

func nothingToTidy(f *fixture) {
	_, jobs := f.batch(1)
	f.sure(jobs[0], registry.ActAbort)
	if all := f.all(registry.ItemQuery{Action: registry.Tidy}); len(all) > 0 {
		f.Errorf("%+v", all)
	}
}
