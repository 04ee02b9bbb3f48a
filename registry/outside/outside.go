// Package outside judges the outside steps of profiles, and makes the arguments of their tasks.
package outside

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/schema"
)

// Fault is a fault of a profile's outside steps. It is a registry.ErrInvalid.
type Fault struct {
	Path    string // in the profile: steps[0].function
	Problem string
	Found   string // "": not shown
}

// Error names the place and the fault.
func (f *Fault) Error() string { return f.Path + ": " + f.Problem }

// Unwrap makes it an ErrInvalid.
func (f *Fault) Unwrap() error { return registry.ErrInvalid }

// Faults returns all faults of a profile's outside steps, in their order. known are the announced
// functions. A function must be announced before a profile can name it: only then is it known
// whether it takes the arguments, and a misspelt name would stop jobs instead of the edit.
func Faults(p registry.Profile, known []registry.Function) (faults []*Fault) {
	if n := len(p.Steps); n > registry.MostSteps {
		return []*Fault{{Path: "steps", Problem: fmt.Sprintf("%d steps; a profile has %d at most", n, registry.MostSteps)}}
	}
	ingest, _ := registry.RouteOf(registry.Ingest)
	c := checker{ingest: ingest, route: ingest.With(p.Optional()), known: map[string]registry.Function{}}
	for _, f := range known {
		c.known[f.Name] = f
		c.names = append(c.names, f.Name)
	}
	for i, s := range p.Steps {
		c.at = fmt.Sprintf("steps[%d]", i)
		c.stage(s)
		c.function(s, c.arguments(s))
	}
	return c.faults
}

type checker struct {
	ingest, route registry.Route // of all jobs, and of the collection's
	known         map[string]registry.Function
	names         []string
	at            string
	faults        []*Fault
}

func (c *checker) fault(field, found, problem string, args ...any) {
	c.faults = append(c.faults, &Fault{Path: c.at + "." + field, Problem: fmt.Sprintf(problem, args...), Found: found})
}

// stage checks where a step runs.
func (c *checker) stage(s registry.OutsideStep) {
	_, known := c.ingest.Step(s.After)
	_, taken := c.route.Step(s.After)
	_, more := c.route.Next(s.After)
	switch {
	case !known:
		c.fault("after", string(s.After), "jobs have no such stage; use one of %s", stages(c.route))
	case !taken:
		c.fault("after", string(s.After), "jobs of this collection do not take the stage; use one of %s", stages(c.route))
	case s.Blocking && !more:
		c.fault("blocking", "true", "after %s, the last stage, there is none left that could wait; leave blocking out, or name an earlier stage", s.After)
	}
	if s.On != "" && s.On != registry.OnSuccess && s.On != registry.OnAlways {
		c.fault("on", string(s.On), "it can be %s or %s", registry.OnSuccess, registry.OnAlways)
	}
}

func stages(r registry.Route) string {
	names := make([]string, len(r.Steps))
	for i, s := range r.Steps {
		names[i] = string(s.Stage)
	}
	return strings.Join(names, ", ")
}

// arguments checks a step's own arguments by themselves.
func (c *checker) arguments(s registry.OutsideStep) (ok bool) {
	if len(s.Args) > registry.MostStepArgs {
		c.fault("args", "", "%s; at most %s are allowed", registry.SizeText(int64(len(s.Args))), registry.SizeText(registry.MostStepArgs))
		return false
	}
	if len(s.Args) == 0 {
		return true
	}
	var args map[string]json.RawMessage
	if err := json.Unmarshal(s.Args, &args); err != nil || args == nil {
		c.fault("args", "", "must be an object: names with values")
		return false
	}
	if _, taken := args[registry.StepArgument]; taken {
		c.fault("args."+registry.StepArgument, "", "Holdfast describes the job under this name; use another")
		return false
	}
	return true
}

// function checks that there is the function, and that it takes the arguments unless they are at
// fault themselves.
func (c *checker) function(s registry.OutsideStep, judge bool) {
	f, ok := c.known[s.Function]
	switch err := registry.CheckFunctionName(s.Function); {
	case err != nil:
		c.fault("function", s.Function, "%s", err)
		return
	case !ok:
		c.fault("function", s.Function, "%s", &registry.UnknownFunctionError{Function: s.Function, Known: c.names})
		return
	case !judge:
		return
	}
	takes, err := schema.Read(f.Args)
	if err != nil {
		c.fault("function", s.Function, "its schema cannot be read: %s; announce it again", err)
		return
	}
	args, err := Arguments(s, registry.StepJob{
		ID: "0199c2a4-4a6e-7bd3-a1bb-3d6d0c6f5b1e", Batch: "0199c2a4-4a6e-7bd3-a1bb-3d6d0c6f5b1d", Collection: "example", Name: "example",
		After: s.After, ARK: "ark:/99999/fk4example", Version: 1, Files: 1, Bytes: 1,
	})
	if err == nil {
		err = takes.Fits(args)
	}
	if err != nil {
		c.fault("args", "", "function %s does not take them, with the description of a job as %s: %s", s.Function, registry.StepArgument, err)
	}
}

// Arguments returns the arguments of a task that runs a step for a job.
func Arguments(s registry.OutsideStep, job registry.StepJob) (json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	if len(s.Args) > 0 {
		if err := json.Unmarshal(s.Args, &all); err != nil {
			return nil, fmt.Errorf("decode the arguments of step %s: %w", s.Function, err)
		}
	}
	about, err := json.Marshal(job)
	if err != nil {
		return nil, fmt.Errorf("describe job %s: %w", job.ID, err)
	}
	all[registry.StepArgument] = about
	text, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("encode the arguments of step %s: %w", s.Function, err)
	}
	return text, nil
}
