package taskstest

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func stepTests() tests {
	return tests{
		"a_blocking_step_holds_its_job_until_it_completes":    blockingStep,
		"a_step_that_does_not_block_lets_its_job_go_on":       otherStep,
		"a_step_without_blocking_after_the_last_stage":        lastStep,
		"always_runs_also_when_the_job_fails":                 alwaysStep,
		"what_a_step_is_told":                                 stepArguments,
		"abort_of_a_step_lets_its_job_go_on":                  abortedStep,
		"delete_of_a_failed_step_lets_its_job_go_on":          deletedStep,
		"steps_are_cancelled_with_their_job_and_go_on_too":    cancelledJob,
		"a_repeated_stage_gets_new_steps":                     repeatedStage,
		"a_stage_that_was_sent_back_gets_new_steps":           sentBackStage,
		"a_running_step_is_withdrawn_with_its_job":            withdrawnStep,
		"an_aborted_job_gives_its_steps_up":                   abortedJob,
		"purge_takes_steps_that_are_over_and_leaves_the_rest": purgedJob,
		"a_repeated_settlement_adds_no_second_task":           settledTwice,
		"a_job_with_a_step_does_not_continue_past_it":         noWayPast,
		"several_steps_all_block":                             severalSteps,
		"bad_steps_are_refused_with_their_place":              badSteps,
		"steps_of_other_items":                                noSteps,
	}
}

// stepped is a job at a stage, of a collection with steps.
func (f *fixture) stepped(at registry.Stage, steps ...registry.OutsideStep) (batch, job string) {
	f.Helper()
	f.announced()
	f.Collection("stepped", registry.Profile{Name: "Stepped", Owner: registrytest.Owner, Steps: steps})
	batch, jobs := f.Batch(1, func(s *registry.Submission) { s.Collection = "stepped" })
	f.Bring(jobs[0], at)
	return batch, jobs[0]
}

// runs returns the steps of a job, in their order.
func (f *fixture) runs(job string, want int) []registry.StepRun {
	f.Helper()
	runs, err := f.Store.Steps(f.Context(), job)
	f.Must(err)
	if len(runs) != want {
		f.Fatalf("%d steps, want %d: %+v", len(runs), want, runs)
	}
	return runs
}

func after(stage registry.Stage) registry.OutsideStep {
	return registry.OutsideStep{After: stage, Function: check.Name}
}

func blocking(stage registry.Stage) registry.OutsideStep {
	s := after(stage)
	s.Blocking = true
	return s
}

// waiting checks that a job waits at a stage for n steps.
func (f *fixture) waiting(job string, at registry.Stage, n int64) {
	f.Helper()
	if it := f.Item(job); it.Stage != at || it.Status != registry.Pending || it.BlockerCount != n {
		f.Fatalf("the job is %s at %s with %d open requirements; want %d at %s", it.Status, it.Stage, it.BlockerCount, n, at)
	}
	if n > 0 && f.Refused(at, job).Reason != registry.ReasonBlocked {
		f.Error("it is not refused as blocked")
	}
}

func (f *fixture) why(id string) registry.Why {
	f.Helper()
	w, err := f.Store.Why(f.Context(), id)
	f.Must(err)
	return w
}

func blockingStep(f *fixture) {
	batch, job := f.stepped(registry.Record, blocking(registry.Record))
	f.Done(f.TakeItem(job).Lease)
	f.waiting(job, registry.Notify, 1)
	step := f.runs(job, 1)[0].TaskID
	f.Says(f.why(job).Sentence, "its outside step", step, "Pending")
	f.Invariants()

	f.FailItem(step, registry.ContentFault)
	f.waiting(job, registry.Notify, 1)
	got := f.runs(job, 1)[0]
	if got.State != registry.StateFailed || got.Error != "it is broken" || got.Attempts != 1 || got.After != registry.Record || !got.Blocking || got.Function != check.Name || got.FinishedAt == nil {
		f.Errorf("the failed step is shown as %+v", got)
	}
	f.Says(f.why(job).Sentence, "its outside step", "Failed", "it is broken")
	f.Says(f.why(job).Act, "requeue item "+step, "abort it to go on without it")
	if p := f.Progress(batch); p.Settled {
		f.Error("the batch is over although its job waits")
	}

	f.Command(step, registry.ActRequeue, "")
	f.Settle(registry.Settlement{Lease: f.TakeItem(step).Lease, Outcome: registry.OutcomeRetry, Class: registry.SystemFault, Error: "again", Delay: time.Minute})
	if got = f.runs(job, 1)[0]; got.NextTry == nil || got.Error != "again" || got.Attempts != 2 {
		f.Errorf("a step that is tried again is shown as %+v", got)
	}
	f.Command(step, registry.ActRetryNow, "")
	c := f.TakeItem(step)
	f.Renew(registry.Beat{Lease: c.Lease, Progress: []registry.Progress{{Title: "pages", Unit: "pages", Position: 3, End: 9}}})
	if got = f.runs(job, 1)[0]; got.Status != registry.Running || len(got.Progress) != 1 || got.Progress[0].Position != 3 {
		f.Errorf("a running step is shown as %+v", got)
	}
	f.Done(c.Lease)
	f.waiting(job, registry.Notify, 0)
	f.Invariants()
	f.Finish(job)
	if r := f.Closing(batch); r.Completed != 1 {
		f.Errorf("the batch's report counts %+v", r)
	}
	f.Invariants()
}

func otherStep(f *fixture) {
	batch, job := f.stepped(registry.Process, after(registry.Process))
	f.Finish(job)
	step := f.runs(job, 1)[0].TaskID
	if r := f.Closing(batch); r.Completed != 1 {
		f.Errorf("the batch's report counts %+v", r)
	}
	f.FailItem(step, registry.ContentFault)
	if got := f.runs(job, 1)[0]; got.State != registry.StateFailed || got.Blocking {
		f.Errorf("the step is shown as %+v", got)
	}
	if it := f.Item(job); it.Status != registry.Completed {
		f.Errorf("the job is %s", it.Status)
	}
	f.Invariants()
}

func lastStep(f *fixture) {
	_, job := f.stepped(registry.Notify, after(registry.Notify))
	f.runs(job, 0)
	f.Finish(job)
	if got := f.runs(job, 1)[0]; got.After != registry.Notify || got.Status != registry.Pending {
		f.Errorf("the step is %+v", got)
	}
}

func alwaysStep(f *fixture) {
	always := after(registry.Process)
	always.On, always.Blocking = registry.OnAlways, true
	_, job := f.stepped(registry.Process, always, after(registry.Process))
	f.FailItem(job, registry.ContentFault)
	first := f.runs(job, 1)[0]
	if first.Blocking || f.Item(job).BlockerCount != 0 {
		f.Errorf("a step of a failed job blocks: %+v", first)
	}
	if got := f.told(first.TaskID); !got.Failed || got.Error != "it is broken" || got.After != registry.Process {
		f.Errorf("it is told %+v", got)
	}
	f.Command(job, registry.ActRequeue, "")
	if got := f.runs(job, 1)[0]; got.Status != registry.Pending {
		f.Errorf("the requeue made the step %s", got.Status)
	}
	f.Done(f.TakeItem(job).Lease)
	all := f.runs(job, 3)
	if got := f.told(all[1].TaskID); got.Failed || got.Error != "" || !all[1].Blocking || all[2].Blocking {
		f.Errorf("the next pass made %+v, told %+v", all, got)
	}
	f.waiting(job, registry.Record, 1)
	f.Invariants()

	f.Done(f.TakeItem(all[1].TaskID).Lease)
	f.Finish(job)
}

// told returns what a step's task is told about its job.
func (f *fixture) told(task string) (job registry.StepJob) {
	f.Helper()
	var spec registry.TaskSpec
	f.Must(json.Unmarshal(f.Item(task).Spec, &spec))
	var args struct{ Job *registry.StepJob }
	args.Job = &job
	f.Must(json.Unmarshal(spec.Args, &args))
	return job
}

func stepArguments(f *fixture) {
	s := after(registry.Process)
	s.Args = json.RawMessage(`{"language":"en","deep":{"a":[1,2]}}`)
	batch, job := f.stepped(registry.Process, s)
	c := f.TakeItem(job)
	name := f.Identify(c.Lease, registry.IdentifyRequest{Owner: registrytest.Owner, Proposed: "ark:/99999/fk4step"})
	files, size := int64(2), int64(30)
	f.Settle(registry.Settlement{
		Lease: c.Lease, Outcome: registry.OutcomeDone, Files: &files, SizeBytes: &size,
		Results: map[string]json.RawMessage{registry.ResultVersion: json.RawMessage("1")},
	})
	task := f.Item(f.runs(job, 1)[0].TaskID)
	if task.Collection != "stepped" || task.CreatedBy != "registry" || task.Priority != f.Item(job).Priority || !strings.Contains(task.Name, "link-check after process of job-1") {
		f.Errorf("the task is %+v", task)
	}
	var spec registry.TaskSpec
	f.Must(json.Unmarshal(task.Spec, &spec))
	if spec.Subject != name.ARK || spec.Cause != job {
		f.Errorf("the task is about %q, caused by %q", spec.Subject, spec.Cause)
	}
	var args map[string]json.RawMessage
	f.Must(json.Unmarshal(spec.Args, &args))
	if string(args["language"]) != `"en"` || string(args["deep"]) != `{"a":[1,2]}` || len(args) != 3 {
		f.Errorf("the arguments are %s", spec.Args)
	}
	want := registry.StepJob{
		ID: job, Batch: batch, Collection: "stepped", Name: "job-1", After: registry.Process, ARK: name.ARK, Version: 1, Files: 2, Bytes: 30,
	}
	if diff := cmp.Diff(want, f.told(task.ID)); diff != "" {
		f.Error(diff)
	}
}

func abortedStep(f *fixture) {
	_, job := f.stepped(registry.Record, blocking(registry.Record))
	f.Done(f.TakeItem(job).Lease)
	f.Confirm(f.runs(job, 1)[0].TaskID, registry.ActAbort)
	f.waiting(job, registry.Notify, 0)
	f.Invariants()
	f.Finish(job)
}

func deletedStep(f *fixture) {
	_, job := f.stepped(registry.Process, blocking(registry.Process))
	f.Done(f.TakeItem(job).Lease)
	step := f.runs(job, 1)[0].TaskID
	f.FailItem(step, registry.ContentFault)
	f.DeleteItem(step)
	f.waiting(job, registry.Record, 0)
	f.Invariants()
	f.Finish(job)
}

func cancelledJob(f *fixture) {
	_, job := f.stepped(registry.Process, blocking(registry.Process), after(registry.Process), after(registry.Process))
	f.Done(f.TakeItem(job).Lease)
	runs := f.runs(job, 3)
	f.Command(runs[2].TaskID, registry.ActCancel, "") // on its own account
	f.Command(job, registry.ActCancel, "")
	for _, r := range f.runs(job, 3) {
		if r.Status != registry.Cancelled {
			f.Errorf("step %s of a cancelled job is %s", r.TaskID, r.Status)
		}
	}
	f.Invariants()
	f.Command(job, registry.ActRequeue, "")
	f.waiting(job, registry.Record, 1)
	again := f.runs(job, 3)
	if again[0].Status != registry.Pending || again[1].Status != registry.Pending || again[2].Status != registry.Cancelled {
		f.Errorf("after the requeue the steps are %s, %s and %s", again[0].Status, again[1].Status, again[2].Status)
	}
	f.Done(f.TakeItem(runs[0].TaskID).Lease)
	f.Invariants()
	f.Finish(job)
}

func repeatedStage(f *fixture) {
	_, job := f.stepped(registry.Download, blocking(registry.Download), blocking(registry.Process), after(registry.Process))
	f.Done(f.TakeItem(job).Lease)
	f.Done(f.TakeItem(f.runs(job, 1)[0].TaskID).Lease)
	f.Bring(job, registry.Process)
	f.Done(f.TakeItem(job).Lease)
	old := f.runs(job, 3)
	f.FailItem(old[1].TaskID, registry.ContentFault)
	f.TakeItem(old[2].TaskID)
	f.Command(job, registry.ActCancel, "")
	f.Command(job, registry.ActRequeue, registry.Process)
	f.waiting(job, registry.Process, 0)
	again := f.runs(job, 3)
	if again[0].Status != registry.Completed || again[1].Status != registry.Aborted || again[2].Status != registry.Aborted {
		f.Errorf("after the requeue the steps are %s, %s and %s", again[0].Status, again[1].Status, again[2].Status)
	}
	f.Invariants()
	f.Done(f.TakeItem(job).Lease)
	f.waiting(job, registry.Record, 1)
	f.Done(f.TakeItem(f.runs(job, 5)[3].TaskID).Lease)
	f.Finish(job)
	f.Invariants()
}

func sentBackStage(f *fixture) {
	_, job := f.stepped(registry.Process, blocking(registry.Process))
	f.Done(f.TakeItem(job).Lease)
	first := f.runs(job, 1)[0]
	f.Done(f.TakeItem(first.TaskID).Lease)
	f.Settle(registry.Settlement{Lease: f.TakeItem(job).Lease, Outcome: registry.OutcomeSentBack, Back: registry.Process, Error: "damaged"})
	f.waiting(job, registry.Process, 0)
	f.Done(f.TakeItem(job).Lease)
	f.waiting(job, registry.Record, 1)
	f.Done(f.TakeItem(f.runs(job, 2)[1].TaskID).Lease)
	f.Invariants()
	f.Finish(job)
}

func withdrawnStep(f *fixture) {
	_, job := f.stepped(registry.Process, blocking(registry.Process))
	f.Done(f.TakeItem(job).Lease)
	l := f.TakeItem(f.runs(job, 1)[0].TaskID).Lease
	f.Command(job, registry.ActCancel, "")
	_, err := f.Store.Settle(f.Context(), registry.Settlement{Lease: l, Outcome: registry.OutcomeDone})
	f.Is(err, registry.ErrClaimLost)
	taken, _, err := f.Store.Withdrawn(f.Context(), registry.WithdrawnQuery{Worker: "worker-1"})
	f.Must(err)
	if len(taken) != 1 || taken[0] != l {
		f.Errorf("withdrawn are %v", taken)
	}
	f.Invariants()
}

func abortedJob(f *fixture) {
	_, job := f.stepped(registry.Process, blocking(registry.Process), after(registry.Process), after(registry.Process), after(registry.Process))
	f.Done(f.TakeItem(job).Lease)
	runs := f.runs(job, 4)
	f.FailItem(runs[1].TaskID, registry.ContentFault)
	f.Done(f.TakeItem(runs[2].TaskID).Lease)
	f.TakeItem(runs[3].TaskID)
	f.ConfirmAndApply(job, registry.ActAbort)
	want := []registry.Status{registry.Aborted, registry.Aborted, registry.Completed, registry.Aborted}
	for i, r := range f.runs(job, 4) {
		if r.Status != want[i] {
			f.Errorf("step %d of an aborted job is %s, want %s", i, r.Status, want[i])
		}
	}
	f.Invariants()
}

func purgedJob(f *fixture) {
	batch, job := f.stepped(registry.Process, after(registry.Process), after(registry.Process), after(registry.Process))
	f.Finish(job)
	runs := f.runs(job, 3)
	f.Done(f.TakeItem(runs[0].TaskID).Lease)
	f.FailItem(runs[1].TaskID, registry.ContentFault)
	f.Closing(batch)
	f.ConfirmAndApply(batch, registry.ActPurge)
	f.Gone(batch, job, runs[0].TaskID)
	f.Command(runs[1].TaskID, registry.ActRequeue, "")
	f.Done(f.TakeItem(runs[1].TaskID).Lease)
	f.Done(f.TakeItem(runs[2].TaskID).Lease)
	f.Command(runs[2].TaskID, registry.ActPurge, "")
	f.Purged(runs[2].TaskID)
	f.Invariants()
}

func settledTwice(f *fixture) {
	_, job := f.stepped(registry.Process, blocking(registry.Process))
	l := f.TakeItem(job).Lease
	first, second := f.Done(l), f.Done(l)
	if first != second {
		f.Errorf("verdicts %+v and %+v", first, second)
	}
	f.runs(job, 1)
	f.Invariants()
}

func noWayPast(f *fixture) {
	for _, s := range []registry.OutsideStep{blocking(registry.Process), after(registry.Process)} {
		_, job := f.stepped(registry.Process, s)
		_, next, err := f.Store.(registry.Continuing).SettleAndClaim(f.Context(), registry.Settlement{Lease: f.TakeItem(job).Lease, Outcome: registry.OutcomeDone}, f.Request(registry.Record, ""))
		f.Must(err)
		if next != nil {
			f.Error("the job continued past its step")
		}
		f.runs(job, 1)
	}
	f.Invariants()
}

func severalSteps(f *fixture) {
	_, job := f.stepped(registry.Process, blocking(registry.Process), blocking(registry.Process), after(registry.Process))
	f.Done(f.TakeItem(job).Lease)
	runs := f.runs(job, 3)
	f.waiting(job, registry.Record, 2)
	f.Done(f.TakeItem(runs[1].TaskID).Lease)
	f.waiting(job, registry.Record, 1)
	f.Done(f.TakeItem(runs[2].TaskID).Lease)
	f.waiting(job, registry.Record, 1)
	f.Done(f.TakeItem(runs[0].TaskID).Lease)
	f.waiting(job, registry.Record, 0)
	f.Finish(job)
	f.Invariants()
}

func badSteps(f *fixture) {
	f.announced()
	bad := func(change func(*registry.OutsideStep)) registry.OutsideStep {
		s := after(registry.Process)
		change(&s)
		return s
	}
	for place, s := range map[string]registry.OutsideStep{
		"steps[1].after: jobs have no such stage":                   after(registry.Expand),
		"steps[1].after: jobs of this collection do not":            after(registry.Scan),
		"steps[1].after: jobs have no":                              after(""),
		"steps[1].blocking: after notify":                           blocking(registry.Notify),
		"steps[1].function: unknown function":                       bad(func(s *registry.OutsideStep) { s.Function = "link-chek" }),
		`did you mean link-check?`:                                  bad(func(s *registry.OutsideStep) { s.Function = "link-chec" }),
		`steps[1].function: not a valid request: "Bad Name" is not`: bad(func(s *registry.OutsideStep) { s.Function = "Bad Name" }),
		"steps[1].on: it can be success or always":                  bad(func(s *registry.OutsideStep) { s.On = "failure" }),
		"steps[1].args: must be an object":                          bad(func(s *registry.OutsideStep) { s.Args = json.RawMessage(`[1]`) }),
		"steps[1].args.job: Holdfast describes":                     bad(func(s *registry.OutsideStep) { s.Args = json.RawMessage(`{"job":1}`) }),
		"at most 16 KiB are allowed":                                bad(func(s *registry.OutsideStep) { s.Args = json.RawMessage(`{"a":"` + strings.Repeat("x", 17<<10) + `"}`) }),
		"steps[1].args: function count does not take them":          bad(func(s *registry.OutsideStep) { s.Function = count.Name }),
	} {
		err := f.Store.PutCollection(f.Context(), registry.Collection{Mnemonic: "bad", Profile: registry.Profile{
			Owner: registrytest.Owner, Steps: []registry.OutsideStep{after(registry.Process), s},
		}}, "admin")
		if !errors.Is(err, registry.ErrInvalid) || !strings.Contains(err.Error(), place) {
			f.Errorf("%+v: %v, want %q", s, err, place)
		}
	}
	_, err := f.Store.Collection(f.Context(), "bad")
	f.Is(err, registry.ErrNotFound)
	many := make([]registry.OutsideStep, registry.MostSteps+1)
	err = f.Store.PutCollection(f.Context(), registry.Collection{Mnemonic: "bad", Profile: registry.Profile{Owner: registrytest.Owner, Steps: many}}, "admin")
	f.Is(err, registry.ErrInvalid)
}

func noSteps(f *fixture) {
	batch, jobs := f.Batch(1)
	f.Finish(jobs[0])
	for _, id := range []string{batch, jobs[0], f.announced().task().ID} {
		f.runs(id, 0)
	}
	_, err := f.Store.Steps(f.Context(), "no such item")
	f.Is(err, registry.ErrNotFound)
}
