package deposittest

import (
	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

// reportRows lists the rows of a report that a query selects, two at a time.
func (f *fixture) reportRows(q registry.ReportQuery) (rows []registry.JobResult) {
	f.Helper()
	for q.Limit = 2; ; {
		page, err := f.Store.ReportJobs(f.Context(), q)
		f.Must(err)
		rows = append(rows, page...)
		if len(page) < q.Limit {
			return rows
		}
		q.AfterRow = page[len(page)-1].Row
	}
}

// changes returns the change of each row.
func changes(rows []registry.JobResult) map[int64]registry.JobChange {
	out := map[int64]registry.JobChange{}
	for _, j := range rows {
		out[j.Row] = j.Change
	}
	return out
}

// reportDifference (R22): an updated report says of each job what changed since the previous
// report. The first report has no changes.
func reportDifference(f *fixture) {
	batch, jobs := f.Batch(9)
	f.Finish(jobs[0])
	for _, i := range []int{1, 2, 3, 6, 7} {
		f.FailItem(jobs[i], registry.ContentFault)
	}
	for _, i := range []int{4, 5, 8} {
		f.Command(jobs[i], registry.ActCancel, "")
	}
	first := f.Closing(batch)
	if first.Difference != nil || first.Failed != 8 || first.Stopped != 3 || first.Content != 5 {
		f.Errorf("first report %+v", first)
	}
	for row, change := range changes(f.reportRows(registry.ReportQuery{BatchID: batch})) {
		if change != "" {
			f.Errorf("row %d of the first report is %s", row, change)
		}
	}

	for _, i := range []int{1, 2, 4} {
		f.Command(jobs[i], registry.ActRequeue, "")
	}
	f.Finish(jobs[1])
	f.FailItem(jobs[2], registry.SystemFault)
	f.FailItem(jobs[4], registry.ContentFault)
	f.DeleteItem(jobs[6])
	f.Confirm(jobs[7], registry.ActAbort)
	f.DeleteItem(jobs[8])
	f.State(batch, registry.StateFailed)
	f.Command(batch, registry.ActUpdateReport, "")
	second := f.Closing(batch)
	f.State(batch, registry.StateFailed)
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
	f.Command(batch, registry.ActUpdateReport, "")
	third := f.Closing(batch)
	if d := third.Difference; d == nil || *d != (registry.ReportDifference{Since: 2, StillFailed: 3, Unchanged: 4}) {
		f.Errorf("third report %+v, difference %+v", third, d)
	}
	var listed []registry.BatchReport
	for before := int64(0); ; {
		page, err := f.Store.Reports(f.Context(), batch, before, 2)
		f.Must(err)
		listed = append(listed, page...)
		if len(page) < 2 {
			break
		}
		before = page[1].Closing
	}
	if diff := cmp.Diff([]registry.BatchReport{third, second, first}, listed); diff != "" {
		f.Errorf("reports (-want +got):\n%s", diff)
	}
	f.Invariants()
}

// selections checks that each list and each change of a report can be read alone.
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
		_, err := f.Store.ReportJobs(f.Context(), q)
		f.Is(err, registry.ErrInvalid)
	}
}

// updateCompletes: an update completes a batch when all its jobs have completed since. It waits for
// running jobs.
func updateCompletes(f *fixture) {
	batch, jobs := f.Batch(2)
	for _, id := range jobs {
		f.FailItem(id, registry.SystemFault)
	}
	f.Closing(batch)
	for _, id := range jobs {
		f.Command(id, registry.ActRequeue, "")
	}
	f.Finish(jobs[0])
	f.Command(batch, registry.ActUpdateReport, "")
	if got := f.Refused(registry.Report, batch).Reason; got != registry.ReasonBlocked {
		f.Errorf("the update does not wait for the job that runs: %s", got)
	}
	f.Finish(jobs[1])
	r := f.Closing(batch)
	if d := r.Difference; d == nil || d.NowCompleted != 2 || r.Failed != 0 {
		f.Errorf("update %+v, difference %+v", r, d)
	}
	f.State(batch, registry.StateCompleted)
}

// newInReport: rows that became jobs in a second expansion are new in the report.
func newInReport(f *fixture) {
	batch, jobs := f.Batch(1)
	f.FailItem(jobs[0], registry.ContentFault)
	f.Closing(batch)
	f.Command(batch, registry.ActUpdateReport, "")
	f.FailItem(batch, registry.SystemFault) // only what failed itself is requeued
	f.Command(batch, registry.ActRequeue, registry.Expand)
	c := f.TakeItem(batch)
	_, err := f.Store.AddJobs(f.Context(), c.Lease, registrytest.NewJobs(2))
	f.Must(err)
	f.Done(c.Lease)
	f.Finish(f.Children(batch)[1])
	r := f.Closing(batch)
	want := map[int64]registry.JobChange{1: registry.ChangeStillFailed, 2: registry.ChangeNew}
	if diff := cmp.Diff(want, changes(f.reportRows(registry.ReportQuery{BatchID: batch}))); diff != "" {
		f.Errorf("changes (-want +got):\n%s", diff)
	}
	if d := r.Difference; d == nil || d.NewJobs != 1 || d.StillFailed != 1 || d.Unchanged != 0 {
		f.Errorf("difference %+v", d)
	}
}

// reportWaits (R22): a job that is requeued between the claim of the batch and its report prevents
// the report. The report is made when the job has settled, before or after the worker releases the
// batch.
func reportWaits(f *fixture) {
	for _, released := range []bool{true, false} {
		batch, jobs := f.Reportable()
		l := f.Take(registry.Report, batch).Lease
		f.Command(jobs[1], registry.ActRequeue, "")
		for range 2 {
			_, err := f.Store.CloseReport(f.Context(), l)
			f.Is(err, registry.ErrJobsOpen)
		}
		_, err := f.Store.ReportOf(f.Context(), batch, 0)
		f.Is(err, registry.ErrNotFound)
		if released {
			f.Settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeSnooze, Reason: registry.ReasonBlocked, Delay: registrytest.Lease})
			f.Invariants()
		}
		f.Finish(jobs[1])
		if released {
			f.Clock.Pass(registrytest.Lease)
			l = f.Take(registry.Report, batch).Lease
		}
		if r := f.CloseReport(l); r.Completed != 2 || r.Difference != nil {
			f.Errorf("released %v: report %+v", released, r)
		}
		f.Done(l)
		f.State(batch, registry.StateCompleted)
		all, err := f.Store.Reports(f.Context(), batch, 0, 0)
		f.Must(err)
		if len(all) != 1 {
			f.Errorf("released %v: %d reports", released, len(all))
		}
	}
}

// reportedHoweverEnded (R22): the batch becomes ready to report however its last job ends.
func reportedHoweverEnded(f *fixture) {
	for _, tt := range []struct {
		name string
		want registry.State
		last func(id string)
	}{
		{"it completes", registry.StateCompleted, f.Finish},
		{"it fails", registry.StateFailed, func(id string) { f.FailItem(id, registry.ContentFault) }},
		{"it is cancelled", registry.StateCancelled, func(id string) { f.Command(id, registry.ActCancel, "") }},
		{"it is aborted", registry.StateAborted, func(id string) { f.Confirm(id, registry.ActAbort) }},
		{"it is deleted, and told of no more", registry.StateDeleted, func(id string) {
			f.Must(f.Store.AddHold(f.Context(), registry.Hold{Scope: registry.HoldItem, Key: id, Reason: "look", Actor: "admin"}))
			f.DeleteItem(id)
		}},
		{"its tries are used up", registry.StateFailed, func(id string) {
			f.Bring(id, registry.Download)
			f.Settle(registry.Settlement{
				Lease: f.TakeItem(id).Lease, Outcome: registry.OutcomeRetry, Class: registry.SystemFault, Error: "no", MaxAttempts: 1,
			})
		}},
		{"its workers die", registry.StateFailed, func(id string) {
			f.Bring(id, registry.Download)
			for range registrytest.Attempts {
				f.LoseOnce(id)
			}
		}},
		{"it is cancelled while it runs", registry.StateCancelled, func(id string) {
			l := f.TakeItem(id).Lease
			f.Command(id, registry.ActCancel, "")
			_, err := f.Store.Settle(f.Context(), registry.Settlement{Lease: l, Outcome: registry.OutcomeDone})
			f.Is(err, registry.ErrClaimLost)
		}},
	} {
		batch, jobs := f.Batch(2)
		f.Finish(jobs[0])
		if got := f.Refused(registry.Report, batch).Reason; got != registry.ReasonBlocked {
			f.Errorf("%s: the report does not wait for it: %s", tt.name, got)
		}
		tt.last(jobs[1])
		r := f.Closing(batch)
		rows := f.reportRows(registry.ReportQuery{BatchID: batch})
		gone := tt.want == registry.StateDeleted
		if len(rows) != int(r.Jobs) || gone != (len(rows) == 1) || !gone && rows[1].State != tt.want || r.Closing != 1 {
			f.Errorf("%s: report %+v of %+v", tt.name, r, rows)
		}
		if end := f.Item(batch); !end.Status.Settled() || (end.Status == registry.Completed) != (gone || tt.want == registry.StateCompleted) {
			f.Errorf("%s: the batch is %s", tt.name, end.Status)
		}
	}
}
