package registrytest

import (
	"slices"
	"sync"

	"github.com/holdfast/holdfast/registry"
)

func batchTests() []test {
	return []test{
		{"batch_happy_path", batchHappyPath},
		{"batch_failure", batchFailure},
		{"batch_recovery", batchRecovery},
		{"R22_rows_are_added_once", rowsOnce},
		{"R22_a_batch_is_expanded_over_several_attempts", rowsOverAttempts},
		{"bad_rows_are_born_failed", badRows},
		{"what_is_no_row", noRow},
		{"only_a_batch_has_jobs", onlyBatchHasJobs},
		{"I9_R12_jobs_settle_while_the_batch_is_expanded", settleWhileExpanding},
		{"I9_R12_however_jobs_end", howeverJobsEnd},
		{"I9_R12_jobs_that_settle_at_the_same_time", jobsRace},
		{"an_empty_batch", emptyBatch},
		{"progress", batchProgress},
	}
}

func (f *fixture) progress(batch string) registry.BatchProgress {
	f.Helper()
	p, err := f.BatchProgress(f.Context(), batch)
	f.must(err)
	return p
}

func batchHappyPath(f *fixture) {
	id, jobs := f.batch(3)
	f.state(id, registry.StateProcessing)
	for i, job := range jobs {
		if got := f.refused(registry.Report, id).Reason; got != registry.ReasonBlocked {
			f.Errorf("with %d jobs open the report waits because %s", len(jobs)-i, got)
		}
		if got := f.item(id).BlockerCount; got != int64(len(jobs)-i) {
			f.Errorf("blocker_count=%d, want %d", got, len(jobs)-i)
		}
		f.finish(job)
		f.invariants()
	}
	f.state(id, registry.StateReporting)
	if got := f.item(id).Closing; got != 1 {
		f.Errorf("closing=%d, want 1", got)
	}
	if got := f.done(f.take(registry.Report, id).Lease); got.Status != registry.Completed {
		f.Errorf("verdict %+v", got)
	}
	f.state(id, registry.StateCompleted)
	if got := f.refused(registry.Report, id).Reason; got != registry.ReasonSettled {
		f.Errorf("a completed batch: %s", got)
	}
}

func batchFailure(f *fixture) {
	id, jobs := f.batch(2)
	f.bring(jobs[0], registry.Notify)
	f.fail(jobs[0], registry.SystemFault)
	f.finish(jobs[1])
	f.done(f.take(registry.Report, id).Lease)
	it := f.item(id)
	if it.State != registry.StateFailed || it.ErrorClass != registry.JobsFault || it.Note == "" || !it.NeedsAdminReview {
		f.Errorf("batch %+v", it)
	}
}

func batchRecovery(f *fixture) {
	id, jobs := f.batch(2)
	f.fail(jobs[0], registry.SystemFault)
	f.finish(jobs[1])
	f.done(f.take(registry.Report, id).Lease)
	f.command(jobs[0], registry.ActRequeue, "")
	if it := f.item(id); it.Status != registry.Failed || it.BlockerCount != 1 {
		f.Errorf("a job that runs again made its batch %s with blocker_count %d", it.Status, it.BlockerCount)
	}
	f.command(id, registry.ActUpdateReport, "")
	f.state(id, registry.StateProcessing)
	if got := f.refused(registry.Report, id).Reason; got != registry.ReasonBlocked {
		f.Errorf("the update waits because %s", got)
	}
	f.finish(jobs[0])
	f.state(id, registry.StateUpdateReport)
	if got := f.item(id).Closing; got != 2 {
		f.Errorf("closing=%d, want 2", got)
	}
	f.done(f.take(registry.Report, id).Lease)
	f.state(id, registry.StateCompleted)
	if got := f.item(jobs[0]).RetryCount; got != 1 {
		f.Errorf("retry_count=%d, want 1", got)
	}
}

func rowsOnce(f *fixture) {
	id := f.submit()
	l := f.take(registry.Expand, id).Lease
	for i, want := range []int{5, 0, 3} {
		n := []int{5, 5, 8}[i]
		added, err := f.AddJobs(f.Context(), l, newJobs(n))
		f.must(err)
		if added != want {
			f.Errorf("call %d added %d, want %d", i, added, want)
		}
	}
	if it, jobs := f.item(id), f.children(id); it.BlockerCount != 8 || len(jobs) != 8 {
		f.Errorf("blocker_count=%d, %d jobs; want 8", it.BlockerCount, len(jobs))
	}
	for i, job := range f.all(registry.ItemQuery{ParentID: id}) {
		if job.Row != int64(i+1) || job.Stage != registry.Estimate || job.State != registry.StatePending || job.Collection != mnemonic {
			f.Errorf("job %d: %+v", i, job)
		}
	}
}

func rowsOverAttempts(f *fixture) {
	id := f.submit()
	add := func(l registry.Lease, n int) {
		f.Helper()
		_, err := f.AddJobs(f.Context(), l, newJobs(n))
		f.must(err)
	}
	add(f.take(registry.Expand, id).Lease, 3)
	first := f.children(id)
	f.sweep(2 * lease) // killed half-way
	if got := f.item(id).Results[registry.ResultExpanded]; string(got) != "3" {
		f.Errorf("expanded to row %s, want 3", got)
	}
	f.finish(first[0])
	f.fail(first[1], registry.ContentFault)
	c := f.take(registry.Expand, id)
	add(c.Lease, 6)
	_, err := f.AddJobs(f.Context(), c.Lease, newJobs(2)) // an answer that was lost is asked for again
	f.must(err)
	f.done(c.Lease)
	if got := f.item(id).Results[registry.ResultExpanded]; string(got) != "6" {
		f.Errorf("expanded to row %s, want 6", got)
	}
	if got := f.children(id); len(got) != 6 || !slices.Equal(got[:3], first) {
		f.Errorf("jobs %v, want the first three %v and three more", got, first)
	}
	if got := f.item(id).BlockerCount; got != 4 {
		f.Errorf("blocker_count=%d, want 4", got)
	}
}

func badRows(f *fixture) {
	id := f.submit()
	c := f.take(registry.Expand, id)
	jobs := newJobs(3)
	jobs[1].Fault, jobs[1].Class = "line 2: no digest", registry.ContentFault
	jobs[2].Fault = "line 3: not a URL"
	added, err := f.AddJobs(f.Context(), c.Lease, jobs)
	f.must(err)
	f.done(c.Lease)
	if it := f.item(id); added != 3 || it.BlockerCount != 1 {
		f.Errorf("added=%d blocker_count=%d, want 3 and 1", added, it.BlockerCount)
	}
	for _, row := range []int{1, 2} {
		it := f.item(f.children(id)[row])
		if it.State != registry.StateFailed || it.Note != jobs[row].Fault || it.ErrorClass != registry.ContentFault || it.Attempt != 0 {
			f.Errorf("row %d: %+v", row+1, it)
		}
	}
	if got := f.events(f.children(id)[1]); !slices.Equal(got, []string{"reject"}) {
		f.Errorf("events %v", got)
	}
}

func noRow(f *fixture) {
	id := f.submit()
	l := f.take(registry.Expand, id).Lease
	zero := newJobs(3)
	zero[2].Line = 0
	if _, err := f.AddJobs(f.Context(), l, zero); err == nil {
		f.Error("line 0 was taken")
	}
	if _, err := f.AddJobs(f.Context(), l, newJobs(501)); err == nil {
		f.Error("501 rows were taken in one call")
	}
	if jobs := f.children(id); len(jobs) != 0 {
		f.Errorf("a refused call left %d jobs", len(jobs))
	}
}

func onlyBatchHasJobs(f *fixture) {
	l := f.takeItem(f.job(registry.Download)).Lease
	if _, err := f.AddJobs(f.Context(), l, newJobs(1)); err == nil {
		f.Error("a job got jobs")
	}
}

func settleWhileExpanding(f *fixture) {
	id := f.submit()
	c := f.take(registry.Expand, id)
	_, err := f.AddJobs(f.Context(), c.Lease, newJobs(2))
	f.must(err)
	for _, job := range f.children(id) {
		f.finish(job)
	}
	f.invariants()
	if it := f.item(id); it.Status != registry.Running || it.Closing != 0 {
		f.Fatalf("the running batch is %s, closing %d", it.Status, it.Closing)
	}
	f.done(c.Lease)
	if it := f.item(id); it.Closing != 1 || it.State != registry.StateReporting {
		f.Errorf("closing=%d state=%s, want 1 and Reporting", it.Closing, it.State)
	}
	if got := f.offered(5); !has(got, id) {
		f.Errorf("due %v: the report is not rung for", got)
	}
}

func howeverJobsEnd(f *fixture) {
	id, jobs := f.batch(5)
	f.finish(jobs[0])
	f.fail(jobs[1], registry.ContentFault)
	f.command(jobs[2], registry.ActCancel, "")
	f.bring(jobs[3], registry.Provision)
	for range attempts {
		f.retry(jobs[3], attempts)
	}
	f.bring(jobs[4], registry.Provision)
	for range attempts {
		f.invariants()
		f.loseOnce(jobs[4])
	}
	if it := f.item(id); it.BlockerCount != 0 || it.Closing != 1 {
		f.Fatalf("blocker_count=%d closing=%d, want 0 and 1", it.BlockerCount, it.Closing)
	}
	f.done(f.take(registry.Report, id).Lease)
	if p := f.progress(id); p.Jobs != 5 || p.Completed != 1 || p.Failed != 4 || p.Content != 1 || p.Open != 0 || !p.Settled {
		f.Errorf("progress %+v", p)
	}
}

func jobsRace(f *fixture) {
	const n = 30
	id, jobs := f.batch(n)
	leases := make([]registry.Lease, n)
	for i := range jobs {
		leases[i] = f.take(registry.Estimate, jobs[i]).Lease
	}
	var all sync.WaitGroup
	for _, l := range leases {
		all.Go(func() {
			s := registry.Settlement{Lease: l, Outcome: registry.OutcomeFailed, Class: registry.ContentFault, Error: "no"}
			if _, err := f.Settle(f.Context(), s); err != nil {
				f.Error(err)
			}
			if _, err := f.Settle(f.Context(), s); err != nil { // the repeat counts nothing down
				f.Error(err)
			}
		})
	}
	all.Wait()
	if it := f.item(id); it.BlockerCount != 0 || it.Closing != 1 {
		f.Errorf("blocker_count=%d closing=%d, want 0 and 1", it.BlockerCount, it.Closing)
	}
}

func emptyBatch(f *fixture) {
	id, _ := f.batch(0)
	c := f.take(registry.Report, id)
	r, err := f.CloseReport(f.Context(), c.Lease)
	f.must(err)
	if r.Jobs != 0 || r.Closing != 1 {
		f.Errorf("report %+v", r)
	}
	f.done(c.Lease)
	f.state(id, registry.StateCompleted)
}

func batchProgress(f *fixture) {
	id := f.submit()
	if p := f.progress(id); p.Expanded || p.Settled || p.SizeKnown || p.State != registry.StatePending {
		f.Errorf("before: %+v", p)
	}
	c := f.takeItem(id)
	_, err := f.AddJobs(f.Context(), c.Lease, newJobs(4))
	f.must(err)
	f.done(c.Lease)
	jobs := f.children(id)
	size, files := int64(1000), int64(10)
	for i, job := range jobs[:3] {
		s := registry.Settlement{Lease: f.takeItem(job).Lease, Outcome: registry.OutcomeDone, SizeBytes: &size, Files: &files}
		f.settle(s)
		if i == 1 {
			f.finish(job)
		}
	}
	f.fail(jobs[3], registry.ContentFault)
	f.bring(jobs[2], registry.Download)
	b := registry.Beat{Lease: f.takeItem(jobs[2]).Lease, DoneBytes: 400, DoneFiles: 4}
	f.renew(b)
	p := f.progress(id)
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
	f.must(f.AddHold(f.Context(), registry.Hold{Scope: registry.HoldItem, Key: jobs[0], Actor: "admin"}))
	if f.progress(id).Held {
		f.Error("held although a job runs")
	}
	f.settle(registry.Settlement{Lease: b.Lease, Outcome: registry.OutcomeReleased})
	f.must(f.AddHold(f.Context(), registry.Hold{Scope: registry.HoldCollection, Key: mnemonic, Actor: "admin"}))
	if !f.progress(id).Held {
		f.Error("not held although all that is open is")
	}
	_, err = f.BatchProgress(f.Context(), "unknown")
	f.is(err, registry.ErrNotFound)
}
