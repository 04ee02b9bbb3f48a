package registrytest

import (
	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
)

// delete gives an item up, whatever that takes along.
func (f *fixture) delete(id string) {
	f.Helper()
	_, err := f.Command(f.Context(), registry.Command{ItemID: id, Act: registry.ActDelete, Reason: "because", Actor: "admin", Confirmed: true})
	f.must(err)
}

// closing makes a batch's next report and settles it.
func (f *fixture) closing(batch string) registry.BatchReport {
	f.Helper()
	l := f.take(registry.Report, batch).Lease
	r := f.closeReport(l)
	f.done(l)
	return r
}

// reportRows lists what a query selects of a report, two rows at a time.
func (f *fixture) reportRows(q registry.ReportQuery) (rows []registry.JobResult) {
	f.Helper()
	for q.Limit = 2; ; {
		page, err := f.ReportJobs(f.Context(), q)
		f.must(err)
		rows = append(rows, page...)
		if len(page) < q.Limit {
			return rows
		}
		q.AfterRow = page[len(page)-1].Row
	}
}

// changes is what changed of each row.
func changes(rows []registry.JobResult) map[int64]registry.JobChange {
	out := map[int64]registry.JobChange{}
	for _, j := range rows {
		out[j.Row] = j.Change
	}
	return out
}

// TestR22: an update tells of each job what changed since the report before, whatever became of it, and the first report that
// nothing did.
func reportDifference(f *fixture) {
	batch, jobs := f.batch(9)
	f.finish(jobs[0])
	for _, i := range []int{1, 2, 3, 6, 7} {
		f.fail(jobs[i], registry.ContentFault)
	}
	for _, i := range []int{4, 5, 8} {
		f.command(jobs[i], registry.ActCancel, "")
	}
	first := f.closing(batch)
	if first.Difference != nil || first.Failed != 8 || first.Stopped != 3 || first.Content != 5 {
		f.Errorf("first report %+v", first)
	}
	for row, change := range changes(f.reportRows(registry.ReportQuery{BatchID: batch})) {
		if change != "" {
			f.Errorf("row %d of the first report is %s", row, change)
		}
	}

	for _, i := range []int{1, 2, 4} {
		f.command(jobs[i], registry.ActRequeue, "")
	}
	f.finish(jobs[1])
	f.fail(jobs[2], registry.SystemFault)
	f.fail(jobs[4], registry.ContentFault)
	f.delete(jobs[6])
	f.sure(jobs[7], registry.ActAbort)
	f.delete(jobs[8])
	f.state(batch, registry.StateFailed)
	f.command(batch, registry.ActUpdateReport, "")
	second := f.closing(batch)
	f.state(batch, registry.StateFailed)
	want := registry.BatchReport{
		BatchID: batch, Closing: 2, CreatedAt: second.CreatedAt, Jobs: 7, Completed: 2, Failed: 5, Content: 2, Stopped: 2,
		Difference: &registry.ReportDifference{Since: 1, NowCompleted: 1, StillFailed: 2, NewlyFailed: 1, NowStopped: 1, Unchanged: 2},
	}
	if diff := cmp.Diff(want, second); diff != "" {
		f.Errorf("second report (-want +got):\n%s", diff)
	}
	all := f.reportRows(registry.ReportQuery{BatchID: batch, Closing: 2})
	wantChanges := map[int64]registry.JobChange{
		1: registry.ChangeNone, 2: registry.ChangeCompleted, 3: registry.ChangeStillFailed, 4: registry.ChangeStillFailed,
		5: registry.ChangeNewlyFailed, 6: registry.ChangeNone, 8: registry.ChangeStopped, // what was deleted is told of no more
	}
	if diff := cmp.Diff(wantChanges, changes(all)); diff != "" {
		f.Errorf("changes (-want +got):\n%s", diff)
	}
	if j := all[6]; j.State != registry.StateAborted || j.Error != "aborted by admin: because" || j.Fix == "" {
		f.Errorf("an aborted job is told as %+v", j)
	}
	f.selections(batch, all)

	// Nothing changed since; what is told of the reports before stays as it was.
	f.command(batch, registry.ActUpdateReport, "")
	third := f.closing(batch)
	if d := third.Difference; d == nil || *d != (registry.ReportDifference{Since: 2, StillFailed: 3, Unchanged: 4}) {
		f.Errorf("third report %+v, difference %+v", third, d)
	}
	var listed []registry.BatchReport
	for before := int64(0); ; {
		page, err := f.Reports(f.Context(), batch, before, 2)
		f.must(err)
		listed = append(listed, page...)
		if len(page) < 2 {
			break
		}
		before = page[1].Closing
	}
	if diff := cmp.Diff([]registry.BatchReport{third, second, first}, listed); diff != "" {
		f.Errorf("reports (-want +got):\n%s", diff)
	}
	f.invariants()
}

// selections checks that each list and each change of a report's rows can be read alone.
func (f *fixture) selections(batch string, all []registry.JobResult) {
	f.Helper()
	lists, found := map[registry.ReportList][]registry.JobResult{}, map[registry.JobChange][]registry.JobResult{}
	for _, j := range all {
		list := registry.ListFailed
		if j.State == registry.StateCompleted {
			list = registry.ListCompleted
		}
		lists[list] = append(lists[list], j)
		found[j.Change] = append(found[j.Change], j)
	}
	for _, list := range registry.ReportLists() {
		if diff := cmp.Diff(lists[list], f.reportRows(registry.ReportQuery{BatchID: batch, List: list})); diff != "" {
			f.Errorf("list %s (-want +got):\n%s", list, diff)
		}
	}
	for _, change := range registry.JobChanges() {
		if diff := cmp.Diff(found[change], f.reportRows(registry.ReportQuery{BatchID: batch, Closing: 2, Changes: []registry.JobChange{change}})); diff != "" {
			f.Errorf("change %s (-want +got):\n%s", change, diff)
		}
	}
	both := f.reportRows(registry.ReportQuery{BatchID: batch, List: registry.ListFailed, Changes: []registry.JobChange{
		registry.ChangeCompleted, registry.ChangeNewlyFailed,
	}})
	if diff := cmp.Diff(found[registry.ChangeNewlyFailed], both); diff != "" {
		f.Errorf("failed, and completed or newly failed (-want +got):\n%s", diff)
	}
	for _, q := range []registry.ReportQuery{{BatchID: batch, List: "all"}, {BatchID: batch, Changes: []registry.JobChange{"completed"}}} {
		_, err := f.ReportJobs(f.Context(), q)
		f.is(err, registry.ErrInvalid)
	}
}

// A batch goes to Completed by an update when all its jobs have completed since, and the update waits for those that run.
func updateCompletes(f *fixture) {
	batch, jobs := f.batch(2)
	for _, id := range jobs {
		f.fail(id, registry.SystemFault)
	}
	f.closing(batch)
	for _, id := range jobs {
		f.command(id, registry.ActRequeue, "")
	}
	f.finish(jobs[0])
	f.command(batch, registry.ActUpdateReport, "")
	if got := f.refused(registry.Report, batch).Reason; got != registry.ReasonBlocked {
		f.Errorf("the update does not wait for the job that runs: %s", got)
	}
	f.finish(jobs[1])
	r := f.closing(batch)
	if d := r.Difference; d == nil || d.NowCompleted != 2 || r.Failed != 0 {
		f.Errorf("update %+v, difference %+v", r, d)
	}
	f.state(batch, registry.StateCompleted)
}

// What was not in the report before is new: rows of a manifest that became jobs when the batch was expanded once more.
func newInReport(f *fixture) {
	batch, jobs := f.batch(1)
	f.fail(jobs[0], registry.ContentFault)
	f.closing(batch)
	f.command(batch, registry.ActUpdateReport, "")
	f.fail(batch, registry.SystemFault) // only what failed itself is requeued
	f.command(batch, registry.ActRequeue, registry.Expand)
	c := f.takeItem(batch)
	_, err := f.AddJobs(f.Context(), c.Lease, newJobs(2))
	f.must(err)
	f.done(c.Lease)
	f.finish(f.children(batch)[1])
	r := f.closing(batch)
	want := map[int64]registry.JobChange{1: registry.ChangeStillFailed, 2: registry.ChangeNew}
	if diff := cmp.Diff(want, changes(f.reportRows(registry.ReportQuery{BatchID: batch}))); diff != "" {
		f.Errorf("changes (-want +got):\n%s", diff)
	}
	if d := r.Difference; d == nil || d.NewJobs != 1 || d.StillFailed != 1 || d.Unchanged != 0 {
		f.Errorf("difference %+v", d)
	}
}

// TestR22: a job that is sent back between the claim of the batch and its report keeps the report from being made: there is
// none of this moment, and one when it has settled, be that before or after its worker let the batch go.
func reportWaits(f *fixture) {
	for _, released := range []bool{true, false} {
		batch, jobs := f.reportable()
		l := f.take(registry.Report, batch).Lease
		f.command(jobs[1], registry.ActRequeue, "")
		for range 2 {
			_, err := f.CloseReport(f.Context(), l)
			f.is(err, registry.ErrJobsOpen)
		}
		_, err := f.ReportOf(f.Context(), batch, 0)
		f.is(err, registry.ErrNotFound)
		if released {
			f.settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeSnooze, Reason: registry.ReasonBlocked, Delay: lease})
			f.invariants()
		}
		f.finish(jobs[1])
		if released {
			f.clock.pass(lease)
			l = f.take(registry.Report, batch).Lease
		}
		if r := f.closeReport(l); r.Completed != 2 || r.Difference != nil {
			f.Errorf("released %v: report %+v", released, r)
		}
		f.done(l)
		f.state(batch, registry.StateCompleted)
		all, err := f.Reports(f.Context(), batch, 0, 0)
		f.must(err)
		if len(all) != 1 {
			f.Errorf("released %v: %d reports", released, len(all))
		}
	}
}

// TestR22: however the last job ends, the batch's turn to report comes with it.
func reportedHoweverEnded(f *fixture) {
	for _, tt := range []struct {
		name string
		want registry.State
		last func(id string)
	}{
		{"it completes", registry.StateCompleted, f.finish},
		{"it fails", registry.StateFailed, func(id string) { f.fail(id, registry.ContentFault) }},
		{"it is cancelled", registry.StateCancelled, func(id string) { f.command(id, registry.ActCancel, "") }},
		{"it is aborted", registry.StateAborted, func(id string) { f.sure(id, registry.ActAbort) }},
		{"it is deleted, and told of no more", registry.StateDeleted, func(id string) {
			f.must(f.AddHold(f.Context(), registry.Hold{Scope: registry.HoldItem, Key: id, Reason: "look", Actor: "admin"}))
			f.delete(id)
		}},
		{"its tries are used up", registry.StateFailed, func(id string) {
			f.bring(id, registry.Download)
			f.settle(registry.Settlement{
				Lease: f.takeItem(id).Lease, Outcome: registry.OutcomeRetry, Class: registry.SystemFault, Error: "no", MaxAttempts: 1,
			})
		}},
		{"its workers die", registry.StateFailed, func(id string) {
			f.bring(id, registry.Download)
			for range attempts {
				f.loseOnce(id)
			}
		}},
		{"it is cancelled while it runs", registry.StateCancelled, func(id string) {
			l := f.takeItem(id).Lease
			f.command(id, registry.ActCancel, "")
			_, err := f.Settle(f.Context(), registry.Settlement{Lease: l, Outcome: registry.OutcomeDone})
			f.is(err, registry.ErrClaimLost)
		}},
	} {
		batch, jobs := f.batch(2)
		f.finish(jobs[0])
		if got := f.refused(registry.Report, batch).Reason; got != registry.ReasonBlocked {
			f.Errorf("%s: the report does not wait for it: %s", tt.name, got)
		}
		tt.last(jobs[1])
		r := f.closing(batch)
		rows := f.reportRows(registry.ReportQuery{BatchID: batch})
		gone := tt.want == registry.StateDeleted
		if len(rows) != int(r.Jobs) || gone != (len(rows) == 1) || !gone && rows[1].State != tt.want || r.Closing != 1 {
			f.Errorf("%s: report %+v of %+v", tt.name, r, rows)
		}
		if end := f.item(batch); !end.Status.Settled() || (end.Status == registry.Completed) != (gone || tt.want == registry.StateCompleted) {
			f.Errorf("%s: the batch is %s", tt.name, end.Status)
		}
	}
}
