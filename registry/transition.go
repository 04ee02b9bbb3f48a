package registry

import (
	"fmt"
	"slices"
	"strings"
)

// Act names a kind of state change.
type Act string

// The acts on items. Everything that changes (stage, status) is one of them.
const (
	ActSubmit   Act = "submit"   // a new item
	ActReject   Act = "reject"   // a new item that is already known to be bad: a bad row of a batch
	ActClaim    Act = "claim"    // a worker takes the item; its attempt number grows
	ActAdvance  Act = "advance"  // the step is done; the next stage's turn
	ActComplete Act = "complete" // the last step is done
	ActRetry    Act = "retry"    // the step failed on the system; again after backoff; counted
	ActSnooze   Act = "snooze"   // the step waits for something; not counted
	ActRelease  Act = "release"  // the worker is stopping; again at once; not counted
	ActLose     Act = "lose"     // the lease ran out; again after backoff
	ActFail     Act = "fail"     // wrong content, or MAX_ATTEMPTS used up: needs admin review
	ActRequeue  Act = "requeue"  // an admin sends a failed or cancelled item back to its stage or an earlier one
	ActCancel   Act = "cancel"   // an admin stops an item; it may be requeued
	// ActUpdateReport: an admin asks a failed batch to report what changed since its last report.
	ActUpdateReport Act = "update-report"
)

// Move says how an act changes the stage.
type Move string

// The moves.
const (
	Stay Move = ""     // the same stage
	Next Move = "next" // the stage after it
	Back Move = "back" // the same stage or any before it
)

// Transition is one line of the state machine. The table in [Transitions] is the only declaration of what may
// happen: the store checks it, docs/states.md is generated from it, and the API lists acts from it.
type Transition struct {
	Act  Act
	From Status // "" for a new item
	To   Status
	Move Move
	By   string // who may do it: worker, registry, admin, depositor
	// Actions limits the transition to these actions; nil: all.
	Actions []Action
	// Ours says that neither seed document has it.
	Ours bool
}

// Transitions returns the state machine: every allowed change of (stage, status). What is not listed is refused.
func Transitions() []Transition {
	return []Transition{
		{Act: ActSubmit, From: "", To: Pending, By: "depositor"},
		{Act: ActReject, From: "", To: Failed, By: "worker", Actions: []Action{Ingest}},
		{Act: ActClaim, From: Pending, To: Running, By: "worker"},
		{Act: ActAdvance, From: Running, To: Pending, Move: Next, By: "worker"},
		{Act: ActComplete, From: Running, To: Completed, By: "worker"},
		{Act: ActFail, From: Running, To: Failed, By: "worker"},
		{Act: ActRetry, From: Running, To: Pending, By: "worker", Ours: true},
		{Act: ActSnooze, From: Running, To: Pending, By: "worker", Ours: true},
		{Act: ActRelease, From: Running, To: Pending, By: "worker", Ours: true},
		{Act: ActLose, From: Running, To: Pending, By: "registry", Ours: true},
		{Act: ActLose, From: Running, To: Failed, By: "registry", Ours: true},
		{Act: ActRequeue, From: Failed, To: Pending, Move: Back, By: "admin"},
		{Act: ActRequeue, From: Cancelled, To: Pending, Move: Back, By: "admin", Ours: true},
		{Act: ActCancel, From: Pending, To: Cancelled, By: "admin", Actions: []Action{Ingest}, Ours: true},
		{Act: ActUpdateReport, From: Failed, To: Pending, By: "admin", Actions: []Action{Batch}},
	}
}

// CheckAct returns nil when the state machine allows act on an item of this action and status with the outcome to,
// and a *[TransitionError] otherwise.
func CheckAct(a Action, act Act, from, to Status) error {
	for _, t := range Transitions() {
		if t.Act == act && t.From == from && t.To == to && t.concerns(a) {
			return nil
		}
	}
	return &TransitionError{From: from, To: to, Allowed: AllowedActs(a, from)}
}

// AllowedActs returns the acts that a person may ask of an item of this action and status, each once.
func AllowedActs(a Action, from Status) []Act {
	var acts []Act
	for _, t := range Transitions() {
		if t.By == "admin" && t.From == from && t.concerns(a) && !slices.Contains(acts, t.Act) {
			acts = append(acts, t.Act)
		}
	}
	return acts
}

func (t Transition) concerns(a Action) bool {
	return t.Actions == nil || slices.Contains(t.Actions, a)
}

// TransitionError refuses a state change that the state machine does not have.
type TransitionError struct {
	ItemID   string
	From, To Status
	Allowed  []Act
}

// Error names the change and what may be done instead.
func (e *TransitionError) Error() string {
	acts := make([]string, len(e.Allowed))
	for i, a := range e.Allowed {
		acts[i] = string(a)
	}
	allowed := "nothing"
	if len(acts) > 0 {
		allowed = strings.Join(acts, ", ")
	}
	item := ""
	if e.ItemID != "" {
		item = "item " + e.ItemID + ": "
	}
	return fmt.Sprintf("%sstate change (%s -> %s) is not allowed; allowed here: %s", item, e.From, e.To, allowed)
}
