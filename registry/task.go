package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strings"
	"time"
)

// Tasking is what submits tasks. A task is one call of a function, which a program outside Holdfast
// serves. It is an item like any other: it has a priority, waits for requirements, can be held,
// cancelled, aborted and requeued, and keeps its history. [Graphs] submits several that depend on
// each other, also beside deposits.
type Tasking interface {
	// Functions lists all functions that were ever announced, by name.
	Functions(ctx context.Context) ([]Function, error)
	// Function returns the last announcement of a function. *UnknownFunctionError: nobody has
	// announced it.
	Function(ctx context.Context, name string) (Function, error)
	// AddTask adds a task. A repeated idempotency key returns the first answer, or
	// ErrIdempotencyConflict if the arguments differ.
	//
	// *UnknownFunctionError: nobody has announced the function. *ArgumentError: the arguments do
	// not fit its schema. *NotAccepting, *GraphError and ErrNotFound are as for Submit.
	AddTask(ctx context.Context, t NewTask) (WorkItem, error)
}

// Serving is what programs call that serve functions, besides [Working].
type Serving interface {
	// Announce records what functions take and return, in place of earlier announcements. Programs
	// call it when they start. ErrInvalid: a name or schema is not valid.
	Announce(ctx context.Context, functions []Function) error
	// AwaitReady returns the first of the stages in which an item can be claimed now, or waits for
	// one until ctx ends; then it returns "" and no error. Another caller may be faster with the
	// claim, so use it in a loop. It is for stages that get no messages.
	AwaitReady(ctx context.Context, stages []Stage) (Stage, error)
	// StartTask is AddTask for a caller who runs the function itself. The same transaction claims
	// the task for r, whose stage and hint it sets. *NotClaimable: a hold or a requirement keeps
	// the task from starting now, and nothing was added; or the idempotency key is that of a task
	// which another claim got.
	StartTask(ctx context.Context, t NewTask, r ClaimRequest) (Claim, error)
	// Parents lists the items that the lease's item requires, with what their functions returned,
	// in the order of their ids. ErrClaimLost: the lease is not live. ErrInvalid: it is not that of
	// a task.
	Parents(ctx context.Context, l Lease) ([]Parent, error)
}

// Parent is an item that another one requires.
type Parent struct {
	ItemID string          `json:"item_id"`
	Key    string          `json:"key,omitempty"` // in its graph
	Stage  Stage           `json:"stage"`
	Status Status          `json:"status"`
	Result json.RawMessage `json:"result,omitempty"` // what the function returned; nil if it did not complete
	Error  string          `json:"error,omitempty"`
}

// Function is what is known of a function.
type Function struct {
	Name  string `json:"name"`  // see [CheckFunctionName]
	Title string `json:"title"` // for people
	// Args and Result are the JSON schemas of what it takes and returns (JSON Schema 2020-12); nil:
	// anything.
	Args   json.RawMessage `json:"args,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	// Policy is what holds where the program that serves it decides nothing itself.
	Policy FunctionPolicy `json:"policy"`
	SeenAt time.Time      `json:"seen_at,omitzero"` // the last announcement
}

// FunctionPolicy says how often, and when, a failed task is tried again, and how many run at once. Zero
// values mean the defaults of [base.Worker]: 5 attempts, the first retry after a minute, twice that after each, an
// hour at most.
type FunctionPolicy struct {
	MaxAttempts int           `json:"max_attempts,omitempty"` // counted failures after which a task fails
	First       time.Duration `json:"first,omitempty"`        // the wait before the first retry
	Factor      float64       `json:"factor,omitempty"`       // each later wait is this times longer
	Most        time.Duration `json:"most,omitempty"`         // the longest wait
	// AtOnce is how many may run at once, in all programs together; 0: any number. It holds unless an
	// admin sets another limit ([Limiting]). Of programs that announce different ones, the last counts.
	AtOnce int `json:"at_once,omitempty"`
}

// The policy of functions that set none.
const (
	policyAttempts = 5
	policyFirst    = time.Minute
	policyFactor   = 2
	policyMost     = time.Hour
	policySpread   = 5 // a wait by default varies by a fifth
)

// Attempts returns after how many counted failures a task fails.
func (p FunctionPolicy) Attempts() int {
	if p.MaxAttempts <= 0 {
		return policyAttempts
	}
	return p.MaxAttempts
}

// Backoff returns how long a task waits after its tries-th counted failure. Without a wait of the
// function's own it varies by a fifth, so that tasks that failed together do not return together.
func (p FunctionPolicy) Backoff(tries int) time.Duration {
	first, factor, most := p.First, max(p.Factor, 1), p.Most
	if most <= 0 {
		most = policyMost
	}
	if first <= 0 {
		first, factor = policyFirst, policyFactor
	}
	wait := time.Duration(min(float64(first)*math.Pow(factor, float64(max(tries-1, 0))), float64(most)))
	if p.First <= 0 {
		wait += rand.N(2*wait/policySpread+1) - wait/policySpread
	}
	return min(wait, most)
}

// Stage returns the stage of the function's tasks.
func (f Function) Stage() Stage { return Run.Of(f.Name) }

// mostFunctionName is the length of the longest name of a function.
const mostFunctionName = 64

var functionName = regexp.MustCompile(`^[a-z0-9]+([._-][a-z0-9]+)*$`)

// CheckFunctionName returns ErrInvalid unless name can name a function: lower-case letters, digits,
// and single dots, dashes or underscores between them; at most 64 bytes.
func CheckFunctionName(name string) error {
	if len(name) > mostFunctionName || !functionName.MatchString(name) {
		return InField("function", fmt.Errorf("%w: %.100q is not a name; a name has at most %d lower-case letters and digits, with single . - or _ between them",
			ErrInvalid, name, mostFunctionName))
	}
	return nil
}

// Bounds of tasks.
const (
	MostArgs      = 1 << 20   // bytes of a task's arguments
	MostSchema    = 256 << 10 // bytes of a schema
	MostFunctions = 100       // in one announcement
)

// NewTask is a call of a function.
type NewTask struct {
	Function   string          `json:"function"`
	Args       json.RawMessage `json:"args,omitempty"`       // a JSON value that fits the function's schema; nil: null
	Title      string          `json:"title,omitempty"`      // for people; "": the function's title
	Subject    string          `json:"subject,omitempty"`    // what it is about: an object's ARK, an item's id, an address
	Collection string          `json:"collection,omitempty"` // whose people may see it; "": operators only
	Priority   *int            `json:"priority,omitempty"`   // nil: 0; lower comes first
	NotBefore  time.Time       `json:"not_before,omitzero"`  // it does not start earlier
	// Requires are items that must complete, or settle, before it starts.
	Requires       []Requirement `json:"requires,omitempty"`
	Cause          string        `json:"cause,omitempty"` // the item or event that led to it
	Actor          string        `json:"actor,omitempty"`
	IdempotencyKey string        `json:"idempotency_key,omitempty"`
}

// Check returns ErrInvalid, with the reason, for a task that no Registry would take.
func (t NewTask) Check() error {
	if err := CheckFunctionName(t.Function); err != nil {
		return err
	}
	if len(t.Args) > MostArgs {
		return fmt.Errorf("%w: the arguments take %s; the limit is %s; store larger data, and pass where they are", ErrInvalid, SizeText(int64(len(t.Args))), SizeText(MostArgs))
	}
	if len(t.Args) > 0 && !json.Valid(t.Args) {
		return fmt.Errorf("%w: the arguments are not valid JSON", ErrInvalid)
	}
	return CheckPriority(t.Priority)
}

// TaskSpec is the immutable input of a task.
type TaskSpec struct {
	RouteVersion int             `json:"route_version"`
	Function     string          `json:"function"`
	Args         json.RawMessage `json:"args"`
	Subject      string          `json:"subject,omitempty"`
	Cause        string          `json:"cause,omitempty"` // the item or event that led to it
}

// ResultReturned is the result of a task: what its function returned.
const ResultReturned = "returned"

// OncePrefix begins the names of the results of a task that keep its once-values.
const OncePrefix = "once:"

// UnknownFunctionError says that nobody has announced a function.
type UnknownFunctionError struct {
	Function string   `json:"function"`
	Known    []string `json:"known"`
}

// Error names the functions that are known.
func (e *UnknownFunctionError) Error() string { return unknownName("function", e.Function, e.Known) }

// unknownName says that a program has not announced a name, and which ones are known.
func unknownName(kind, name string, known []string) string {
	text := fmt.Sprintf("unknown %v %q", kind, name)
	if near := Nearest(name, known); near != "" {
		return text + fmt.Sprintf("; did you mean %s?", near)
	}
	const shown = 10
	switch n := len(known); {
	case n == 0:
		return text + fmt.Sprintf("; no program has announced any %v yet: start the program that serves it", kind)
	case n > shown:
		return text + fmt.Sprintf("; known are %s and %d more", strings.Join(known[:shown], ", "), n-shown)
	}
	return text + "; known are " + strings.Join(known, ", ")
}

// Unwrap makes it an ErrNotFound.
func (e *UnknownFunctionError) Unwrap() error { return ErrNotFound }

// ArgumentError says that arguments do not fit a function's schema.
type ArgumentError struct {
	Function string `json:"function"`
	Problem  string `json:"problem"`
}

// Error says what is wrong with them.
func (e *ArgumentError) Error() string {
	return fmt.Sprintf("the arguments of %s do not fit its schema: %s", e.Function, e.Problem)
}

// Unwrap makes it an ErrInvalid.
func (e *ArgumentError) Unwrap() error { return ErrInvalid }
