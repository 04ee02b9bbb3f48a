package registry

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Act is a kind of state change.
type Act string

// The acts on items. Each change of (stage, status) is one of them.
const (
	ActSubmit   Act = "submit"    // a new item
	ActReject   Act = "reject"    // a new item that is known to be bad: a bad row of a batch
	ActClaim    Act = "claim"     // a worker takes the item; its attempt number grows
	ActAdvance  Act = "advance"   // the step is done; the next stage follows
	ActComplete Act = "complete"  // the last step is done
	ActRetry    Act = "retry"     // the step failed on the system; retried after backoff; counted
	ActSnooze   Act = "snooze"    // the step waits for something; not counted
	ActRelease  Act = "release"   // the worker is stopping; pending at once; not counted
	ActSendBack Act = "send-back" // the step found that an earlier one must be repeated; counted
	ActLose     Act = "lose"      // the lease expired; retried after backoff
	ActFail     Act = "fail"      // content fault, or no try left: needs admin review
	ActRequeue  Act = "requeue"   // an admin makes a failed or cancelled item pending at its stage or an earlier one
	ActCancel   Act = "cancel"    // an admin stops an item; it can be requeued
	// ActUpdateReport: an admin requests a failed batch's report of what changed since its last
	// report.
	ActUpdateReport Act = "update-report"

	// ActRetryNow: an admin starts an item's next try at once. Counted tries stay counted.
	ActRetryNow Act = "retry-now"

	ActPrepare  Act = "prepare"      // a new item of a graph that is not sealed yet
	ActSeal     Act = "seal"         // the graph is complete: its items may start
	ActAbort    Act = "abort"        // an admin ends an item for good, and all items that wait for its success
	ActDelete   Act = "delete"       // an admin gives an item up; its staging is removed, preserved objects stay
	ActPurge    Act = "purge"        // a settled item's rows are deleted; its events stay
	ActPriority Act = "priority"     // an admin changes an item's priority
	ActHold     Act = "hold"         // an admin holds an item, or a batch with its jobs
	ActUnhold   Act = "release-hold" // that hold is released
	// ActGiveUp: an admin ends the delivery of a job's completion. The job completes and records
	// that nobody was notified.
	ActGiveUp Act = "give-up"
	// ActAbandon: an admin requests that the announced version of a failed job, which nobody can
	// see, is given up. If another admin has requested it before, a worker does it, see
	// [Abandonment].
	ActAbandon Act = "abandon"
	// ActAdopt: the item's version was found in its storages, and the record, which was restored from an
	// older backup, did not know it. The item goes on behind the steps that made the version.
	ActAdopt Act = "adopt"
)

// Move says how an act changes the stage.
type Move string

// The moves.
const (
	Stay Move = ""     // the same stage
	Next Move = "next" // the next stage
	Back Move = "back" // the same or any earlier stage
	// ToProcess leads to stage process, forwards or backwards.
	ToProcess Move = "process"
	// ToNotify leads to stage notify.
	ToNotify Move = "notify"
)

// Transition is one line of the state machine. [Transitions] is its only declaration: the store
// checks it, docs/states.md is generated from it, and the API lists acts from it.
type Transition struct {
	Act  Act
	From Status // "" for a new item
	To   Status
	Move Move
	By   string // who may do it: worker, registry, admin, depositor
	// Actions restricts the transition to these actions; nil: all.
	Actions []Action
	// Stages restricts the transition to items in these stages; nil: all.
	Stages []Stage
	// Commitments restricts the transition to items with these commitments; nil: all.
	Commitments []Commitment
	// Held restricts the transition to held items, OwnHold to those with a hold of their own.
	Held, OwnHold bool
	// Notifies restricts the transition to items whose receiver is not notified yet.
	Notifies bool
	// Sealed restricts the transition to items whose graph, if any, is sealed; JobsDone to batches
	// whose jobs are all completed or deleted.
	Sealed, JobsDone bool
	// Open restricts the transition to items with open requirements.
	Open bool
	// Claimed restricts the transition to items that were claimed at least once: a row that was
	// refused before never runs.
	Claimed bool
	// Delayed restricts the transition to items that wait for the time of their next try.
	Delayed bool
	// OwnFault restricts the transition to items that failed on their own account, not to batches
	// whose jobs failed.
	OwnFault bool
	// Ours reports that neither seed document has the transition.
	Ours bool
}

// Transitions returns the state machine: all allowed changes of (stage, status). All others are
// refused. The caller may change the slice, but not what its rows refer to.
func Transitions() []Transition { return slices.Clone(transitions) }

// transitions is a variable because it is used for every row that is read and every act that is
// checked.
var transitions = table()

func table() []Transition {
	// Staging must always be cleaned up, so nobody may stop a tidy item. A report that is due is
	// always made.
	all, early := actionsBut(Tidy), stagesBut(Report)
	// A step that failed or was cancelled has put its process into error. Only a repair of the
	// process starts it again, so that no two steps run at once.
	requeued := actionsBut(StepProcess)
	// An item that has announced a version is only rolled forward (R7). When its object is
	// preserved, the rest of it may be deleted.
	// The stages that make a version.
	making := []Stage{Estimate, Provision, Download, Scan, Process, Replicate, Record}
	free, safe, announced := []Commitment{Uncommitted}, []Commitment{Uncommitted, Preserved}, []Commitment{Announced}
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
		{Act: ActSendBack, From: Running, To: Pending, Move: Back, By: "worker", Actions: []Action{Ingest}, Stages: []Stage{Scan, Process, Record}, Ours: true},
		{Act: ActLose, From: Running, To: Pending, By: "registry", Ours: true},
		{Act: ActLose, From: Running, To: Failed, By: "registry", Ours: true},
		{Act: ActRequeue, From: Failed, To: Pending, Move: Back, By: "admin", Actions: requeued, Claimed: true, Sealed: true, OwnFault: true},
		{Act: ActRequeue, From: Cancelled, To: Pending, Move: Back, By: "admin", Actions: requeued, Sealed: true, Ours: true},
		// A tidy item waits until no attempt can write any more, so nobody may start it earlier.
		{Act: ActRetryNow, From: Pending, To: Pending, By: "admin", Actions: all, Claimed: true, Delayed: true, Ours: true},
		{Act: ActPrepare, From: "", To: Prepare, By: "depositor", Ours: true},
		{Act: ActSeal, From: Prepare, To: Pending, By: "depositor", Ours: true},
		{Act: ActCancel, From: Prepare, To: Cancelled, By: "admin", Actions: all, Commitments: free, Ours: true},
		{Act: ActCancel, From: Pending, To: Cancelled, By: "admin", Actions: all, Commitments: free, Stages: early, Ours: true},
		{Act: ActCancel, From: Running, To: Cancelled, By: "admin", Actions: all, Commitments: free, Stages: early, Ours: true},
		// A batch that waits for its jobs is not cancelled itself: its jobs are, and it reports
		// their outcomes.
		{Act: ActCancel, From: Pending, To: Pending, By: "admin", Actions: []Action{Batch}, Stages: []Stage{Report}, Open: true, Ours: true},
		{Act: ActAbort, From: Prepare, To: Aborted, By: "admin", Actions: all, Commitments: free, Ours: true},
		{Act: ActAbort, From: Pending, To: Aborted, By: "admin", Actions: all, Commitments: free, Ours: true},
		{Act: ActAbort, From: Running, To: Aborted, By: "admin", Actions: all, Commitments: free, Ours: true},
		{Act: ActAbort, From: Failed, To: Aborted, By: "admin", Actions: all, Commitments: free, Ours: true},
		{Act: ActAbort, From: Cancelled, To: Aborted, By: "admin", Actions: all, Commitments: free, Ours: true},
		{Act: ActUpdateReport, From: Failed, To: Pending, By: "admin", Actions: []Action{Batch}, Stages: []Stage{Report}},
		{Act: ActDelete, From: Failed, To: Deleted, By: "admin", Actions: all, Commitments: safe},
		{Act: ActDelete, From: Pending, To: Deleted, By: "admin", Actions: all, Commitments: safe, Held: true},
		{Act: ActDelete, From: Prepare, To: Deleted, By: "admin", Actions: all, Commitments: safe, Ours: true},
		{Act: ActDelete, From: Cancelled, To: Deleted, By: "admin", Actions: all, Commitments: safe, Ours: true},
		{Act: ActDelete, From: Aborted, To: Deleted, By: "admin", Actions: all, Commitments: safe, Ours: true},
		{Act: ActPurge, From: Completed, To: "", By: "admin", Actions: []Action{Batch}},
		{Act: ActPurge, From: Deleted, To: "", By: "admin", Actions: []Action{Batch}, JobsDone: true},
		{Act: ActPurge, From: Completed, To: "", By: "admin", Actions: append(ObjectActions(), Bulk, Tidy, DeliverMessage, Task, StepProcess), Ours: true},
		{Act: ActPurge, From: Deleted, To: "", By: "admin", Actions: append(ObjectActions(), Bulk, DeliverMessage, Task, StepProcess), Ours: true},
		{Act: ActPriority, From: Prepare, To: Prepare, By: "admin", Ours: true},
		{Act: ActPriority, From: Pending, To: Pending, By: "admin", Ours: true},
		{Act: ActPriority, From: Running, To: Running, By: "admin", Ours: true},
		{Act: ActPriority, From: Failed, To: Failed, By: "admin", Ours: true},
		{Act: ActHold, From: Prepare, To: Prepare, By: "admin", Ours: true},
		{Act: ActHold, From: Pending, To: Pending, By: "admin"},
		{Act: ActHold, From: Running, To: Running, By: "admin", Ours: true},
		{Act: ActHold, From: Failed, To: Failed, By: "admin", Ours: true},
		{Act: ActUnhold, From: Prepare, To: Prepare, By: "admin", OwnHold: true, Ours: true},
		{Act: ActUnhold, From: Pending, To: Pending, By: "admin", OwnHold: true},
		{Act: ActUnhold, From: Running, To: Running, By: "admin", OwnHold: true, Ours: true},
		{Act: ActUnhold, From: Failed, To: Failed, By: "admin", OwnHold: true, Ours: true},
		{Act: ActGiveUp, From: Failed, To: Pending, By: "admin", Actions: []Action{Ingest}, Stages: []Stage{Notify}, Notifies: true, Ours: true},
		{Act: ActGiveUp, From: Pending, To: Pending, By: "admin", Actions: []Action{Ingest}, Stages: []Stage{Notify}, Notifies: true, Ours: true},
		{Act: ActGiveUp, From: Running, To: Running, By: "admin", Actions: []Action{Ingest}, Stages: []Stage{Notify}, Notifies: true, Ours: true},
		{Act: ActAbandon, From: Failed, To: Failed, By: "admin", Actions: []Action{Ingest}, Commitments: announced, Ours: true},
		{Act: ActAbandon, From: Failed, To: Pending, Move: ToProcess, By: "admin", Actions: []Action{Ingest}, Commitments: announced, Ours: true},
		{Act: ActAdopt, From: Pending, To: Pending, Move: ToNotify, By: "registry", Actions: []Action{Ingest}, Stages: making, Ours: true},
		{Act: ActAdopt, From: Running, To: Pending, Move: ToNotify, By: "registry", Actions: []Action{Ingest}, Stages: making, Ours: true},
		{Act: ActAdopt, From: Failed, To: Pending, Move: ToNotify, By: "registry", Actions: []Action{Ingest}, Stages: making, Ours: true},
		{Act: ActAdopt, From: Cancelled, To: Pending, Move: ToNotify, By: "registry", Actions: []Action{Ingest}, Stages: making, Ours: true},
	}
}

// CheckAct returns nil if the state machine allows act, with the outcome to, on an item at p.
// Otherwise it returns a *[TransitionError].
func CheckAct(p Position, act Act, to Status) error {
	for _, t := range transitions {
		if t.Act == act && t.To == to && t.Concerns(p) {
			return nil
		}
	}
	return Refuse(p, act, to)
}

// Refuse returns the *[TransitionError] for act, with the outcome to, on an item at p.
func Refuse(p Position, act Act, to Status) *TransitionError {
	from := StateOf(p)
	if p.Status == "" {
		from = stateNew
	}
	e := &TransitionError{Act: act, From: from, To: target(p, act, to), Allowed: AllowedActs(p)}
	if act == ActRequeue && p.Refused() {
		e.Why = "its row was refused when the batch was read, and such a row never runs; submit the corrected row in a new batch"
	}
	if act == ActRequeue && p.Action == StepProcess {
		e.Why = "a step of a process is not requeued, because later steps may have run; repair its process: holdfast process repair NAMESPACE ID"
	}
	return e
}

// States before an item exists and after it is gone.
const (
	stateNew  State = "new"
	stateGone State = "gone"
)

// target returns the state to which an act leads.
func target(p Position, act Act, to Status) State {
	switch to {
	case "":
		return stateGone
	case Running:
		p.Status, p.Attempt = Running, 1
		return StateOf(p)
	case Pending:
		if act == ActUpdateReport {
			return StateUpdateReport
		}
		return StatePending
	case Prepare, Completed, Failed, Cancelled, Aborted, Deleted:
	}
	return settledStates[to]
}

// AllowedActs returns the acts that a person may request for an item at p, each once.
func AllowedActs(p Position) []Act {
	var acts []Act
	for _, t := range adminTransitions[p.Status] {
		if t.Concerns(p) && !slices.Contains(acts, t.Act) {
			acts = append(acts, t.Act)
		}
	}
	return acts
}

// adminTransitions are the transitions that people can request, by the status in which they start.
var adminTransitions = func() map[Status][]*Transition {
	from := map[Status][]*Transition{}
	for i, t := range transitions {
		if t.By == "admin" {
			from[t.From] = append(from[t.From], &transitions[i])
		}
	}
	return from
}()

// AdminActs returns the acts that people can request, each once.
func AdminActs() []Act {
	var acts []Act
	for _, t := range transitions {
		if t.By == "admin" && !slices.Contains(acts, t.Act) {
			acts = append(acts, t.Act)
		}
	}
	return acts
}

// Concerns reports whether the transition starts at p.
func (t Transition) Concerns(p Position) bool {
	return t.From == p.Status && (p.Held || !t.Held) && (p.OwnHold || !t.OwnHold) && (p.Open > 0 || !t.Open) && (p.Delayed || !t.Delayed) &&
		(p.Attempt > 0 || !t.Claimed) && (!p.JobsFailed || !t.OwnFault) && (p.Notifies || !t.Notifies) && (!p.Unsealed || !t.Sealed) && (!p.JobsLeft || !t.JobsDone) &&
		(t.Commitments == nil || slices.Contains(t.Commitments, p.Commitment)) &&
		(t.Actions == nil || slices.Contains(t.Actions, p.Action)) && (t.Stages == nil || slices.Contains(t.Stages, p.Stage.Family()))
}

func actionsBut(one Action) (out []Action) {
	for _, r := range routes {
		if r.Action != one {
			out = append(out, r.Action)
		}
	}
	return out
}

func stagesBut(one Stage) []Stage {
	return slices.DeleteFunc(AllStages(), func(s Stage) bool { return s == one })
}

// TransitionError says that the state machine does not allow a change.
type TransitionError struct {
	ItemID  string `json:"item_id"`
	Act     Act    `json:"act"`
	From    State  `json:"from"` // the states that people see
	To      State  `json:"to"`
	Allowed []Act  `json:"allowed"`
	Why     string `json:"why,omitempty"` // reason and advice that the states do not give
}

// Error says what is not possible and which acts are.
func (e *TransitionError) Error() string {
	text := fmt.Sprintf("state change (%v -> %v) is not allowed; allowed here: %v", e.From, e.To, actsText(e.Allowed))
	if plain := e.Short(); plain != "" {
		return plain + "; " + text
	}
	return text
}

// Short says in one sentence why the change is not possible; "" if there is no more to say than that.
func (e *TransitionError) Short() string { return cmp.Or(e.Reason(), e.instead(), e.plain()) }

// WhyNot says why a person's act is not possible for an item at p; "" if it is.
func WhyNot(p Position, act Act) string {
	if slices.Contains(AllowedActs(p), act) {
		return ""
	}
	free := p
	if free.Commitment = Uncommitted; slices.Contains(AllowedActs(free), act) {
		if p.Commitment == Preserved {
			return "past the point of no return: its version is preserved and stays"
		}
		return "past the point of no return: it has announced a version, which is only rolled forward"
	}
	return Refuse(p, act, p.Status).Short()
}

// impossible are the words of a person's act that the state does not allow.
var impossible = map[Act]string{
	ActRequeue:      "it is %v and cannot be requeued",
	ActRetryNow:     "it is %v and cannot be retried now",
	ActCancel:       "it is %v and cannot be cancelled",
	ActAbort:        "it is %v and cannot be aborted",
	ActUpdateReport: "it is %v and cannot be reported again",
	ActDelete:       "it is %v and cannot be deleted",
	ActPurge:        "it is %v and cannot be cleaned up",
	ActPriority:     "it is %v and cannot be given another priority",
	ActHold:         "it is %v and cannot be held",
	ActUnhold:       "it is %v and cannot be released",
	ActGiveUp:       "it is %v and cannot be spared its delivery",
	ActAbandon:      "it is %v and cannot be abandoned",
}

// plain says that a person's act is not possible; "" for acts of workers and the Registry.
func (e *TransitionError) plain() string {
	format, ok := impossible[e.Act]
	if !ok {
		return ""
	}
	text := fmt.Sprintf(format, e.From)
	if len(e.Allowed) == 0 {
		text += "; no act is possible any more"
	}
	return text
}

// Reason returns the reason and advice that the states do not give, or "".
func (e *TransitionError) Reason() string {
	if e.Act == ActRequeue && slices.Contains(e.Allowed, ActUpdateReport) && !slices.Contains(e.Allowed, ActRequeue) {
		return fmt.Sprintf("the batch failed because its jobs did, so a requeue would only make another report; requeue its failed jobs:"+
			" `holdfast item requeue --match 'batch:%s state:failed'`; or make its report again: `holdfast batch update-report %[1]s`", cmp.Or(e.ItemID, "ID"))
	}
	return e.Why
}

// instead returns advice on the act that leads to the same goal, or "".
func (e *TransitionError) instead() string {
	allowed := func(a Act) bool { return slices.Contains(e.Allowed, a) }
	switch {
	case e.Act == ActDelete && allowed(ActCancel):
		return "cancel it first, then delete it"
	case e.Act == ActAbandon && allowed(ActRequeue):
		return "nothing of it is half done in storage, so there is nothing to abandon; requeue it"
	case e.Act == ActPurge && allowed(ActDelete):
		return "delete it first, then clean up"
	case e.Act == ActPurge && allowed(ActCancel):
		return "cancel it and delete it first, then clean up"
	case e.Act == ActRequeue && allowed(ActCancel):
		return "it has not failed and continues on its own; why says what it waits for"
	case e.Act == ActCancel && allowed(ActDelete):
		return "it is not running; delete it instead"
	case e.Act == ActUpdateReport && allowed(ActCancel):
		return "its jobs are not settled yet; it is reported when they are"
	}
	return ""
}

// actsText lists acts for people.
func actsText(all []Act) string {
	if len(all) == 0 {
		return "nothing"
	}
	acts := make([]string, len(all))
	for i, a := range all {
		acts[i] = string(a)
	}
	return strings.Join(acts, ", ")
}
