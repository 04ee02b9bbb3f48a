package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"
)

// Processing is what starts, calls and looks after processes. A process is a long-lived state
// machine of a namespace, such as one of each object that waits for a curator. Programs outside
// Holdfast serve the namespaces and decide what a step does.
//
// Each step is an item of the action [StepProcess]. So it has attempts, a lease and a history, and
// can be held like every item. One step of a process runs at a time. Calls run in the order in which
// they came, and before the process's own timer.
//
// ErrNotFound: there is no such process. *UnknownNamespaceError: nobody has announced the namespace.
type Processing interface {
	// Namespaces lists all namespaces that were ever announced, by name.
	Namespaces(ctx context.Context) ([]Namespace, error)
	// InitProcess creates a process and adds its first step. ErrProcessExists: the id is taken. It
	// stays taken if the step fails.
	InitProcess(ctx context.Context, n NewProcess) (Answer, error)
	// CallProcess adds a call. *ProcessStateError: the process is not running.
	CallProcess(ctx context.Context, n NewCall) (Answer, error)
	// RepairProcess adds a step that repairs a process in error. If the step succeeds, the process
	// runs again. A timer that failed is started again, unless the step sets what comes next. If the
	// step fails, the process stays as it is. *ProcessStateError: the process is not in error, or
	// is being repaired.
	RepairProcess(ctx context.Context, n NewCall) (Answer, error)
	// RetryProcess is a repair without a step. If a timer failed, that timer is started again, and
	// the process runs again when it succeeds. Otherwise the process runs again at once.
	// *ProcessStateError is as for RepairProcess.
	RetryProcess(ctx context.Context, a ProcessAct) (ProcessInfo, error)
	// AwaitAnswer returns the answer of a step, or waits for it until ctx ends; then it returns the
	// open answer and no error. ErrNotFound: there is no such step.
	AwaitAnswer(ctx context.Context, itemID string) (Answer, error)
	// Process returns a process with a range of its history. It waits until ctx ends while the
	// first step is open, and then returns the process as it is.
	Process(ctx context.Context, key ProcessKey, r HistoryRange) (ProcessInfo, error)
	// PutProcess imports a process. No step runs. ErrProcessExists: the id is taken.
	PutProcess(ctx context.Context, p PutProcess) (ProcessInfo, error)
	// TraceProcess lists the steps of a process with the events that each made, oldest first.
	TraceProcess(ctx context.Context, q TraceQuery) (Page[TracedStep], error)
	// RemoveProcess cancels the steps of a process, also a running one, and deletes its state and
	// history. The items of its steps stay until they are purged.
	RemoveProcess(ctx context.Context, a ProcessAct) error
	// Processes lists processes, newest first.
	Processes(ctx context.Context, q ProcessQuery) (Page[ProcessInfo], error)
}

// Stepping is what programs call that serve namespaces, besides [Working] and [Serving].
type Stepping interface {
	// AnnounceNamespaces records the policies of namespaces, in place of earlier announcements.
	// Programs call it when they start. ErrInvalid: a name is not valid.
	AnnounceNamespaces(ctx context.Context, all []Namespace) error
	// ProcessOf returns the process of the lease's step with a range of its history. The process
	// does not change while the lease is live. ErrClaimLost: the lease is not live. ErrInvalid: it
	// is not that of a step.
	ProcessOf(ctx context.Context, l Lease, r HistoryRange) (ProcessInfo, error)
}

// ErrProcessExists says that the id of the process is taken.
var ErrProcessExists = errors.New("the process exists already")

// Namespace is what is known of the processes of one kind.
type Namespace struct {
	Name   string          `json:"name"`  // see [CheckFunctionName]
	Title  string          `json:"title"` // for people
	Policy NamespacePolicy `json:"policy"`
	SeenAt time.Time       `json:"seen_at,omitzero"` // the last announcement
}

// Stage returns the stage of the steps of the namespace's processes.
func (n Namespace) Stage() Stage { return ProcessStep.Of(n.Name) }

// NamespacePolicy says how a failed timer is tried again. Zero values mean the defaults of
// [FunctionPolicy]. A call that fails is never tried again: its process goes into error. A step
// whose program died is tried again, whatever its kind.
type NamespacePolicy struct {
	FunctionPolicy

	// Final are the codes of errors that are not tried again.
	Final []string `json:"final,omitempty"`
	// StepTime is how long a step may go without progress; 0: 10 minutes.
	StepTime time.Duration `json:"step_time,omitempty"`
}

// ProcessKey names a process.
type ProcessKey struct {
	Namespace string `json:"namespace"`
	ProcessID string `json:"process_id"` // chosen by who creates it; unique in the namespace
}

// String returns the key as people write it: namespace/id.
func (k ProcessKey) String() string { return k.Namespace + "/" + k.ProcessID }

// Check returns ErrInvalid unless the key can name a process: see [CheckFunctionName] for the
// namespace; the id has 1 to 256 bytes of UTF-8 without control characters, and
// is not "." or "..", which no address can carry (RFC 3986, 5.2.4).
func (k ProcessKey) Check() error {
	if err := CheckFunctionName(k.Namespace); err != nil {
		return err
	}
	const most = 256
	ok := k.ProcessID != "" && k.ProcessID != "." && k.ProcessID != ".." && len(k.ProcessID) <= most && utf8.ValidString(k.ProcessID)
	for _, c := range k.ProcessID {
		ok = ok && c >= ' ' && c != 0x7f
	}
	if !ok {
		return fmt.Errorf("%w: %.100q does not name a process; an id is neither . nor .. and has 1 to %d bytes of text", ErrInvalid, k.ProcessID, most)
	}
	return nil
}

// ProcessStatus is the status of a process.
type ProcessStatus string

// The statuses of processes.
const (
	ProcessInit    ProcessStatus = "init"    // its first step has not succeeded yet
	ProcessRunning ProcessStatus = "running" // it takes calls, and its timer starts
	ProcessFailed  ProcessStatus = "error"   // a step failed: it needs a repair
	ProcessDone    ProcessStatus = "done"    // it ended; it can be read until it is removed
)

// ProcessInfo is a process.
type ProcessInfo struct {
	ProcessKey

	Collection      string        `json:"collection,omitempty"` // whose people may see it; "": operators only
	Status          ProcessStatus `json:"status"`
	PreviousStatus  ProcessStatus `json:"previous_status,omitempty"`
	StatusChangedAt time.Time     `json:"status_changed_at"`
	Detail          string        `json:"detail,omitempty"`       // in error: what happened
	CorruptedBy     string        `json:"corrupted_by,omitempty"` // in error: the item of the step that failed
	// State is the program's own state, which only it reads. Metadata is for people.
	State       json.RawMessage `json:"state,omitempty"`
	Metadata    json.RawMessage `json:"metadata,omitempty"`
	LastEventID int64           `json:"last_event_id"` // 0: it has no events
	History     []ProcessEvent  `json:"history,omitempty"`
	// Timer is what the process does next on its own; nil: nothing.
	Timer     *ProcessTimer `json:"timer,omitempty"`
	CreatedBy string        `json:"created_by,omitempty"`
	CreatedAt time.Time     `json:"created_at"`
}

// ProcessTimer is a step that starts by itself.
type ProcessTimer struct {
	ItemID string    `json:"item_id,omitempty"`
	Kind   StepKind  `json:"kind"` // timeout or remove
	At     time.Time `json:"at"`
}

// ProcessEvent is one entry of a process's history.
type ProcessEvent struct {
	// ID counts the events of a process from 1. The Registry assigns it.
	ID       int64           `json:"id"`
	ItemID   string          `json:"item_id,omitempty"` // the step that made it; "": imported
	At       time.Time       `json:"at"`
	Payload  json.RawMessage `json:"payload"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

// HistoryRange selects events of a history. The zero value selects the first events.
type HistoryRange struct {
	// Offset is the id of the event before the first one: only later events, or with Backward
	// earlier ones, are selected. 0: from the first, or with Backward from the last.
	Offset   int64 `json:"offset,omitempty"`
	Limit    int   `json:"limit,omitempty"` // 0: 1,000, which is the most
	Backward bool  `json:"backward,omitempty"`
	None     bool  `json:"none,omitempty"` // no events
}

// MostHistory is how many events one answer has at most.
const MostHistory = 1000

// StepKind says what started a step.
type StepKind string

// The kinds of steps.
const (
	StepInit    StepKind = "init"    // the first step
	StepCall    StepKind = "call"    // somebody called the process
	StepRepair  StepKind = "repair"  // somebody repairs the process
	StepTimeout StepKind = "timeout" // a timer fired
	StepRemove  StepKind = "remove"  // the time of removal has come; the program is not asked
)

// IsTimer reports whether the process starts steps of the kind by itself.
func (k StepKind) IsTimer() bool { return k == StepTimeout || k == StepRemove }

// StepSpec is the immutable input of a step.
type StepSpec struct {
	RouteVersion int `json:"route_version"`
	ProcessKey

	Kind StepKind        `json:"kind"`
	Args json.RawMessage `json:"args,omitempty"` // timers have none
	// Context is handed on from a step to the timer that it sets, such as a trace of who asked.
	Context json.RawMessage `json:"context,omitempty"`
	Range   HistoryRange    `json:"range,omitzero"` // the history that the step gets
}

// NewProcess is a process to create.
type NewProcess struct {
	ProcessKey

	Collection     string          `json:"collection,omitempty"`
	Args           json.RawMessage `json:"args,omitempty"` // for the first step; nil: null
	Context        json.RawMessage `json:"context,omitempty"`
	Actor          string          `json:"actor,omitempty"`
	IdempotencyKey string          `json:"idempotency_key,omitempty"`
}

// NewCall is a call or a repair of a process. A repeat with the same idempotency key and arguments
// returns the answer of the first one, whatever became of the process since. Other arguments, or the
// key of another operation or process: ErrIdempotencyConflict.
type NewCall struct {
	ProcessKey

	Args           json.RawMessage `json:"args,omitempty"` // nil: null
	Context        json.RawMessage `json:"context,omitempty"`
	Range          HistoryRange    `json:"range,omitzero"` // the history that the step gets; zero: all
	Actor          string          `json:"actor,omitempty"`
	IdempotencyKey string          `json:"idempotency_key,omitempty"`
}

// ProcessAct is an act on a process. Its idempotency key works as for [NewCall].
type ProcessAct struct {
	ProcessKey

	// Context replaces that of the timer which is started again; nil: it keeps its own.
	Context        json.RawMessage `json:"context,omitempty"`
	Reason         string          `json:"reason,omitempty"`
	Actor          string          `json:"actor,omitempty"`
	IdempotencyKey string          `json:"idempotency_key,omitempty"`
}

// PutProcess is a process to import.
type PutProcess struct {
	ProcessKey

	Collection string          `json:"collection,omitempty"`
	State      json.RawMessage `json:"state,omitempty"`
	Metadata   json.RawMessage `json:"metadata,omitempty"`
	// History has the events, oldest first. Their ids must grow from 1 or more; without ids they are
	// numbered from 1.
	History        []ProcessEvent `json:"history,omitempty"`
	Timer          *ProcessTimer  `json:"timer,omitempty"`
	Actor          string         `json:"actor,omitempty"`
	IdempotencyKey string         `json:"idempotency_key,omitempty"`
}

// Answer is the state of a step that somebody asked for.
type Answer struct {
	ProcessKey

	ItemID   string          `json:"item_id"`
	Kind     StepKind        `json:"kind"`
	Status   Status          `json:"status"`             // of the item; see [Status.Settled]
	Response json.RawMessage `json:"response,omitempty"` // of a completed step
	Error    string          `json:"error,omitempty"`    // of a step that failed or was cancelled
}

// TraceQuery asks for steps of a process.
type TraceQuery struct {
	ProcessKey

	After string `json:"after,omitempty"` // Next of the page before
	Limit int    `json:"limit,omitempty"` // 0: 50; at most 500
}

// TracedStep is a step with the events that it made.
type TracedStep struct {
	ItemID     string          `json:"item_id"`
	Kind       StepKind        `json:"kind"`
	Status     Status          `json:"status"`
	Args       json.RawMessage `json:"args,omitempty"`
	Context    json.RawMessage `json:"context,omitempty"`
	Response   json.RawMessage `json:"response,omitempty"`
	Error      string          `json:"error,omitempty"`
	Attempts   int64           `json:"attempts"`
	CreatedBy  string          `json:"created_by,omitempty"`
	CreatedAt  time.Time       `json:"created_at"`
	RunAt      time.Time       `json:"run_at"` // of a pending step: when it may start
	FinishedAt *time.Time      `json:"finished_at,omitempty"`
	Events     []ProcessEvent  `json:"events,omitempty"`
}

// ProcessQuery selects processes; empty fields do not restrict.
type ProcessQuery struct {
	Namespace string        `json:"namespace,omitempty"`
	Status    ProcessStatus `json:"status,omitempty"`
	Text      string        `json:"text,omitempty"`   // in the detail of the error
	Within    []string      `json:"within,omitempty"` // only of these collections; nil: all, empty: none
	After     string        `json:"after,omitempty"`  // Next of the page before
	Limit     int           `json:"limit,omitempty"`  // 0: 50; at most 500
}

// ResultStep is the result of a step with what the process becomes, a [StepResult]. A program sets
// it with the settlement of a completed step. The Registry applies it in the same transaction.
const ResultStep = "step"

// StepResult is what a step makes of its process.
type StepResult struct {
	Events   []NewProcessEvent `json:"events,omitempty"`
	Response json.RawMessage   `json:"response,omitempty"` // for who called
	State    json.RawMessage   `json:"state,omitempty"`    // nil: unchanged
	Metadata json.RawMessage   `json:"metadata,omitempty"` // nil: unchanged
	Then     StepThen          `json:"then,omitzero"`
}

// NewProcessEvent is an event to append to a history.
type NewProcessEvent struct {
	Payload  json.RawMessage `json:"payload"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
}

// StepThen says what a process does after a step.
type StepThen struct {
	Do ThenDo    `json:"do,omitempty"`
	At time.Time `json:"at,omitzero"` // of continue and remove; not later than now: at once
}

// ThenDo is what a process does next.
type ThenDo string

// What a process can do next. Each but ThenKeep replaces its timer. Calls that wait come first, but
// for ThenDone, which cancels them, and ThenRemove without a time.
const (
	ThenKeep     ThenDo = ""         // its timer stays as it was
	ThenContinue ThenDo = "continue" // a timeout at a time
	ThenSuspend  ThenDo = "suspend"  // nothing until somebody calls
	ThenDone     ThenDo = "done"     // nothing any more: it takes no calls
	ThenRemove   ThenDo = "remove"   // its removal at a time; without one it is removed with this step
)

// Bounds of processes.
const (
	MostNamespaces    = 100       // in one announcement
	MostProcessState  = 1 << 20   // bytes of a state, and of metadata
	MostProcessEvents = 1000      // of one step
	MostProcessEvent  = 256 << 10 // bytes of an event's payload, and of its metadata
)

// Check returns ErrInvalid, with the reason, for a result that no Registry would apply.
func (r StepResult) Check() error {
	switch r.Then.Do {
	case ThenKeep, ThenContinue, ThenSuspend, ThenDone, ThenRemove:
	default:
		return fmt.Errorf("%w: a step cannot end with %.100q, only with continue, suspend, done or remove", ErrInvalid, r.Then.Do)
	}
	if len(r.Events) > MostProcessEvents {
		return fmt.Errorf("%w: the step made %d events; the limit is %d", ErrInvalid, len(r.Events), MostProcessEvents)
	}
	for _, e := range r.Events {
		if err := errors.Join(checkJSON("the payload of an event", e.Payload, MostProcessEvent), checkJSON("the metadata of an event", e.Metadata, MostProcessEvent)); err != nil {
			return err
		}
	}
	return errors.Join(checkJSON("the response", r.Response, MostArgs), checkJSON("the state", r.State, MostProcessState),
		checkJSON("the metadata", r.Metadata, MostProcessState))
}

// checkJSON returns ErrInvalid for a value that is too large or no JSON. An absent value is valid.
func checkJSON(what string, value json.RawMessage, most int) error {
	switch {
	case len(value) > most:
		return fmt.Errorf("%w: %s takes %s; the limit is %s", ErrInvalid, what, SizeText(int64(len(value))), SizeText(int64(most)))
	case len(value) > 0 && !json.Valid(value):
		return fmt.Errorf("%w: %s is not valid JSON", ErrInvalid, what)
	}
	return nil
}

// Check returns ErrInvalid, with the reason, for a process that no Registry would create.
func (n NewProcess) Check() error {
	return errors.Join(n.ProcessKey.Check(), checkJSON("the arguments", n.Args, MostArgs), checkJSON("the context", n.Context, MostArgs))
}

// Check returns ErrInvalid, with the reason, for a call that no Registry would take.
func (n NewCall) Check() error {
	return errors.Join(n.ProcessKey.Check(), checkJSON("the arguments", n.Args, MostArgs), checkJSON("the context", n.Context, MostArgs))
}

// mostImportedID is the greatest number that every JSON parser reads exactly. Later events have greater
// ids, and must have room.
const mostImportedID = 1<<53 - 1

// Check returns ErrInvalid, with the reason, for a process that no Registry would import.
func (p PutProcess) Check() error {
	errs := []error{p.ProcessKey.Check(), checkJSON("the state", p.State, MostProcessState), checkJSON("the metadata", p.Metadata, MostProcessState)}
	if p.Timer != nil && !p.Timer.Kind.IsTimer() {
		errs = append(errs, fmt.Errorf("%w: a timer is a timeout or a remove, not %.100q", ErrInvalid, p.Timer.Kind))
	}
	last := int64(0)
	for i, e := range p.History {
		errs = append(errs, checkJSON("the payload of an event", e.Payload, MostProcessEvent), checkJSON("the metadata of an event", e.Metadata, MostProcessEvent))
		if numbered := p.History[0].ID != 0; numbered && e.ID <= last || !numbered && e.ID != 0 {
			errs = append(errs, fmt.Errorf("%w: event %d of the history has the id %d; ids must grow from 1, or all be absent", ErrInvalid, i+1, e.ID))
			break
		}
		if e.ID > mostImportedID {
			errs = append(errs, fmt.Errorf("%w: event %d of the history has the id %d; ids are at most %d", ErrInvalid, i+1, e.ID, int64(mostImportedID)))
			break
		}
		last = e.ID
	}
	return errors.Join(errs...)
}

// UnknownNamespaceError says that nobody has announced a namespace.
type UnknownNamespaceError struct {
	Namespace string   `json:"namespace"`
	Known     []string `json:"known"`
}

// Error names the namespaces that are known.
func (e *UnknownNamespaceError) Error() string { return unknownName("namespace", e.Namespace, e.Known) }

// Unwrap makes it an ErrNotFound.
func (e *UnknownNamespaceError) Unwrap() error { return ErrNotFound }

// ProcessStateError says that a process is not in the state that an operation needs.
type ProcessStateError struct {
	ProcessKey

	Status ProcessStatus `json:"status"`
	Detail string        `json:"detail,omitempty"` // of the process
	// Repairing is the step that repairs the process now; "": none.
	Repairing string `json:"repairing,omitempty"`
}

// Error says in which state the process is, and what helps.
func (e *ProcessStateError) Error() string {
	switch {
	case e.Repairing != "":
		return fmt.Sprintf("process %s is being repaired; wait for item %s", e.ProcessKey, e.Repairing)
	case e.Status == ProcessInit:
		return fmt.Sprintf("process %s is init: its first step has not ended; wait for it", e.ProcessKey)
	case e.Status == ProcessFailed:
		return fmt.Sprintf("process %s is in error: %s; repair it: holdfast process repair %s %s", e.ProcessKey, e.Detail, e.Namespace, e.ProcessID)
	case e.Status == ProcessDone:
		return fmt.Sprintf("process %s is done and takes no more calls", e.ProcessKey)
	}
	return fmt.Sprintf("process %s is %v: there is nothing to repair", e.ProcessKey, e.Status)
}

// Types of events about processes. Their item_id is the ProcessOwner of the key, their data a
// [ProcessChange]. What a step does has the actor worker.
const (
	EventProcessImported = "process-imported" // by PutProcess
	EventProcessStarted  = "process-started"  // its first step completed
	EventProcessError    = "process-error"    // a step failed
	EventProcessRetried  = "process-retried"  // by RetryProcess
	EventProcessRepaired = "process-repaired" // it left its error
	EventProcessDone     = "process-done"     // a step ended it
	EventProcessRemoved  = "process-removed"  // by a step, a timer or RemoveProcess
)

// ProcessChange is the data of an event about a process. Status is that after the event; of a removed
// process, its last one.
type ProcessChange struct {
	ProcessKey

	Status ProcessStatus `json:"status"`
	Step   string        `json:"step,omitempty"`   // the item of the step that did it
	Kind   StepKind      `json:"kind,omitempty"`   // of that step
	Reason string        `json:"reason,omitempty"` // the error, or why a person did it
}

// ProcessOwner returns what represents a process in the item_id of events.
func ProcessOwner(key ProcessKey) string { return "process:" + key.String() }
