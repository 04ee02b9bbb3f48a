package registry

import (
	"fmt"
	"strings"
	"time"
)

// Status is an item's condition in its stage.
type Status string

// The statuses of an item.
const (
	Prepare   Status = "prepare" // in a graph that is not sealed yet: never dispatched
	Pending   Status = "pending"
	Running   Status = "running"
	Completed Status = "completed"
	Failed    Status = "failed"
	Cancelled Status = "cancelled"
	Aborted   Status = "aborted"
	Deleted   Status = "deleted"
)

// Statuses returns all statuses in a fixed order.
func Statuses() []Status {
	return []Status{Prepare, Pending, Running, Completed, Failed, Cancelled, Aborted, Deleted}
}

// Settled reports that nothing more happens to an item of this status unless a person acts.
func (s Status) Settled() bool {
	switch s {
	case Completed, Failed, Cancelled, Aborted, Deleted:
		return true
	case Prepare, Pending, Running:
		return false
	}
	return false
}

// gone reports whether an item of this status was given up: it will never complete.
func (s Status) gone() bool { return s == Aborted || s == Deleted }

// State is the condition that people see, with Merritt's names. Only [StateOf] derives it.
type State string

// The states of items and batches (docs/states.md).
const (
	StatePrepare      State = "Prepare"
	StatePending      State = "Pending"
	StateHeld         State = "Held"
	StateEstimating   State = "Estimating"
	StateProvisioning State = "Provisioning"
	StateDownloading  State = "Downloading"
	StateScanning     State = "Scanning"
	StateProcessing   State = "Processing"
	StateReplicating  State = "Replicating"
	StateRecording    State = "Recording"
	StateNotify       State = "Notify"
	StateReporting    State = "Reporting"
	StateUpdateReport State = "UpdateReporting"
	StateCompleted    State = "Completed"
	StateFailed       State = "Failed"
	StateCancelled    State = "Cancelled"
	StateAborted      State = "Aborted"
	StateDeleted      State = "Deleted"
)

// States returns all states in the order in which items reach them.
func States() []State {
	return []State{
		StatePrepare, StatePending, StateHeld, StateEstimating, StateProvisioning, StateDownloading, StateScanning, StateProcessing,
		StateReplicating, StateRecording, StateNotify, StateReporting, StateUpdateReport, StateCompleted, StateFailed,
		StateCancelled, StateAborted, StateDeleted,
	}
}

// Equal compares names of states in upper or lower case.
func (s State) Equal(other string) bool { return strings.EqualFold(string(s), other) }

// Position is everything that determines an item's state and allowed acts.
type Position struct {
	Action  Action
	Stage   Stage
	Status  Status
	Attempt int64 // attempts so far; 0: never claimed
	Open    int64 // open requirements
	Closing int64 // batches: how often the last open job settled; above 1 the report is an update
	Held    bool
	// The fields below decide only which acts are allowed.
	Delayed    bool // it waits for the time of its next try
	OwnHold    bool // a hold is on the item, or on the batch that it is
	Commitment Commitment
	Notifies   bool // its completion must be delivered to a receiver
	Unsealed   bool // its graph is not sealed
	JobsLeft   bool // deleted batches: some jobs are neither completed nor deleted
	JobsFailed bool // failed batches: the failure is that of jobs
}

// Refused reports that the item failed before it ever ran: its manifest row violates a rule. Such a
// row was never understood, so it can never run.
func (p Position) Refused() bool { return p.Status == Failed && p.Attempt == 0 }

// Commitment says how far an item has changed storage, by what it has announced and recorded. It
// decides which acts are allowed.
type Commitment string

// The commitments.
const (
	Uncommitted Commitment = "" // it has changed nothing in storage
	// Announced: it has announced a version that is not visible yet, or has begun to delete an
	// object. It is only rolled forward (R7).
	Announced Commitment = "announced"
	// Preserved: its version is recorded. The object stays, whatever happens to the item.
	Preserved Commitment = "preserved"
)

// StateOf derives the state that people see.
func StateOf(p Position) State {
	switch p.Status {
	case Completed, Failed, Cancelled, Aborted, Deleted, Prepare:
		return settledStates[p.Status]
	case Pending, Running:
	}
	if p.Status == Pending && p.Held {
		return StateHeld
	}
	route, ok := RouteOf(p.Action)
	if !ok {
		return State(p.Stage)
	}
	if p.Status == Pending && p.Attempt == 0 && p.Stage.Family() == route.First() {
		return StatePending
	}
	if p.Stage == Report {
		switch {
		case p.Status == Pending && p.Open > 0:
			return StateProcessing
		case p.Closing > 1:
			return StateUpdateReport
		}
	}
	step, ok := route.Step(p.Stage)
	if !ok {
		return State(p.Stage)
	}
	return step.State
}

var settledStates = map[Status]State{
	Prepare: StatePrepare, Completed: StateCompleted, Failed: StateFailed,
	Cancelled: StateCancelled, Aborted: StateAborted, Deleted: StateDeleted,
}

// NextTry is the try that an item waits for after a system fault.
type NextTry struct {
	At      time.Time `json:"at"`
	Attempt int       `json:"attempt"`      // number of the try in this step, from 2
	Of      int       `json:"of,omitempty"` // number of the last try; 0: unknown
}

// StateText formats a state for people. For an item that waits for its next try it gives the time
// of that try: Retry at 18:23:05, attempt 3 of 5. Times are in now's zone, which is named if it is
// UTC.
func StateText(s State, next *NextTry, now time.Time) string {
	if next == nil {
		return string(s)
	}
	text := "Retry due"
	if at := next.At.In(now.Location()); at.After(now) {
		form := time.TimeOnly // the first retries come after seconds
		if at.Format(time.DateOnly) != now.Format(time.DateOnly) {
			form = "2006-01-02 15:04"
		}
		if now.Location() == time.UTC {
			form += " MST"
		}
		text = "Retry at " + at.Format(form)
	}
	text += fmt.Sprintf(", attempt %d", next.Attempt)
	if next.Of > 0 {
		text += fmt.Sprintf(" of %d", next.Of)
	}
	return text
}

// StateText formats the item's state, see [StateText].
func (it WorkItem) StateText(now time.Time) string { return StateText(it.State, it.NextTry, now) }

// StateText formats the job's state, see [StateText].
func (j JobResult) StateText(now time.Time) string { return StateText(j.State, j.NextTry, now) }
