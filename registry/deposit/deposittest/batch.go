package deposittest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func batchTests() tests {
	return tests{
		"batch_happy_path":        batchHappyPath,
		"batch_failure":           batchFailure,
		"batch_recovery":          batchRecovery,
		"R22_rows_are_added_once": rowsOnce,
		"R22_a_batch_is_expanded_over_several_attempts":  rowsOverAttempts,
		"bad_rows_are_born_failed":                       badRows,
		"what_is_no_row":                                 noRow,
		"only_a_batch_has_jobs":                          onlyBatchHasJobs,
		"I9_R12_jobs_settle_while_the_batch_is_expanded": settleWhileExpanding,
		"I9_R12_however_jobs_end":                        howeverJobsEnd,
		"I9_R12_jobs_that_settle_at_the_same_time":       jobsRace,
		"an_empty_batch":                                 emptyBatch,
		"progress":                                       batchProgress,
		"R25_lines_far_apart_cost_no_time":               linesApart,
	}
}

func batchHappyPath(f *fixture) {
	id, jobs := f.Batch(3)
	f.State(id, registry.StateProcessing)
	for i, job := range jobs {
		if got := f.Refused(registry.Report, id).Reason; got != registry.ReasonBlocked {
			f.Errorf("with %d jobs open the report waits because %s", len(jobs)-i, got)
		}
		if got := f.Item(id).BlockerCount; got != int64(len(jobs)-i) {
			f.Errorf("blocker_count=%d, want %d", got, len(jobs)-i)
		}
		f.Finish(job)
		f.Invariants()
	}
	f.State(id, registry.StateReporting)
	if got := f.Item(id).Closing; got != 1 {
		f.Errorf("closing=%d, want 1", got)
	}
	if got := f.Done(f.Take(registry.Report, id).Lease); got.Status != registry.Completed {
		f.Errorf("verdict %+v", got)
	}
	f.State(id, registry.StateCompleted)
	if got := f.Refused(registry.Report, id).Reason; got != registry.ReasonSettled {
		f.Errorf("a completed batch: %s", got)
	}
}

func batchFailure(f *fixture) {
	id, jobs := f.Batch(2)
	f.Bring(jobs[0], registry.Notify)
	f.FailItem(jobs[0], registry.SystemFault)
	f.Finish(jobs[1])
	f.Done(f.Take(registry.Report, id).Lease)
	it := f.Item(id)
	if it.State != registry.StateFailed || it.ErrorClass != registry.JobsFault || it.Note == "" || !it.NeedsAdminReview {
		f.Errorf("batch %+v", it)
	}
}

func batchRecovery(f *fixture) {
	id, jobs := f.Batch(2)
	f.FailItem(jobs[0], registry.SystemFault)
	f.Finish(jobs[1])
	f.Done(f.Take(registry.Report, id).Lease)
	f.Command(jobs[0], registry.ActRequeue, "")
	if it := f.Item(id); it.Status != registry.Failed || it.BlockerCount != 1 {
		f.Errorf("a job that runs again made its batch %s with blocker_count %d", it.Status, it.BlockerCount)
	}
	f.Command(id, registry.ActUpdateReport, "")
	f.State(id, registry.StateProcessing)
	if got := f.Refused(registry.Report, id).Reason; got != registry.ReasonBlocked {
		f.Errorf("the update waits because %s", got)
	}
	f.Finish(jobs[0])
	f.State(id, registry.StateUpdateReport)
	if got := f.Item(id).Closing; got != 2 {
		f.Errorf("closing=%d, want 2", got)
	}
	f.Done(f.Take(registry.Report, id).Lease)
	f.State(id, registry.StateCompleted)
	if got := f.Item(jobs[0]).RetryCount; got != 1 {
		f.Errorf("retry_count=%d, want 1", got)
	}
}

func rowsOnce(f *fixture) {
	id := f.Submit()
	l := f.Take(registry.Expand, id).Lease
	for i, want := range []int{5, 0, 3} {
		n := []int{5, 5, 8}[i]
		added, err := f.Store.AddJobs(f.Context(), l, registrytest.NewJobs(n))
		f.Must(err)
		if added != want {
			f.Errorf("call %d added %d, want %d", i, added, want)
		}
	}
	if it, jobs := f.Item(id), f.Children(id); it.BlockerCount != 8 || len(jobs) != 8 {
		f.Errorf("blocker_count=%d, %d jobs; want 8", it.BlockerCount, len(jobs))
	}
	for i, job := range f.All(registry.ItemQuery{ParentID: id}) {
		if job.Row != int64(i+1) || job.Stage != registry.Estimate || job.State != registry.StatePending || job.Collection != registrytest.Mnemonic {
			f.Errorf("job %d: %+v", i, job)
		}
	}
}

func rowsOverAttempts(f *fixture) {
	id := f.Submit()
	add := func(l registry.Lease, n int) {
		f.Helper()
		_, err := f.Store.AddJobs(f.Context(), l, registrytest.NewJobs(n))
		f.Must(err)
	}
	add(f.Take(registry.Expand, id).Lease, 3)
	first := f.Children(id)
	f.Sweep(2 * registrytest.Lease) // killed half-way
	if got := f.Item(id).Results[registry.ResultExpanded]; string(got) != "3" {
		f.Errorf("expanded to row %s, want 3", got)
	}
	f.Finish(first[0])
	f.FailItem(first[1], registry.ContentFault)
	c := f.Take(registry.Expand, id)
	add(c.Lease, 6)
	_, err := f.Store.AddJobs(f.Context(), c.Lease, registrytest.NewJobs(2)) // an answer that was lost is asked for again
	f.Must(err)
	f.Done(c.Lease)
	if got := f.Item(id).Results[registry.ResultExpanded]; string(got) != "6" {
		f.Errorf("expanded to row %s, want 6", got)
	}
	if got := f.Children(id); len(got) != 6 || !slices.Equal(got[:3], first) {
		f.Errorf("jobs %v, want the first three %v and three more", got, first)
	}
	if got := f.Item(id).BlockerCount; got != 4 {
		f.Errorf("blocker_count=%d, want 4", got)
	}
}

func badRows(f *fixture) {
	id := f.Submit()
	c := f.Take(registry.Expand, id)
	jobs := registrytest.NewJobs(3)
	jobs[1].Fault, jobs[1].Class = "line 2: no digest", registry.ContentFault
	jobs[2].Fault = "line 3: not a URL"
	added, err := f.Store.AddJobs(f.Context(), c.Lease, jobs)
	f.Must(err)
	f.Done(c.Lease)
	if it := f.Item(id); added != 3 || it.BlockerCount != 1 {
		f.Errorf("added=%d blocker_count=%d, want 3 and 1", added, it.BlockerCount)
	}
	for _, row := range []int{1, 2} {
		it := f.Item(f.Children(id)[row])
		if it.State != registry.StateFailed || it.Note != jobs[row].Fault || it.ErrorClass != registry.ContentFault || it.Attempt != 0 {
			f.Errorf("row %d: %+v", row+1, it)
		}
	}
	if got := f.Events(f.Children(id)[1]); !slices.Equal(got, []string{"reject"}) {
		f.Errorf("events %v", got)
	}
}

func noRow(f *fixture) {
	id := f.Submit()
	l := f.Take(registry.Expand, id).Lease
	zero := registrytest.NewJobs(3)
	zero[2].Line = 0
	if _, err := f.Store.AddJobs(f.Context(), l, zero); err == nil {
		f.Error("line 0 was taken")
	}
	if _, err := f.Store.AddJobs(f.Context(), l, registrytest.NewJobs(501)); err == nil {
		f.Error("501 rows were taken in one call")
	}
	if jobs := f.Children(id); len(jobs) != 0 {
		f.Errorf("a refused call left %d jobs", len(jobs))
	}
}

func onlyBatchHasJobs(f *fixture) {
	l := f.TakeItem(f.Job(registry.Download)).Lease
	if _, err := f.Store.AddJobs(f.Context(), l, registrytest.NewJobs(1)); err == nil {
		f.Error("a job got jobs")
	}
}

func settleWhileExpanding(f *fixture) {
	id := f.Submit()
	c := f.Take(registry.Expand, id)
	_, err := f.Store.AddJobs(f.Context(), c.Lease, registrytest.NewJobs(2))
	f.Must(err)
	for _, job := range f.Children(id) {
		f.Finish(job)
	}
	f.Invariants()
	if it := f.Item(id); it.Status != registry.Running || it.Closing != 0 {
		f.Fatalf("the running batch is %s, closing %d", it.Status, it.Closing)
	}
	f.Done(c.Lease)
	if it := f.Item(id); it.Closing != 1 || it.State != registry.StateReporting {
		f.Errorf("closing=%d state=%s, want 1 and Reporting", it.Closing, it.State)
	}
	if got := f.Offered(5); !slices.Contains(got, id) {
		f.Errorf("due %v: the report is not rung for", got)
	}
}

func howeverJobsEnd(f *fixture) {
	id, jobs := f.Batch(5)
	f.Finish(jobs[0])
	f.FailItem(jobs[1], registry.ContentFault)
	f.Command(jobs[2], registry.ActCancel, "")
	f.Bring(jobs[3], registry.Provision)
	for range registrytest.Attempts {
		f.Retry(jobs[3], registrytest.Attempts)
	}
	f.Bring(jobs[4], registry.Provision)
	for range registrytest.Attempts {
		f.Invariants()
		f.LoseOnce(jobs[4])
	}
	if it := f.Item(id); it.BlockerCount != 0 || it.Closing != 1 {
		f.Fatalf("blocker_count=%d closing=%d, want 0 and 1", it.BlockerCount, it.Closing)
	}
	f.Done(f.Take(registry.Report, id).Lease)
	if p := f.Progress(id); p.Jobs != 5 || p.Completed != 1 || p.Failed != 4 || p.Content != 1 || p.Open != 0 || !p.Settled {
		f.Errorf("progress %+v", p)
	}
}

func jobsRace(f *fixture) {
	const n = 30
	id, jobs := f.Batch(n)
	leases := make([]registry.Lease, n)
	for i := range jobs {
		leases[i] = f.Take(registry.Estimate, jobs[i]).Lease
	}
	var all sync.WaitGroup
	for _, l := range leases {
		all.Go(func() {
			s := registry.Settlement{Lease: l, Outcome: registry.OutcomeFailed, Class: registry.ContentFault, Error: "no"}
			if _, err := f.Store.Settle(f.Context(), s); err != nil {
				f.Error(err)
			}
			if _, err := f.Store.Settle(f.Context(), s); err != nil { // the repeat counts nothing down
				f.Error(err)
			}
		})
	}
	all.Wait()
	if it := f.Item(id); it.BlockerCount != 0 || it.Closing != 1 {
		f.Errorf("blocker_count=%d closing=%d, want 0 and 1", it.BlockerCount, it.Closing)
	}
}

func emptyBatch(f *fixture) {
	id, _ := f.Batch(0)
	c := f.Take(registry.Report, id)
	r, err := f.Store.CloseReport(f.Context(), c.Lease)
	f.Must(err)
	if r.Jobs != 0 || r.Closing != 1 {
		f.Errorf("report %+v", r)
	}
	f.Done(c.Lease)
	f.State(id, registry.StateCompleted)
}

func batchProgress(f *fixture) {
	id := f.Submit()
	if p := f.Progress(id); p.Expanded || p.Settled || p.SizeKnown || p.State != registry.StatePending {
		f.Errorf("before: %+v", p)
	}
	c := f.TakeItem(id)
	_, err := f.Store.AddJobs(f.Context(), c.Lease, registrytest.NewJobs(4))
	f.Must(err)
	f.Done(c.Lease)
	jobs := f.Children(id)
	size, files := int64(1000), int64(10)
	for i, job := range jobs[:3] {
		s := registry.Settlement{Lease: f.TakeItem(job).Lease, Outcome: registry.OutcomeDone, SizeBytes: &size, Files: &files}
		f.Settle(s)
		if i == 1 {
			f.Finish(job)
		}
	}
	f.FailItem(jobs[3], registry.ContentFault)
	f.Bring(jobs[2], registry.Download)
	b := registry.Beat{Lease: f.TakeItem(jobs[2]).Lease, DoneBytes: 400, DoneFiles: 4}
	f.Renew(b)
	p := f.Progress(id)
	if p.Jobs != 4 || p.Open != 2 || p.Completed != 1 || p.Failed != 1 || p.Content != 1 || !p.Expanded || p.Settled {
		f.Errorf("jobs: %+v", p)
	}
	if p.Bytes != 3000 || p.Files != 30 || p.DoneBytes != 400 || p.DoneFiles != 4 || !p.SizeKnown {
		f.Errorf("sizes: %+v", p)
	}
	if p.States[registry.StateDownloading] != 1 || p.States[registry.StateProvisioning] != 1 || p.States[registry.StateCompleted] != 1 ||
		p.States[registry.StateFailed] != 1 || !slices.Equal(p.Current, []string{"job-3"}) {
		f.Errorf("states: %v, current %v", p.States, p.Current)
	}
	at := map[registry.Stage]registry.StageProgress{}
	for _, s := range p.Stages {
		at[s.Stage] = s
	}
	for stage, want := range map[registry.Stage]registry.StageProgress{
		registry.Estimate:  {Done: 3, Failed: 1},
		registry.Provision: {Done: 2, Waiting: 1},
		registry.Download:  {Done: 1, Running: 1},
		registry.Notify:    {Done: 1},
	} {
		if want.Stage = stage; at[stage] != want {
			f.Errorf("%s: %+v, want %+v", stage, at[stage], want)
		}
	}
	if p.Recent != 2 {
		f.Errorf("%d jobs settled recently, want 2", p.Recent)
	}
	f.Must(f.Store.AddHold(f.Context(), registry.Hold{Scope: registry.HoldItem, Key: jobs[0], Actor: "admin"}))
	p = f.Progress(id)
	if p.Held {
		f.Error("held although a job runs")
	}
	if i := slices.IndexFunc(p.Stages, func(s registry.StageProgress) bool { return s.Stage == registry.Provision }); p.Stages[i].Waiting != 1 || p.Stages[i].Held != 1 {
		f.Errorf("held: %+v", p.Stages[i])
	}
	f.Settle(registry.Settlement{Lease: b.Lease, Outcome: registry.OutcomeReleased})
	f.Must(f.Store.AddHold(f.Context(), registry.Hold{Scope: registry.HoldCollection, Key: registrytest.Mnemonic, Actor: "admin"}))
	if !f.Progress(id).Held {
		f.Error("not held although all that is open is")
	}
	_, err = f.Store.BatchProgress(f.Context(), "unknown")
	f.Is(err, registry.ErrNotFound)
}

// linesApart: a worker sends a line number that the manifest does not have. Sums go by the rows
// that exist.
func linesApart(f *fixture) {
	batch := f.Submit()
	c := f.TakeItem(batch)
	jobs := registrytest.NewJobs(2)
	jobs[1].Line, jobs[1].Row = 1<<60, 2
	_, err := f.Store.AddJobs(f.Context(), c.Lease, jobs)
	f.Is(err, registry.ErrInvalid)
	jobs[1].Line = 1 << 40
	_, err = f.Store.AddJobs(f.Context(), c.Lease, jobs)
	f.Must(err)
	f.Done(c.Lease)
	ctx, cancel := context.WithTimeout(f.Context(), 10*time.Second)
	defer cancel()
	p, err := f.Store.BatchProgress(ctx, batch)
	f.Must(err)
	if p.Jobs != 2 || p.Open != 2 {
		f.Errorf("progress %+v", p)
	}
}
