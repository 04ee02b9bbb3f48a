package deposittest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func reportTests() tests {
	return tests{
		"R22_one_report_for_each_closing":                                      oneReport,
		"R22_a_report_is_a_snapshot":                                           reportSnapshot,
		"R22_an_update_is_a_report_of_its_own":                                 updateReport,
		"R22_a_job_that_runs_again_before_the_report":                          reopenedBeforeReport,
		"R22_an_update_tells_what_changed":                                     reportDifference,
		"counts_what_is_preserved_apart_from_what_failed":                      reportPreserved,
		"R22_a_report_waits_for_a_job_that_was_sent_back":                      reportWaits,
		"R22_a_batch_is_reported_however_its_jobs_end":                         reportedHoweverEnded,
		"an_update_completes_a_batch_when_its_jobs_have":                       updateCompletes,
		"what_was_not_in_the_report_before_is_new":                             newInReport,
		"requeue_of_a_batch_whose_jobs_failed_is_refused_and_names_what_helps": requeueOfJobsFailed,
		"update_report_needs_a_report":                                         updateNeedsReport,
		"only_a_batch_at_its_report_has_one":                                   onlyReportCloses,
		"jobs_of_a_report":                                                     reportJobs,
		"R27_jobs_of_programs_that_do_not_count_rows":                          rowsNotCounted,
	}
}

func oneReport(f *fixture) {
	id, _ := f.Reportable()
	_, err := f.Store.ReportOf(f.Context(), id, 0)
	f.Is(err, registry.ErrNotFound)
	_, err = f.Store.ReportJobs(f.Context(), registry.ReportQuery{BatchID: id, Closing: 1})
	f.Is(err, registry.ErrNotFound)
	want := registry.BatchReport{BatchID: id, Closing: 1, CreatedAt: f.Clock.Now(), Jobs: 2, Completed: 1, Failed: 1, Content: 1}
	l := f.Take(registry.Report, id).Lease
	first := f.CloseReport(l)
	f.Clock.Pass(registrytest.Lease)
	f.Settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeRetry, Error: "mail is down"})
	again := f.CloseReport(f.Take(registry.Report, id).Lease)
	last, err := f.Store.ReportOf(f.Context(), id, 0)
	f.Must(err)
	for _, got := range []registry.BatchReport{first, again, last} {
		if diff := cmp.Diff(want, got); diff != "" {
			f.Errorf("report (-want +got):\n%s", diff)
		}
	}
}

func reportSnapshot(f *fixture) {
	id, jobs := f.Reportable()
	l := f.Take(registry.Report, id).Lease
	f.CloseReport(l)
	f.Command(jobs[1], registry.ActRequeue, "")
	f.Finish(jobs[1])
	f.Done(l)
	it := f.Item(id)
	if it.Status != registry.Failed || it.ErrorClass != registry.JobsFault {
		f.Errorf("batch is %s (%s) although its report says that a job failed", it.Status, it.ErrorClass)
	}
	r, err := f.Store.ReportOf(f.Context(), id, 0)
	f.Must(err)
	if r.Failed != 1 {
		f.Errorf("the stored report changed: %+v", r)
	}
}

func updateReport(f *fixture) {
	id, jobs := f.Reportable()
	l := f.Take(registry.Report, id).Lease
	f.CloseReport(l)
	f.Done(l)
	f.Command(jobs[1], registry.ActRequeue, "")
	f.Finish(jobs[1])
	f.State(id, registry.StateFailed)
	f.Command(id, registry.ActUpdateReport, "")
	f.State(id, registry.StateUpdateReport)
	c := f.Take(registry.Report, id)
	if r := f.CloseReport(c.Lease); r.Closing != 2 || r.Completed != 2 || r.Failed != 0 {
		f.Errorf("update %+v", r)
	}
	f.Done(c.Lease)
	f.State(id, registry.StateCompleted)
	for closing, failed := range map[int64]int64{1: 1, 2: 0} {
		r, err := f.Store.ReportOf(f.Context(), id, closing)
		f.Must(err)
		if r.Closing != closing || r.Failed != failed {
			f.Errorf("report %d: %+v", closing, r)
		}
	}
}

func reopenedBeforeReport(f *fixture) {
	id, jobs := f.Reportable()
	f.Command(jobs[1], registry.ActRequeue, "")
	if got := f.Refused(registry.Report, id).Reason; got != registry.ReasonBlocked {
		f.Errorf("the report waits because %s", got)
	}
	f.Invariants()
	f.Finish(jobs[1])
	c := f.Take(registry.Report, id)
	if r := f.CloseReport(c.Lease); r.Completed != 2 || r.Closing != c.Item.Closing {
		f.Errorf("report %+v at closing %d", r, c.Item.Closing)
	}
	f.Done(c.Lease)
	f.State(id, registry.StateCompleted)
}

// requeueOfJobsFailed: a batch that failed because of its jobs cannot be requeued. The refusal
// names the acts that help, and no other report is made. A batch that failed itself can be
// requeued.
func requeueOfJobsFailed(f *fixture) {
	id, _ := f.Reportable()
	f.Closing(id)
	f.State(id, registry.StateFailed)
	helps := []string{"requeue --match 'batch:" + id + " state:failed'", "update-report " + id}
	for _, from := range []registry.Stage{"", registry.Report, registry.Expand} {
		f.RefusedCommand(id, registry.ActRequeue, from, registry.StateFailed, registry.StatePending)
		_, err := f.Store.Command(f.Context(), registry.Command{ItemID: id, Act: registry.ActRequeue, From: from, Actor: "admin"})
		for _, words := range helps {
			if !strings.Contains(err.Error(), words) {
				f.Errorf("requeue from %q: %v, want %q", from, err, words)
			}
		}
	}
	p := f.Apply(f.Bulk(registry.ActRequeue, "id:"+id).ID)
	if p.Applied != 0 || p.Refused != 1 || len(p.Refusals) != 1 || !strings.Contains(p.Refusals[0], helps[0]) {
		f.Errorf("requeue in bulk: %+v", p)
	}
	f.State(id, registry.StateFailed)
	if r, err := f.Store.ReportOf(f.Context(), id, 0); err != nil || r.Closing != 1 {
		f.Errorf("report %+v (%v), want the first one", r, err)
	}
	f.Command(id, registry.ActUpdateReport, "")
	l := f.Take(registry.Report, id).Lease
	f.Settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "no room"})
	f.Command(id, registry.ActRequeue, "")
	f.Closing(id)
}

func updateNeedsReport(f *fixture) {
	id := f.Submit()
	f.FailItem(id, registry.ContentFault) // a corrupt manifest
	f.RefusedCommand(id, registry.ActUpdateReport, "", registry.StateFailed, registry.StateUpdateReport)
}

func onlyReportCloses(f *fixture) {
	if _, err := f.Store.CloseReport(f.Context(), f.Take(registry.Expand, f.Submit()).Lease); err == nil {
		f.Error("a batch that is being expanded was reported")
	}
	if _, err := f.Store.CloseReport(f.Context(), f.TakeItem(f.Job(registry.Download)).Lease); err == nil {
		f.Error("a job was reported")
	}
}

func reportJobs(f *fixture) {
	id := f.Submit()
	c := f.TakeItem(id)
	jobs := registrytest.NewJobs(5)
	jobs[0].Spec.LocalIDs = []string{"loc-1"}
	jobs[1].Spec.Title = `"repeats":{"row":1}` // which is no more than a title
	jobs[2].Spec.Repeats = &registry.RowPlace{Row: 1, Line: 3}
	for i := range jobs {
		jobs[i].Line = int64(3 + 2*i)
	}
	jobs[4].Fault, jobs[4].Code = "line 5 is wrong", "E007"
	_, err := f.Store.AddJobs(f.Context(), c.Lease, jobs)
	f.Must(err)
	f.Done(c.Lease)
	ids := f.Children(id)
	named := func(i int, ark string) registry.Lease {
		f.Bring(ids[i], registry.Process)
		l := f.TakeItem(ids[i]).Lease
		f.Identify(l, registry.IdentifyRequest{Owner: registrytest.Owner, Proposed: ark})
		return l
	}
	f.Settle(registry.Settlement{Lease: named(0, "ark:/99999/x"), Outcome: registry.OutcomeDone, Results: map[string]json.RawMessage{"version": registrytest.RawJSON(`1`)}})
	f.Finish(ids[0])
	f.Settle(registry.Settlement{
		Lease: named(1, "ark:/99999/y"), Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "storage",
		Code: "http-503", Host: "s3.test", Remedy: "wait for it",
	})
	f.Finish(ids[2])
	f.Command(ids[3], registry.ActCancel, "")
	if r := f.CloseReport(f.Take(registry.Report, id).Lease); r.Repeats != 1 {
		f.Errorf("%d rows repeat others, want 1", r.Repeats)
	}
	if again, err := f.Store.ReportJobs(f.Context(), registry.ReportQuery{BatchID: id, Repeats: true}); err != nil || len(again) != 1 || again[0].Row != 3 {
		f.Errorf("rows that repeat others: %+v (%v), want the third", again, err)
	}
	var got []registry.JobResult
	for {
		after := int64(0)
		if len(got) > 0 {
			after = got[len(got)-1].Row
		}
		page, err := f.Store.ReportJobs(f.Context(), registry.ReportQuery{BatchID: id, AfterRow: after, Limit: 2})
		f.Must(err)
		got = append(got, page...)
		if len(page) < 2 {
			break
		}
	}
	want := []registry.JobResult{
		{Row: 1, State: registry.StateCompleted, ARK: "ark:/99999/x", ObjectID: "ark:/99999/x", Version: 1, LocalIDs: []string{"loc-1"}},
		{
			Row: 2, Title: `"repeats":{"row":1}`, State: registry.StateFailed, Stage: registry.Process, ARK: "ark:/99999/y", Error: "storage", Class: registry.SystemFault,
			Code: "http-503", Cause: registry.CauseOf(registry.Process, registry.SystemFault, "http-503", "s3.test", "").Fingerprint(),
			Fix: "wait for it, then requeue the item",
		},
		{Row: 3, State: registry.StateCompleted, Repeats: &registry.RowPlace{Row: 1, Line: 3}},
		{
			Row: 4, State: registry.StateCancelled, Stage: registry.Estimate, Error: "cancelled by admin: because",
			Fix: "nothing, or an admin requeues it",
		},
		{
			Row: 5, State: registry.StateFailed, Stage: registry.Estimate, Error: "line 5 is wrong", Class: registry.ContentFault, Code: "E007",
			Cause: registry.CauseOf(registry.Estimate, registry.ContentFault, "E007", "", "line 5 is wrong").Fingerprint(),
			Fix:   "the producer corrects the row and submits it alone, in a new batch",
		},
	}
	for i := range want {
		want[i].Line, want[i].ItemID, want[i].Name = int64(3+2*i), ids[i], fmt.Sprintf("job-%d", i+1)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("jobs (-want +got):\n%s", diff)
	}
}

// rowsNotCounted: during a rolling upgrade an older worker adds some jobs without row numbers.
// Every page of the report lists each job once, in the order of the manifest. From there on the
// line number replaces the row number.
func rowsNotCounted(f *fixture) {
	id := f.Submit()
	c := f.Take(registry.Expand, id)
	for _, j := range []registry.NewJob{{Line: 4, Row: 1}, {Line: 6, Row: 2}, {Line: 7}, {Line: 9, Row: 4}, {Line: 10, Row: 5}} {
		j.Name, j.Fault = fmt.Sprint(j.Line), "it is bad"
		_, err := f.Store.AddJobs(f.Context(), c.Lease, []registry.NewJob{j})
		f.Must(err)
	}
	f.Done(c.Lease)
	f.CloseReport(f.Take(registry.Report, id).Lease)
	want := [][2]int64{{1, 4}, {2, 6}, {7, 7}, {9, 9}, {10, 10}}
	for limit := 1; limit <= 5; limit++ {
		var got [][2]int64
		for after := int64(0); len(got) <= len(want); {
			page, err := f.Store.ReportJobs(f.Context(), registry.ReportQuery{BatchID: id, AfterRow: after, Limit: limit})
			f.Must(err)
			for _, j := range page {
				got = append(got, [2]int64{j.Row, j.Line})
				after = j.Row
			}
			if len(page) < limit {
				break
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			f.Errorf("rows and lines, %d a page (-want +got):\n%s", limit, diff)
		}
	}
	for i, it := range f.All(registry.ItemQuery{ParentID: id}) {
		if got := [2]int64{it.Row, it.Line}; got != want[i] {
			f.Errorf("item %d is row and line %v, want %v", i, got, want[i])
		}
	}
}
