package registry

import (
	"fmt"
	"strings"
	"time"
)

// Status says what is happening to an item in its stage.
type Status string

// The statuses of an item.
const (
	Prepare   Status = "prepare" // part of a graph that is still being built: never dispatched
	Pending   Status = "pending"
	Running   Status = "running"
	Completed Status = "completed"
	Failed    Status = "failed"
	Cancelled Status = "cancelled"
	Aborted   Status = "aborted"
	Deleted   Status = "deleted"
)

// Statuses returns every status in a fixed order.
func Statuses() []Status {
	return []Status{Prepare, Pending, Running, Completed, Failed, Cancelled, Aborted, Deleted}
}

// Settled says that nothing more happens to an item of this status unless a person acts.
func (s Status) Settled() bool {
	switch s {
	case Completed, Failed, Cancelled, Aborted, Deleted:
		return true
	case Prepare, Pending, Running:
		return false
	}
	return false
}

// State is the name people see, Merritt's. It is derived from an item by [StateOf] and nowhere
// else.
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

// States returns every state in the order in which an item may come to them.
func States() []State {
	return []State{
		StatePrepare, StatePending, StateHeld, StateEstimating, StateProvisioning, StateDownloading, StateScanning, StateProcessing,
		StateReplicating, StateRecording, StateNotify, StateReporting, StateUpdateReport, StateCompleted, StateFailed,
		StateCancelled, StateAborted, StateDeleted,
	}
}

// Equal compares state names without regard to case.
func (s State) Equal(other string) bool { return strings.EqualFold(string(s), other) }

// Position is all that [StateOf] looks at.
type Position struct {
	Action  Action
	Stage   Stage
	Status  Status
	Attempt int64 // attempts so far; 0: never claimed
	Open    int64 // prerequisites not yet satisfied
	Closing int64 // batches: how often the last job has settled; above 1 the report is an update
	Held    bool
	// What follows decides only which acts may be asked.
	Delayed    bool // it waits for the time of its next try
	OwnHold    bool // a hold is on the item itself, or on the batch that it is
	Commitment Commitment
	Tells      bool // a receiver is to be told that it completed
	Unsealed   bool // it belongs to a graph that is not whole yet
	JobsLeft   bool // deleted batches: some of their jobs are neither completed nor deleted
	JobsFailed bool // failed batches: they failed because jobs of theirs did
}

// Refused says that the item failed before it ever ran: it is a row of a manifest that breaks a
// rule. What the row says was never understood, so it can never run.
func (p Position) Refused() bool { return p.Status == Failed && p.Attempt == 0 }

// Commitment is how far an item is with what it changes in storage. It decides which acts may be
// asked of it, and is read from what the item has announced and recorded.
type Commitment string

// The commitments.
const (
	Uncommitted Commitment = "" // nothing in storage is its own yet
	// Announced: it has announced a version of an object that nobody sees yet, or has begun to
	// delete one. It is only carried on (R7).
	Announced Commitment = "announced"
	// Preserved: its version of an object is recorded. The object stays, whatever becomes of the
	// item.
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
	if p.Status == Pending && p.Attempt == 0 && p.Stage == route.First() {
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

// NextTry is the try that an item waits for since its step failed on a system fault.
type NextTry struct {
	At      time.Time `json:"at"`
	Attempt int       `json:"attempt"`      // of this step: from 2 on
	Of      int       `json:"of,omitempty"` // the try after which the item fails; 0: not known
}

// StateText is a state as people read it. Of an item that waits for its next try nothing runs, so
// that it is told when that is due instead of the step's name: Retry at 18:23, attempt 3 of 5.
// Times are in the zone of now, which is named when it is UTC.
func StateText(s State, next *NextTry, now time.Time) string {
	if next == nil {
		return string(s)
	}
	text := "Retry due"
	if at := next.At.In(now.Location()); at.After(now) {
		form := "15:04"
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

// StateText is the item's state as people read it, see [StateText].
func (it WorkItem) StateText(now time.Time) string { return StateText(it.State, it.NextTry, now) }

// StateText is the job's state as people read it, see [StateText].
func (j JobResult) StateText(now time.Time) string { return StateText(j.State, j.NextTry, now) }
