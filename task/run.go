package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/interim"
	"github.com/holdfast/holdfast/registry"
)

// Run is one attempt of a task, as its function sees it. Its methods may be called concurrently by
// the goroutines of the call.
type Run struct {
	ID       string // of the task
	Function string
	Subject  string // what the task is about, as submitted
	Cause    string // the item or event that led to it
	Actor    string // who submitted it
	Attempt  int64  // counts the attempts of the task, from 1

	// Log keeps lines with the attempt. People see them in `holdfast task show` and on the task's
	// page, while it runs and after. See [base.Item.Log] for what may be lost.
	Log *slog.Logger

	steps steps
}

// Job is the argument job of a function that runs after a stage of a job, because a collection's
// profile names it (docs/tasks.md).
type Job = registry.StepJob

// steps is what a run does to its task.
type steps interface {
	progress(title, unit string) Progress
	state(out any) (ok bool, err error)
	setState(ctx context.Context, v any) error
	once(ctx context.Context, name string, out any, fn func(context.Context) (any, error)) error
	parents(ctx context.Context) ([]registry.Parent, error)
}

// Progress is one measure of a call that people see. A call that moves none of its measures for its
// StuckAfter counts as stuck.
type Progress interface {
	Add(n int64)
	Set(position int64)
	SetStart(start int64) // where the call begins to count, and its position now; at first 0
	SetEnd(end int64)     // -1: unknown, as at first
}

// Progress returns the measure of a title; the same title gives the same measure. unit is what it
// counts: "files", "bytes", "pages".
func (r *Run) Progress(title, unit string) Progress { return r.steps.progress(title, unit) }

// Once makes a value that must not be made twice. It calls fn only if the task has no value of that
// name, from this attempt or an earlier one, and keeps the value before it returns. out receives the
// value that holds. An error of fn is returned, and nothing is kept.
func (r *Run) Once(ctx context.Context, name string, out any, fn func(context.Context) (any, error)) error {
	return r.steps.once(ctx, registry.OncePrefix+name, out, fn)
}

// State decodes into out what SetState set last, in this attempt or an earlier one. ok is false if
// nothing was set.
func (r *Run) State(out any) (ok bool, err error) { return r.steps.state(out) }

// SetState replaces the state of the task, such as how far it has come, and writes it before it
// returns. The next attempt goes on from there. The state is at most [registry.MostState] bytes of
// JSON.
func (r *Run) SetState(ctx context.Context, v any) error { return r.steps.setState(ctx, v) }

// Parents returns the items that the task requires, with what their functions returned.
func (r *Run) Parents(ctx context.Context) ([]registry.Parent, error) { return r.steps.parents(ctx) }

// Parent decodes into out what the function of a required task returned. key is the task's key in
// its graph. It is an error if there is no such task, or if it did not complete.
func (r *Run) Parent(ctx context.Context, key string, out any) error {
	all, err := r.Parents(ctx)
	if err != nil {
		return err
	}
	for _, p := range all {
		switch {
		case p.Key != key:
		case p.Status != registry.Completed:
			return fmt.Errorf("read what %s returned: it is %s: %s", key, p.Status, p.Error)
		default:
			if err := json.Unmarshal(p.Result, out); err != nil {
				return fmt.Errorf("decode what %s returned: %w", key, err)
			}
			return nil
		}
	}
	return fmt.Errorf("read what %s returned: the task does not require it", key)
}

// itemSteps are those of a claimed task.
type itemSteps struct{ item *base.Item }

func (s itemSteps) progress(title, unit string) Progress { return s.item.Progress(title, unit) }

func (s itemSteps) once(ctx context.Context, name string, out any, fn func(context.Context) (any, error)) error {
	return s.item.Once(ctx, name, out, fn)
}

func (s itemSteps) state(out any) (ok bool, err error) { return s.item.State(out) }

func (s itemSteps) setState(ctx context.Context, v any) error { return s.item.SetState(ctx, v) }

func (s itemSteps) parents(ctx context.Context) ([]registry.Parent, error) {
	return s.item.Parents(ctx)
}

// TestRun returns the run of a call without a Registry, see [Function.Test]. parents are what the
// task requires. Values of Once and the state last as long as the run.
func TestRun(parents ...registry.Parent) *Run {
	return &Run{ID: "test", Actor: "test", Attempt: 1, Log: slog.New(slog.DiscardHandler), steps: &memory{values: map[string]json.RawMessage{}, required: parents}}
}

// memory are the steps of a test.
type memory struct {
	mu       sync.Mutex
	values   map[string]json.RawMessage
	required []registry.Parent
}

func (*memory) progress(string, string) Progress { return unseen{} }

func (m *memory) once(ctx context.Context, name string, out any, fn func(context.Context) (any, error)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, made := m.values[name]; !made {
		v, err := fn(ctx)
		if err != nil {
			return err
		}
		if m.values[name], err = json.Marshal(v); err != nil {
			return fmt.Errorf("encode value %s: %w", name, err)
		}
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(m.values[name], out); err != nil {
		return fmt.Errorf("decode value %s: %w", name, err)
	}
	return nil
}

func (m *memory) state(out any) (ok bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value, ok := m.values[registry.ResultState]
	if !ok {
		return false, nil
	}
	if err := json.Unmarshal(value, out); err != nil {
		return true, fmt.Errorf("decode the state: %w", err)
	}
	return true, nil
}

func (m *memory) setState(_ context.Context, v any) error {
	value, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode the state: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values[registry.ResultState] = value
	return nil
}

func (m *memory) parents(context.Context) ([]registry.Parent, error) { return m.required, nil }

// unseen is progress that nobody looks at.
type unseen struct{}

func (unseen) Add(int64)      {}
func (unseen) Set(int64)      {}
func (unseen) SetStart(int64) {}
func (unseen) SetEnd(int64)   {}

// errNoInterim: functions keep what they need with Run.Once.
var errNoInterim = errors.New("functions have no interim data")

// nothing is the interim store of functions, which keep no interim data.
type nothing struct{}

func (nothing) Put(context.Context, interim.Attempt, map[string][]byte) error { return errNoInterim }

func (nothing) Get(context.Context, interim.Attempt, string) ([]byte, error) {
	return nil, interim.ErrNotFound
}

func (nothing) Each(context.Context, interim.Attempt, string, func(string, []byte) error) error {
	return nil
}

func (nothing) Count(context.Context, interim.Attempt, string) (int64, error) { return 0, nil }

func (nothing) Adopt(context.Context, interim.Attempt) (int64, error) { return 0, nil }

func (nothing) Drop(context.Context, string) error { return nil }

func (nothing) Items(context.Context) iter.Seq2[string, error] {
	return func(func(string, error) bool) {}
}

func (nothing) Close() error { return nil }
