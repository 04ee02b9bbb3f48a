package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"
)

// OutsideStep is a function that runs after a stage of each job of a collection. When the job leaves
// the stage, the same transaction adds a task of the function. A job that comes through the stage
// again gets a new task.
type OutsideStep struct {
	After    Stage  `json:"after" doc:"Stage of jobs after which the function runs: estimate, provision, download, scan, process, replicate, record or notify"`
	Function string `json:"function" doc:"Name of the function; a program must have announced it"`
	// On: "" means OnSuccess.
	On StepOn `json:"on,omitempty" doc:"success (default): when the job goes on from the stage; always: also when it fails there"`
	// Blocking: see [WaitOver].
	Blocking bool `json:"blocking,omitempty" doc:"The job starts its next stage when the task has completed, or was aborted"`
	// Args are more arguments, a JSON object. The member [StepArgument] is the Registry's.
	Args json.RawMessage `json:"args,omitempty" doc:"Arguments of the function beside job, an object; at most 16 KiB. Never put secrets here: anyone who can see the collection can read them"`
}

// StepOn says how a job must leave a stage for an outside step to run.
type StepOn string

// The values of [OutsideStep.On].
const (
	OnSuccess StepOn = "success"
	OnAlways  StepOn = "always"
)

// Bounds of outside steps: each job keeps a copy of its profile.
const (
	MostSteps    = 20       // of a profile
	MostStepArgs = 16 << 10 // bytes of the arguments of one
)

// StepArgument is the name of the argument by which a function that runs as an outside step learns
// of the job: a [StepJob].
const StepArgument = "job"

// StepJob describes the job after whose stage a function runs.
type StepJob struct {
	ID         string `json:"id"`
	Batch      string `json:"batch"`
	Collection string `json:"collection"`
	Name       string `json:"name"`
	After      Stage  `json:"after"`  // the stage that the job left
	Failed     bool   `json:"failed"` // the job failed in the stage
	Error      string `json:"error"`  // of a failed job
	// ARK and Version name the version of the object that the job makes; "" and 0 before the job
	// has done stage process. The API can deliver it after stage record.
	ARK     string `json:"ark"`
	Version int    `json:"version"`
	Files   int64  `json:"files"` // of the payload; -1: not known yet
	Bytes   int64  `json:"bytes"`
}

// StepReader lists the outside steps of jobs.
type StepReader interface {
	// Steps lists the tasks that a job's profile made for it, oldest first; none for any other
	// item. ErrNotFound: the item is unknown.
	Steps(ctx context.Context, jobID string) ([]StepRun, error)
}

// StepRun is a task that runs an outside step of a job.
type StepRun struct {
	TaskID     string     `json:"task_id" id:"items"`
	Function   string     `json:"function"`
	After      Stage      `json:"after"`
	Blocking   bool       `json:"blocking,omitempty"`
	State      State      `json:"state"`
	NextTry    *NextTry   `json:"next_try,omitempty"`
	Status     Status     `json:"status"`
	Attempts   int64      `json:"attempts"`
	Error      string     `json:"error,omitempty"`    // why it failed, or waits for its next try
	Progress   []Progress `json:"progress,omitempty"` // of the last attempt
	CreatedAt  time.Time  `json:"created_at"`
	FinishedAt *time.Time `json:"finished_at,omitempty"`
}

// StepsIn returns the outside steps in the spec of a job; none if the spec cannot be read. It is
// called whenever a job moves, so it decodes only specs that can have steps.
func StepsIn(spec json.RawMessage) []OutsideStep {
	if !bytes.Contains(spec, []byte(`"steps":[`)) {
		return nil
	}
	var s struct {
		Profile struct {
			Steps []OutsideStep `json:"steps"`
		} `json:"profile"`
	}
	if json.Unmarshal(spec, &s) != nil {
		return nil
	}
	return s.Profile.Steps
}

// FollowingSteps returns the outside steps of an item that run when it leaves its present stage;
// failed says that it fails there. Only jobs have steps.
func (it WorkItem) FollowingSteps(failed bool) []OutsideStep {
	if it.Action != Ingest {
		return nil
	}
	return slices.DeleteFunc(StepsIn(it.Spec), func(s OutsideStep) bool {
		return s.After != it.Stage || failed && s.On != OnAlways
	})
}
