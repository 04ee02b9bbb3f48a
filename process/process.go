// Package process makes Go functions into processes: long-lived state machines, of which Holdfast
// keeps the state and the history. A process waits for calls and for its own timer. One step of a
// process runs at a time.
//
//	var mux task.Mux
//	process.Handle(&mux, "curation", func(ctx context.Context, step *process.Step[State]) error {
//		switch step.Kind {
//		case registry.StepInit:
//			step.ContinueIn(7 * 24 * time.Hour) // remind the curator
//		case registry.StepCall:
//			step.Event(Decided{By: step.Actor})
//			step.Respond("thank you")
//			step.Done()
//		}
//		return nil
//	})
//	err := task.Serve(ctx, registry, &mux, task.Options{})
//
// What a step changes takes effect in one transaction, when its function returns nil. A step may
// run again before that: its program can die. What must not happen twice belongs into [Step.Once].
package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/task"
)

// Func does one step of a process, whose state is an S. Its error is the verdict. The error of a
// timer is retried by the namespace's policy, unless it is [task.Fail] or its code is final. Any
// other error, and the last one of a timer, puts the process into error. [task.Later] makes the step
// wait. It must return soon after ctx ends.
type Func[S any] func(ctx context.Context, step *Step[S]) error

// Option sets something of a namespace.
type Option func(*handler)

// Title sets what people read instead of the name.
func Title(text string) Option { return func(h *handler) { h.about.Title = text } }

// Attempts sets after how many failures of a timer its process goes into error; default 5.
func Attempts(n int) Option { return func(h *handler) { h.Attempts = n } }

// Backoff sets the wait before the first retry of a timer, by what each later one is longer, and
// the longest; default one minute, 2 and one hour.
func Backoff(first time.Duration, factor float64, most time.Duration) Option {
	return func(h *handler) {
		h.about.Policy.First, h.about.Policy.Factor, h.about.Policy.Most = first, factor, most
	}
}

// Final names error codes that are not retried. An error has a code if it, or an error that it wraps,
// has a method ErrorCode() string.
func Final(codes ...string) Option { return func(h *handler) { h.about.Policy.Final = codes } }

// AtOnce sets how many steps run at once in all programs together, unless an admin sets another limit
// (`holdfast queue limit`); default any number. [Slots] is for one program.
func AtOnce(n int) Option { return func(h *handler) { h.about.Policy.AtOnce = n } }

// Slots sets how many steps a program runs at once; default 32 to 64, by the number of processors.
func Slots(n int) Option { return func(h *handler) { h.Slots = n } }

// Lease sets how long a claim lasts after its last renewal; default 30 s. After that the step of a
// program that died runs again.
func Lease(d time.Duration) Option { return func(h *handler) { h.LeaseFor = d } }

// StepTime sets how long a step may go without progress before it is cancelled; default 10 min.
func StepTime(d time.Duration) Option {
	return func(h *handler) { h.StuckFor, h.about.Policy.StepTime = d, d }
}

// History sets which events steps get; default all. The range of a call replaces it.
func History(r registry.HistoryRange) Option { return func(h *handler) { h.history = r } }

// Handle lets a program serve the processes of a namespace ([registry.CheckFunctionName]). It panics
// if the name is not valid or taken: that is a fault of the program.
func Handle[S any](m *task.Mux, namespace string, fn Func[S], options ...Option) {
	if err := registry.CheckFunctionName(namespace); err != nil {
		panic(err)
	}
	h := &handler{about: registry.Namespace{Name: namespace}}
	for _, o := range options {
		o(h)
	}
	h.about.Policy.MaxAttempts = h.MaxAttempts()
	h.do = func(ctx context.Context, s input) (registry.StepResult, error) {
		step, err := newStep[S](s)
		if err != nil {
			return registry.StepResult{}, err
		}
		if err := fn(ctx, step); err != nil {
			return registry.StepResult{}, err
		}
		return step.Result()
	}
	m.Add(h)
}

// handler is the worker of a namespace.
type handler struct {
	base.Worker

	about   registry.Namespace
	history registry.HistoryRange
	do      func(ctx context.Context, s input) (registry.StepResult, error)
}

// Stage implements base.Handler.
func (h *handler) Stage() registry.Stage { return h.about.Stage() }

// Announce implements task.Served.
func (h *handler) Announce(ctx context.Context, r task.Registry) error {
	return r.AnnounceNamespaces(ctx, []registry.Namespace{h.about})
}

// Backoff implements base.Handler.
func (h *handler) Backoff(tries int) time.Duration {
	p := h.about.Policy
	if p.First <= 0 {
		return h.Worker.Backoff(tries)
	}
	most := p.Most
	if most <= 0 {
		most = time.Hour
	}
	wait := float64(p.First) * math.Pow(max(p.Factor, 1), float64(max(tries-1, 0)))
	return time.Duration(min(wait, float64(most)))
}

// Work implements base.Handler.
func (h *handler) Work(ctx context.Context, item *base.Item) error {
	var spec registry.StepSpec
	if err := json.Unmarshal(item.WorkItem.Spec, &spec); err != nil {
		return fmt.Errorf("decode the input of step %s: %w", item.ID, err)
	}
	if spec.Kind == registry.StepRemove {
		return nil // the Registry removes the process
	}
	in := input{spec: spec, item: item.ID, actor: item.CreatedBy, attempt: item.Lease().N, work: item}
	which := spec.Range
	if which == (registry.HistoryRange{}) {
		which = h.history
	}
	var err error
	if in.process, err = h.read(ctx, item, which); err != nil {
		return err
	}
	result, err := h.do(ctx, in)
	if err == nil {
		if err = result.Check(); err != nil {
			return task.Fail(err)
		}
		return item.SetResult(registry.ResultStep, result)
	}
	if ctx.Err() == nil && (!spec.Kind.IsTimer() && !waits(err) || h.final(err)) {
		return task.Fail(err)
	}
	return err
}

// read returns the item's process with all events of a range.
func (h *handler) read(ctx context.Context, item *base.Item, r registry.HistoryRange) (p registry.ProcessInfo, err error) {
	left := r.Limit // 0: all
	var history []registry.ProcessEvent
	for {
		if p, err = item.ProcessOf(ctx, r); err != nil {
			return p, err
		}
		history = append(history, p.History...)
		n := len(p.History)
		if left > 0 && len(history) >= left || n < registry.MostHistory {
			p.History = history
			return p, nil
		}
		if r.Offset = p.History[n-1].ID; left > 0 {
			r.Limit = left - len(history)
		}
	}
}

// final reports whether an error's code is one that is not retried.
func (h *handler) final(err error) bool {
	coded, ok := errors.AsType[interface {
		error
		ErrorCode() string
	}](err)
	return ok && slices.Contains(h.about.Policy.Final, coded.ErrorCode())
}

// waits reports whether a step asks to wait, or could not reach the Registry: no error of the
// process.
func waits(err error) bool {
	return task.IsLater(err) || errors.Is(err, registry.ErrUnavailable) || errors.Is(err, registry.ErrClaimLost)
}
