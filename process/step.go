package process

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/task"
)

// Step is one step of a process, as its function sees it. Its methods must not be called
// concurrently.
type Step[S any] struct {
	registry.ProcessKey

	ItemID  string            // of the step
	Kind    registry.StepKind // what started it
	Actor   string            // who called; "registry" for a timer
	Attempt int64             // counts the attempts of the step, from 1
	// Process is the process as it was before the step. Its history is the range that the call or
	// the namespace asks for.
	Process registry.ProcessInfo
	// State is the process's state; the zero value at first. What it is when the function returns
	// nil becomes the new state.
	State S

	args, context json.RawMessage
	result        registry.StepResult
	errs          []error
	work          working
}

// working is what a step can do to its item.
type working interface {
	Once(ctx context.Context, name string, out any, fn func(context.Context) (any, error)) error
}

// input is what a function gets.
type input struct {
	spec    registry.StepSpec
	item    string
	actor   string
	attempt int64
	process registry.ProcessInfo
	work    working
}

func newStep[S any](in input) (*Step[S], error) {
	s := &Step[S]{
		ProcessKey: in.spec.ProcessKey, ItemID: in.item, Kind: in.spec.Kind, Actor: in.actor, Attempt: in.attempt, Process: in.process,
		args: in.spec.Args, context: in.spec.Context, work: in.work,
	}
	if len(in.process.State) > 0 {
		if err := json.Unmarshal(in.process.State, &s.State); err != nil {
			return nil, task.Fail(fmt.Errorf("decode the state of process %s: %w", in.spec.ProcessKey, err))
		}
	}
	return s, nil
}

// Args decodes into out what the caller passed. A timer has no arguments: out stays as it is.
func (s *Step[S]) Args(out any) error {
	if len(s.args) == 0 {
		return nil
	}
	if err := json.Unmarshal(s.args, out); err != nil {
		return task.Invalid(fmt.Errorf("decode the arguments of the %s of process %s: %w", s.Kind, s.ProcessKey, err))
	}
	return nil
}

// Context returns the JSON that the step was given to hand on; the timer that it sets gets it.
func (s *Step[S]) Context() json.RawMessage { return s.context }

// Once makes a value that must not be made twice, as [task.Run.Once] does.
func (s *Step[S]) Once(ctx context.Context, name string, out any, fn func(context.Context) (any, error)) error {
	return s.work.Once(ctx, registry.OncePrefix+name, out, fn)
}

// Event appends an event to the history of the process. The payload is kept as JSON.
func (s *Step[S]) Event(payload any) {
	s.result.Events = append(s.result.Events, registry.NewProcessEvent{Payload: s.encode("an event", payload)})
}

// Respond sets what the caller gets. It is kept as JSON.
func (s *Step[S]) Respond(v any) { s.result.Response = s.encode("the response", v) }

// SetMetadata replaces the metadata of the process, which people see. It is kept as JSON.
func (s *Step[S]) SetMetadata(v any) { s.result.Metadata = s.encode("the metadata", v) }

// Continue sets the timer of the process, in place of the one it has. A time that is not later than
// now continues at once, after the calls that wait.
func (s *Step[S]) Continue(at time.Time) {
	s.result.Then = registry.StepThen{Do: registry.ThenContinue, At: at}
}

// ContinueIn is Continue after a time from now.
func (s *Step[S]) ContinueIn(d time.Duration) { s.Continue(time.Now().Add(d)) }

// Suspend removes the timer: the process waits for calls.
func (s *Step[S]) Suspend() { s.result.Then = registry.StepThen{Do: registry.ThenSuspend} }

// Done ends the process. It takes no more calls; those that wait are cancelled. It can be read until
// somebody removes it.
func (s *Step[S]) Done() { s.result.Then = registry.StepThen{Do: registry.ThenDone} }

// RemoveAt removes the process at a time, unless a later step sets another timer.
func (s *Step[S]) RemoveAt(at time.Time) {
	s.result.Then = registry.StepThen{Do: registry.ThenRemove, At: at}
}

// Remove removes the process, with its history, when the step ends.
func (s *Step[S]) Remove() { s.result.Then = registry.StepThen{Do: registry.ThenRemove} }

// Result returns what the step makes of its process so far.
func (s *Step[S]) Result() (registry.StepResult, error) {
	s.result.State = s.encode("the state", s.State)
	if len(s.errs) > 0 {
		return registry.StepResult{}, task.Fail(s.errs[0])
	}
	return s.result, nil
}

func (s *Step[S]) encode(what string, v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		s.errs = append(s.errs, fmt.Errorf("encode %s of process %s: %w", what, s.ProcessKey, err))
	}
	return text
}

// Test returns a step without a Registry, for unit tests of a function: the test calls the function
// with it and looks at [Step.Result]. p is the process before it; args are encoded as JSON.
func Test[S any](kind registry.StepKind, p registry.ProcessInfo, args any) (*Step[S], error) {
	text, err := json.Marshal(args)
	if err != nil {
		return nil, fmt.Errorf("encode the arguments: %w", err)
	}
	return newStep[S](input{
		spec: registry.StepSpec{ProcessKey: p.ProcessKey, Kind: kind, Args: text}, item: "test", actor: "test", attempt: 1, process: p, work: task.TestRun(),
	})
}
