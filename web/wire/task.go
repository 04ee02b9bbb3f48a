package wire

import (
	"encoding/json"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// TaskRequest is a call of a function.
type TaskRequest struct {
	Function   string          `json:"function" doc:"Name of the function, as /functions lists it" example:"count-files"`
	Args       json.RawMessage `json:"args,omitempty" doc:"Any JSON value that fits the function's schema; null when absent"`
	Title      string          `json:"title,omitempty" doc:"For people; the function's title when empty"`
	Subject    string          `json:"subject,omitempty" doc:"What it is about: an object's ARK, an item's id, an address"`
	Collection string          `json:"collection,omitempty" doc:"Mnemonic of the collection whose people may see the task; when empty, only those who see all collections" example:"maps"`
	Priority   *int            `json:"priority,omitempty" doc:"Lower first; 0 when absent"`
	NotBefore  *time.Time      `json:"not_before,omitempty" doc:"The task does not start earlier"`
	Cause      string          `json:"cause,omitempty" doc:"The item or event that led to the task"`
	// Requires delays the start of the task.
	Requires []registry.Requirement `json:"requires,omitempty" doc:"Items that must complete (or settle) before the task starts; in a graph also nodes, by key"`
}

// FunctionsRequest announces the functions of a program.
type FunctionsRequest struct {
	Functions []FunctionRequest `json:"functions" minItems:"1" maxItems:"100"`
}

// FunctionRequest says what a function takes and returns, and how its failed tasks are tried again.
type FunctionRequest struct {
	Name   string          `json:"name" maxLength:"64" example:"count-files"`
	Title  string          `json:"title,omitempty" doc:"For people"`
	Args   json.RawMessage `json:"args,omitempty" doc:"JSON Schema (2020-12) of the arguments; anything is taken when absent"`
	Result json.RawMessage `json:"result,omitempty" doc:"JSON Schema (2020-12) of the result; anything may be returned when absent"`
	// The policy of retries.
	MaxAttempts  int     `json:"max_attempts,omitempty" minimum:"1" maximum:"1000" doc:"Counted failures after which a task fails; 5 when absent"`
	FirstSeconds int     `json:"first_seconds,omitempty" minimum:"1" maximum:"86400" doc:"Wait before the first retry; 60 when absent"`
	Factor       float64 `json:"factor,omitempty" minimum:"1" maximum:"1000" doc:"Each later wait is this times longer; 2 when absent"`
	AtOnce       int     `json:"at_once,omitempty" minimum:"0" maximum:"1000000" doc:"How many may run at once, in all programs together, unless an admin sets another limit; any number when absent"`
	MostSeconds  int     `json:"most_seconds,omitempty" minimum:"1" maximum:"86400" doc:"The longest wait; 3600 when absent"`
}

// TaskClaim asks for a task to work on.
type TaskClaim struct {
	Worker       string   `json:"worker" minLength:"1" maxLength:"200" doc:"Identifies the loop that asks; another one for each loop and each start, such as a UUID"`
	Functions    []string `json:"functions" minItems:"1" maxItems:"100" doc:"Functions whose tasks the worker takes"`
	RequestID    string   `json:"request_id,omitempty" maxLength:"200" doc:"A new one for each task to ask for. A repeat with the same one, after a lost answer, gets the same task again"`
	WaitSeconds  int      `json:"wait_seconds,omitempty" minimum:"1" maximum:"30" doc:"How long to wait for a task; 1 when absent"`
	LeaseSeconds int      `json:"lease_seconds,omitempty" minimum:"5" maximum:"86400" doc:"The task is given to another worker if it is not renewed for this long; 30 when absent"`
	StuckSeconds int      `json:"stuck_seconds,omitempty" minimum:"5" maximum:"2592000" doc:"The task is taken away if it makes no progress for this long; 600 when absent"`
	Version      string   `json:"version,omitempty" maxLength:"200" doc:"Version of the program, for people"`
}

// TaskRun is an attempt of a task. Its ID and Attempt are the fencing token of all that the worker
// says about it.
type TaskRun struct {
	ID           string                     `json:"id"`
	Attempt      int64                      `json:"attempt" doc:"Number of the attempt, from 1"`
	Function     string                     `json:"function"`
	Args         json.RawMessage            `json:"args" doc:"Any JSON value that fits the function's schema"`
	Title        string                     `json:"title"`
	Subject      string                     `json:"subject,omitempty" doc:"What it is about: an object's ARK, an item's id, an address"`
	Cause        string                     `json:"cause,omitempty" doc:"The item or event that led to the task"`
	Actor        string                     `json:"actor" doc:"Who submitted the task"`
	Collection   string                     `json:"collection,omitempty"`
	Failures     int                        `json:"failures" doc:"Counted failures of earlier attempts"`
	MaxAttempts  int                        `json:"max_attempts" doc:"Counted failures after which the task fails"`
	Parents      []registry.Parent          `json:"parents" doc:"Items that the task requires, with what their functions returned"`
	Values       map[string]json.RawMessage `json:"values" doc:"Values that this or an earlier attempt kept"`
	LeaseSeconds int                        `json:"lease_seconds" doc:"Renew the attempt well before this has passed: after a third of it"`
}

// TaskProgress is one measure of an attempt that people see.
type TaskProgress struct {
	Title    string `json:"title" maxLength:"200"`
	Unit     string `json:"unit,omitempty" maxLength:"200" doc:"What it counts" example:"files"`
	Position int64  `json:"position" minimum:"0" maximum:"9007199254740991"`
	End      *int64 `json:"end,omitempty" minimum:"0" maximum:"9007199254740991" doc:"Position at which it is done; unknown when absent"`
}

// TaskLogLine is a line that people see with the attempt.
type TaskLogLine struct {
	Seq   int64      `json:"seq" minimum:"1" maximum:"1000000000" doc:"Number of the line in the attempt, from 1. A repeat of a line changes nothing"`
	At    *time.Time `json:"at,omitempty" doc:"When it was logged; when absent, or in the future, the time at which the Registry gets it"`
	Level string     `json:"level,omitempty" enum:"DEBUG,INFO,WARN,ERROR" doc:"INFO when absent"`
	Text  string     `json:"text" doc:"2,000 bytes are kept"`
}

// TaskBeat renews an attempt.
type TaskBeat struct {
	Worker       string         `json:"worker" minLength:"1" maxLength:"200" doc:"As in the claim"`
	Progress     []TaskProgress `json:"progress,omitempty" maxItems:"100" doc:"All measures, only if one has moved since the last renewal: an attempt whose progress does not come is stuck"`
	Log          []TaskLogLine  `json:"log,omitempty" maxItems:"100" doc:"Lines since the last renewal. The newest 1,000 of an attempt are kept"`
	LeaseSeconds int            `json:"lease_seconds,omitempty" minimum:"5" maximum:"86400" doc:"The lease from now; 30 when absent"`
	WaitSeconds  int            `json:"wait_seconds,omitempty" minimum:"0" maximum:"30" doc:"Answer after this long, or at once when the task is taken away; 0 when absent"`
}

// TaskRenewal answers a renewal.
type TaskRenewal struct {
	LeaseSeconds int  `json:"lease_seconds" doc:"The lease from the beginning of the renewal"`
	Held         bool `json:"held" doc:"An operator holds this worker: it gets no further tasks, and finishes this one"`
	Drain        bool `json:"drain" doc:"An operator drains the queue: stop at the next safe point, and settle with the outcome released"`
}

// TaskOutcome says how a worker's attempt ended.
type TaskOutcome string

// The outcomes of a worker's attempt.
const (
	TaskDone     TaskOutcome = "done"     // the function returned
	TaskRetry    TaskOutcome = "retry"    // it failed, and may succeed later
	TaskFatal    TaskOutcome = "fatal"    // it failed, and no retry helps
	TaskInvalid  TaskOutcome = "invalid"  // its arguments, or what they name, are at fault
	TaskLater    TaskOutcome = "later"    // it has to wait; not counted as a failure
	TaskReleased TaskOutcome = "released" // the program stops; not counted as a failure
)

// TaskSettlement ends an attempt.
type TaskSettlement struct {
	Outcome TaskOutcome     `json:"outcome" enum:"done,retry,fatal,invalid,later,released" doc:"done: it returned. retry: it failed and is tried again until its attempts are used up. fatal: it failed, and no retry helps. invalid: its arguments are at fault. later: it waits, which is no failure. released: the program stops"`
	Result  json.RawMessage `json:"result,omitempty" doc:"done: any JSON value that fits the function's schema; null when absent"`
	Error   string          `json:"error,omitempty" doc:"retry, fatal, invalid, later: what happened, for people. 2,000 bytes are kept"`
	// DelaySeconds is nil to let the function's policy decide.
	DelaySeconds *int           `json:"delay_seconds,omitempty" minimum:"0" maximum:"86400" doc:"retry, later: how long to wait; when absent, retry waits as the function's policy says, and later 60 seconds"`
	Progress     []TaskProgress `json:"progress,omitempty" maxItems:"100" doc:"All measures, if one has moved"`
	Log          []TaskLogLine  `json:"log,omitempty" maxItems:"100" doc:"Lines since the last renewal"`
}

// TaskVerdict says what becomes of a settled task.
type TaskVerdict struct {
	Status   registry.Status `json:"status" doc:"completed, failed, or pending: it is tried again"`
	Failures int             `json:"failures" doc:"Counted failures"`
}

// TaskValue is a value that a task keeps.
type TaskValue struct {
	Value json.RawMessage `json:"value" doc:"Any JSON value"`
}
