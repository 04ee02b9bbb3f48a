package deposit

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/outside"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/tasks"
	"github.com/holdfast/holdfast/registry/work"
)

// joinSteps adds the hooks of outside steps to the engine. The tasks of a job's steps are added,
// cancelled, requeued and given up in the transactions that move the job, so a process that dies
// leaves none behind and none out.
func (s *Deposits) joinSteps(h *work.Hooks) {
	h.Followed = func(it registry.WorkItem) bool { return len(it.FollowingSteps(false)) > 0 }
	h.Advanced = func(t *work.Tx, to work.Shift) error {
		blocking, err := s.in(t).addSteps(to.Item, "")
		if err != nil || len(blocking) == 0 {
			return err
		}
		return t.Block(to.Item.ID, blocking)
	}
	h.Settled = append(h.Settled, func(t *work.Tx, end work.Shift) error { return s.in(t).stepsSettled(end) })
	h.Requeued = append(h.Requeued, func(t *work.Tx, it registry.WorkItem, to work.Change) error {
		return s.in(t).requeueSteps(it, to)
	})
	h.Purged = append(h.Purged, func(t *work.Tx, it registry.WorkItem) error { return s.in(t).purgeSteps(it) })
}

// stepsSettled does to a job's outside steps what follows from the end of the job.
func (t *tx) stepsSettled(end work.Shift) error {
	job := end.Item
	switch end.Status {
	case registry.Completed, registry.Failed:
		if job.Status != registry.Running {
			return nil
		}
		failure := ""
		if end.Status == registry.Failed {
			failure = cmp.Or(end.Note, "failed")
		}
		_, err := t.addSteps(job, failure)
		return err
	case registry.Cancelled:
		return t.changeSteps(job, func(s madeStep, task registry.WorkItem) error {
			if task.Status.Settled() {
				return nil
			}
			if err := t.actOnStep(s, registry.ActCancel, end.Actor, "its job was cancelled"); err != nil {
				return err
			}
			return t.Do(`UPDATE outside_step SET stopped = 1 WHERE task_id = $1`, s.task)
		})
	case registry.Aborted, registry.Deleted:
		return t.changeSteps(job, func(s madeStep, _ registry.WorkItem) error {
			return t.actOnStep(s, registry.ActAbort, end.Actor, "its job was given up")
		})
	case registry.Prepare, registry.Pending, registry.Running:
	}
	return nil
}

// addSteps adds the tasks of the outside steps that follow when a job leaves its stage; failure is
// why it failed there, "" if it did not. It returns the blocking ones.
func (t *tx) addSteps(job registry.WorkItem, failure string) (blocking []string, err error) {
	steps := job.FollowingSteps(failure != "")
	if len(steps) == 0 {
		return nil, nil
	}
	about, err := stepJob(job, failure)
	if err != nil {
		return nil, err
	}
	for _, s := range steps {
		args, err := outside.Arguments(s, about)
		if err != nil {
			return nil, err
		}
		task := tasks.ItemOf(t.Tx, registry.NewTask{
			Function: s.Function, Args: args, Title: fmt.Sprintf("%s after %s of %s", s.Function, s.After, cmp.Or(job.Name, job.ID)),
			Subject: cmp.Or(about.ARK, job.ID), Collection: job.Collection, Priority: &job.Priority, Cause: job.ID, Actor: work.ActorRegistry,
		})
		if err := t.Insert(task); err != nil {
			return nil, fmt.Errorf("add step %s of job %s: %w", s.Function, job.ID, err)
		}
		blocks := s.Blocking && failure == ""
		err = t.Do(`INSERT INTO outside_step (task_id, job_id, after, blocking) VALUES ($1, $2, $3, $4)`, task.ID, job.ID, s.After, sqldb.Bit(blocks))
		if err != nil {
			return nil, fmt.Errorf("record step %s of job %s: %w", s.Function, job.ID, err)
		}
		if blocks {
			blocking = append(blocking, task.ID)
		}
	}
	return blocking, nil
}

// stepJob describes a job to its outside steps.
func stepJob(job registry.WorkItem, failure string) (registry.StepJob, error) {
	out := registry.StepJob{
		ID: job.ID, Batch: job.ParentID, Collection: job.Collection, Name: job.Name, After: job.Stage, Failed: failure != "", Error: failure,
		Files: job.Files, Bytes: job.SizeBytes,
	}
	made, err := registry.JobResultOf(job)
	if err != nil {
		return out, err
	}
	out.ARK, out.Version = made.ARK, made.Version
	return out, nil
}

// madeStep is a task that was made for a job.
type madeStep struct {
	task              string
	after             registry.Stage
	blocking, stopped bool
}

// changeSteps calls change for the tasks of a job's outside steps that are not over.
func (t *tx) changeSteps(job registry.WorkItem, change func(madeStep, registry.WorkItem) error) error {
	if job.Action != registry.Ingest || len(registry.StepsIn(job.Spec)) == 0 {
		return nil
	}
	made, err := sqldb.Collect(t.Ask(`SELECT task_id, after, blocking, stopped FROM outside_step WHERE job_id = $1 ORDER BY task_id`, job.ID),
		"list the steps of job "+job.ID, func(row sqldb.Scanner) (s madeStep, err error) {
			return s, row.Scan(&s.task, &s.after, &s.blocking, &s.stopped)
		})
	if err != nil {
		return err
	}
	for _, s := range made {
		task, err := t.Item(s.task)
		if err != nil {
			return err
		}
		if registry.WaitOver.SatisfiedBy(task.Status) {
			continue
		}
		if err := change(s, task); err != nil {
			return err
		}
	}
	return nil
}

// actOnStep carries out an act on the task of a step.
func (t *tx) actOnStep(s madeStep, act registry.Act, actor, why string) error {
	task, err := t.Item(s.task)
	if err == nil {
		err = t.CarryOut(task, registry.Command{ItemID: s.task, Act: act, Actor: actor, Reason: why, Confirmed: true})
	}
	if err != nil {
		return fmt.Errorf("%s step %s: %w", act, s.task, err)
	}
	return nil
}

// requeueSteps does to a job's outside steps what follows from the job's requeue. Those that were
// cancelled with the job go on, unless the job repeats their stage: then it gets new ones, and
// waits no longer for the old.
func (t *tx) requeueSteps(job registry.WorkItem, to work.Change) error {
	route, _ := job.Route()
	repeated := func(s madeStep) bool { return s.after == to.Stage || !before(route, s.after, to.Stage) }
	return t.changeSteps(job, func(s madeStep, task registry.WorkItem) error {
		switch {
		case repeated(s) && (s.blocking || s.stopped):
			return t.actOnStep(s, registry.ActAbort, to.Actor, fmt.Sprintf("its job was requeued at %s and repeats the stage", to.Stage))
		case s.stopped && task.Status == registry.Cancelled:
			if err := t.actOnStep(s, registry.ActRequeue, to.Actor, "its job was requeued"); err != nil {
				return err
			}
			return t.Do(`UPDATE outside_step SET stopped = 0 WHERE task_id = $1`, s.task)
		}
		return nil
	})
}

// before reports whether a stage comes before another one on a route.
func before(route registry.Route, stage, other registry.Stage) bool {
	for _, s := range route.UpTo(other) {
		if s == stage {
			return s != other
		}
	}
	return false
}

// purgeSteps forgets the outside steps of a job whose rows are deleted, and purges the tasks that
// are over. A task that is not goes on by itself.
func (t *tx) purgeSteps(it registry.WorkItem) error {
	if it.Action == registry.Task {
		return t.Do(`DELETE FROM outside_step WHERE task_id = $1`, it.ID)
	}
	if it.Action != registry.Ingest || len(registry.StepsIn(it.Spec)) == 0 {
		return nil
	}
	made, err := t.Strings(`SELECT task_id FROM outside_step WHERE job_id = $1 ORDER BY task_id`, it.ID)
	if err != nil {
		return fmt.Errorf("list the steps of job %s: %w", it.ID, err)
	}
	for _, id := range made {
		task, err := t.Item(id)
		if err != nil {
			return err
		}
		if !registry.WaitOver.SatisfiedBy(task.Status) {
			continue
		}
		if err := t.PurgeRows(task, registry.Command{Act: registry.ActPurge, Actor: work.ActorRegistry, Reason: "its job " + it.ID + " was purged"}); err != nil {
			return err
		}
	}
	return t.Do(`DELETE FROM outside_step WHERE job_id = $1`, it.ID)
}

// Steps implements registry.StepReader.
func (s *Deposits) Steps(ctx context.Context, jobID string) ([]registry.StepRun, error) {
	job, err := s.work.Item(ctx, jobID)
	if err != nil || len(registry.StepsIn(job.Spec)) == 0 {
		return nil, err
	}
	items, err := s.work.ReadItems(ctx, work.SelectItem+`JOIN outside_step o ON o.task_id = i.id WHERE o.job_id = $1 ORDER BY i.seq`, jobID)
	if err != nil {
		return nil, fmt.Errorf("list the steps of job %s: %w", jobID, err)
	}
	out := make([]registry.StepRun, len(items))
	at := map[string]*registry.StepRun{}
	for i, it := range items {
		out[i] = registry.StepRun{
			TaskID: it.ID, Function: it.Stage.Function(), State: it.State, NextTry: it.NextTry, Status: it.Status, Attempts: it.Attempt, Error: it.Note,
			CreatedAt: it.CreatedAt, FinishedAt: it.FinishedAt,
		}
		at[it.ID] = &out[i]
	}
	err = sqldb.Each(s.db.Read.Ask(ctx, `SELECT o.task_id, o.after, o.blocking, COALESCE(a.progress, '[]') FROM outside_step o
		JOIN work_item i ON i.id = o.task_id LEFT JOIN attempt a ON a.item_id = i.id AND a.n = i.attempt WHERE o.job_id = $1`, jobID),
		"read the steps of job "+jobID, func(row sqldb.Scanner) error {
			var id, progress string
			var read registry.StepRun
			if err := row.Scan(&id, &read.After, &read.Blocking, &progress); err != nil {
				return err
			}
			run := at[id]
			if run == nil {
				return nil // made since
			}
			run.After, run.Blocking = read.After, read.Blocking
			return json.Unmarshal([]byte(progress), &run.Progress)
		})
	return out, err
}
