// Package task makes Go functions into tasks: durable work that Holdfast dispatches, retries, shows
// and keeps the history of.
//
// A program of yours registers functions in a [Mux] and serves them with [Serve]. Any program that
// may submit adds tasks, alone or in a [Graph]. [Function.Call] runs a function at once in the
// calling goroutine, with the same record.
//
//	var mux task.Mux
//	check := task.Handle(&mux, "link-check", func(ctx context.Context, run *task.Run, args Links) (Report, error) { ... })
//	err := task.Serve(ctx, registry, &mux, task.Options{})
//
// A function may be called again for the same task: after a failure, a lost worker, or a requeue.
// What must not happen twice belongs into [Run.Once].
package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/schema"
)

// Registry is what a program that serves functions needs of the Registry.
type Registry interface {
	registry.Working
	registry.Serving
	registry.Stepping
}

// Adding is a Registry to which tasks can be added.
type Adding interface {
	AddTask(ctx context.Context, n registry.NewTask) (registry.WorkItem, error)
}

// Preparing is a Registry to which graphs can be added.
type Preparing interface {
	Prepare(ctx context.Context, g registry.Graph) (registry.PreparedGraph, error)
}

// Func does the work of a task. Its result is kept with the task, as JSON. Its error is the verdict:
// [Fail] and [Invalid] give up, [Later] waits, any other error is retried with backoff until the
// attempts are used up. It must return soon after ctx ends; context.Cause says why that ended.
type Func[T, R any] func(ctx context.Context, run *Run, args T) (R, error)

// Function is a registered function.
type Function[T, R any] struct {
	*handler
	do Func[T, R]
}

// Mux is a set of functions. The zero value is empty. It must not be changed while it is served.
type Mux struct {
	handlers []*handler
	others   []Served
}

// Served is what a program serves beside functions, such as the processes of a namespace.
type Served interface {
	base.Handler

	// Announce tells the Registry what the program serves. [Serve] repeats it while the Registry
	// does not answer.
	Announce(ctx context.Context, r Registry) error
}

// Add lets [Serve] serve s, too. It panics if its stage is served already: that is a fault of the
// program.
func (m *Mux) Add(s Served) {
	if slices.ContainsFunc(m.others, func(o Served) bool { return o.Stage() == s.Stage() }) {
		panic(fmt.Sprintf("stage %s is registered twice", s.Stage()))
	}
	m.others = append(m.others, s)
}

// Handle registers a function under a name ([registry.CheckFunctionName]). The schemas of arguments
// and result are those of T and R; fields without omitempty are required. It panics if the name is
// not valid or taken, or if T or R have no schema: that is a fault of the program.
func Handle[T, R any](m *Mux, name string, fn Func[T, R], options ...Option) *Function[T, R] {
	if err := registry.CheckFunctionName(name); err != nil {
		panic(err)
	}
	if slices.ContainsFunc(m.handlers, func(h *handler) bool { return h.about.Name == name }) {
		panic(fmt.Sprintf("function %s is registered twice", name))
	}
	h := &handler{about: registry.Function{Name: name, Args: schemaOf[T](name), Result: schemaOf[R](name)}}
	for _, o := range options {
		o(h)
	}
	h.about.Policy.MaxAttempts = h.MaxAttempts()
	f := &Function[T, R]{handler: h, do: fn}
	h.do = func(ctx context.Context, run *Run, args json.RawMessage) (any, error) {
		var in T
		if err := json.Unmarshal(args, &in); err != nil {
			return nil, Invalid(fmt.Errorf("decode the arguments of %s: %w", name, err))
		}
		return fn(ctx, run, in)
	}
	m.handlers = append(m.handlers, h)
	return f
}

func schemaOf[T any](name string) json.RawMessage {
	text, err := schema.Of[T]()
	if err != nil {
		panic(fmt.Sprintf("function %s: %v", name, err))
	}
	return text
}

// Option sets something of a function.
type Option func(*handler)

// Title sets what people read instead of the name.
func Title(text string) Option { return func(h *handler) { h.about.Title = text } }

// Attempts sets after how many counted failures a task fails; default 5. With 1 it is never retried
// by itself.
func Attempts(n int) Option { return func(h *handler) { h.Attempts = n } }

// AtOnce sets how many tasks of the function run at once in all programs together, unless an admin sets
// another limit (`holdfast queue limit`); default any number. [Slots] is for one program.
func AtOnce(n int) Option { return func(h *handler) { h.about.Policy.AtOnce = n } }

// Slots sets how many tasks of the function a process works on at once; default 32 to 64, by the
// number of processors.
func Slots(n int) Option { return func(h *handler) { h.Slots = n } }

// Lease sets how long a claim lasts after its last renewal; default 30 s. After that the task of a
// process that died is tried again.
func Lease(d time.Duration) Option { return func(h *handler) { h.LeaseFor = d } }

// StuckAfter sets how long a call may go without progress before it is cancelled; default 10 min.
func StuckAfter(d time.Duration) Option { return func(h *handler) { h.StuckFor = d } }

// Backoff sets the wait before the first retry, by what each later one is longer, and the longest;
// default one minute, 2 and one hour.
func Backoff(first time.Duration, factor float64, most time.Duration) Option {
	return func(h *handler) {
		h.about.Policy.First, h.about.Policy.Factor, h.about.Policy.Most = first, factor, most
	}
}

// Fail gives up: the task fails without another try. Fail(nil) is nil.
func Fail(err error) error { return base.Fatal(err) }

// Invalid is Fail for a task whose arguments, or what they name, are at fault. Invalid(nil) is nil.
func Invalid(err error) error { return base.Content(err) }

// Later makes the task wait for at least d. It is not counted as a failure. People see why.
func Later(d time.Duration, why string) error { return base.Snooze(d, registry.ReasonNotDue, why) }

// IsLater reports whether an error is one of [Later].
func IsLater(err error) bool { return base.IsSnooze(err) }

// Options are those of [Serve] and [Function.Call]. The zero value has defaults.
type Options struct {
	Worker  string       // name of this process start, unique; default: random
	Version string       // of the program
	Log     *slog.Logger // default: none
	// Grace is how long running calls may take to stop when ctx ends; default 25 s.
	Grace time.Duration
}

func (o Options) runner(r Registry) *base.Runner {
	return &base.Runner{
		Registry: r, Interim: nothing{}, Connect: base.Poll(r), WorkerID: o.Worker, Version: o.Version, Log: o.Log, Grace: o.Grace,
	}
}

// Serve announces the functions and works on their tasks until ctx ends. Then running calls are
// cancelled, and their tasks go back to pending, uncounted. It waits for the Registry without a
// limit. Several processes may serve the same functions.
func Serve(ctx context.Context, r Registry, m *Mux, o Options) error {
	if len(m.handlers)+len(m.others) == 0 {
		return errors.New("serve functions: none is registered")
	}
	if err := announce(ctx, r, m, o.Log); err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it was told to stop
		}
		return fmt.Errorf("serve functions: %w", err)
	}
	var handlers []base.Handler
	for _, h := range m.handlers {
		handlers = append(handlers, h)
	}
	for _, o := range m.others {
		handlers = append(handlers, o)
	}
	if err := o.runner(r).Run(ctx, handlers...); err != nil {
		return fmt.Errorf("serve functions: %w", err)
	}
	return nil
}

// announce announces what the program serves. It repeats that while the Registry does not answer.
func announce(ctx context.Context, r Registry, m *Mux, log *slog.Logger) error {
	all := make([]registry.Function, len(m.handlers))
	for i, h := range m.handlers {
		all[i] = h.about
	}
	var calls []func() error
	if len(all) > 0 {
		calls = append(calls, func() error { return r.Announce(ctx, all) })
	}
	for _, o := range m.others {
		calls = append(calls, func() error { return o.Announce(ctx, r) })
	}
	for _, call := range calls {
		if err := untilAnswered(ctx, log, call); err != nil {
			return err
		}
	}
	return nil
}

// untilAnswered repeats an announcement while the Registry does not answer.
func untilAnswered(ctx context.Context, log *slog.Logger, call func() error) error {
	for wait := time.Second; ; wait = min(2*wait, time.Minute) {
		err := call()
		if !errors.Is(err, registry.ErrUnavailable) {
			return err
		}
		if log != nil {
			log.WarnContext(ctx, "functions are not announced yet", "err", err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

// handler is the worker of a function.
type handler struct {
	base.Worker

	about registry.Function
	do    func(ctx context.Context, run *Run, args json.RawMessage) (any, error)
}

// Stage implements base.Handler.
func (h *handler) Stage() registry.Stage { return h.about.Stage() }

// Backoff implements base.Handler.
func (h *handler) Backoff(tries int) time.Duration { return h.about.Policy.Backoff(tries) }

// Work implements base.Handler.
func (h *handler) Work(ctx context.Context, item *base.Item) error {
	var spec registry.TaskSpec
	if err := json.Unmarshal(item.WorkItem.Spec, &spec); err != nil {
		return fmt.Errorf("decode the input of task %s: %w", item.ID, err)
	}
	run := &Run{ID: item.ID, Function: spec.Function, Subject: spec.Subject, Cause: spec.Cause, Actor: item.CreatedBy, Attempt: item.Lease().N, Log: item.Log(), steps: itemSteps{item}}
	result, err := h.call(ctx, run, spec.Args)
	if err != nil {
		return err
	}
	return item.SetResult(registry.ResultReturned, result)
}

func (h *handler) call(ctx context.Context, run *Run, args json.RawMessage) (json.RawMessage, error) {
	result, err := h.do(ctx, run, args)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(result)
	if err != nil {
		return nil, Fail(fmt.Errorf("encode what %s returned: %w", h.about.Name, err))
	}
	return text, nil
}

// New returns a task of the function, to submit.
func (f *Function[T, R]) New(args T) (registry.NewTask, error) {
	text, err := json.Marshal(args)
	if err != nil {
		return registry.NewTask{}, fmt.Errorf("encode the arguments of %s: %w", f.about.Name, err)
	}
	return registry.NewTask{Function: f.about.Name, Args: text}, nil
}

// Submit adds a task of the function and returns its id. change may set more of it.
func (f *Function[T, R]) Submit(ctx context.Context, r Adding, args T, change ...func(*registry.NewTask)) (id string, err error) {
	n, err := f.New(args)
	if err != nil {
		return "", err
	}
	for _, c := range change {
		c(&n)
	}
	it, err := r.AddTask(ctx, n)
	return it.ID, err
}

// Call adds a task of the function and runs it at once in this goroutine, like an ordinary call. The
// record is that of any task. It returns what the function returned, or its error; then the task
// has failed, or is tried again by whoever serves the function. An error before the call
// ([registry.NotClaimable], [registry.ErrUnavailable]) means that the function did not run.
func (f *Function[T, R]) Call(ctx context.Context, r Registry, o Options, args T, change ...func(*registry.NewTask)) (result R, err error) {
	n, err := f.New(args)
	if err != nil {
		return result, err
	}
	for _, c := range change {
		c(&n)
	}
	if n.IdempotencyKey == "" {
		n.IdempotencyKey = uuid.NewString() // an unanswered request is repeated
	}
	direct := *f.handler
	direct.do = func(ctx context.Context, run *Run, _ json.RawMessage) (any, error) {
		var err error
		result, err = f.do(ctx, run, args)
		return result, err
	}
	if err := r.Announce(ctx, []registry.Function{f.about}); err != nil {
		return result, fmt.Errorf("call %s: %w", f.about.Name, err)
	}
	_, err = o.runner(r).RunNew(ctx, &direct, func(ctx context.Context, c registry.ClaimRequest) (registry.Claim, error) {
		return r.StartTask(ctx, n, c)
	})
	if err != nil {
		return result, fmt.Errorf("call %s: %w", f.about.Name, err)
	}
	return result, nil
}

// Test calls the function without a Registry, for its unit tests. Arguments and result pass through
// JSON and the schema of the arguments, as those of a real task do.
func (f *Function[T, R]) Test(ctx context.Context, run *Run, args T) (result R, err error) {
	n, err := f.New(args)
	if err != nil {
		return result, err
	}
	if err := f.fits(n.Args); err != nil {
		return result, err
	}
	text, err := f.call(ctx, run, n.Args)
	if err != nil {
		return result, err
	}
	if err := json.Unmarshal(text, &result); err != nil {
		return result, fmt.Errorf("decode what %s returned: %w", f.about.Name, err)
	}
	return result, nil
}

// fits returns an *registry.ArgumentError unless arguments fit the function's schema.
func (h *handler) fits(args json.RawMessage) error {
	s, err := schema.Read(h.about.Args)
	if err != nil {
		return fmt.Errorf("read the schema of function %s: %w", h.about.Name, err)
	}
	if err := s.Fits(args); err != nil {
		return &registry.ArgumentError{Function: h.about.Name, Problem: err.Error()}
	}
	return nil
}
