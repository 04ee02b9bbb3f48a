package process_test

import (
	"encoding/json"
	"testing"

	"github.com/holdfast/holdfast/process"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/task"
)

// TestStep_WithoutARegistry calls a function as its unit test would.
func TestStep_WithoutARegistry(t *testing.T) {
	p := registry.ProcessInfo{ProcessKey: key, State: json.RawMessage(`{"steps":["init"]}`)}
	s, err := process.Test[state](registry.StepCall, p, 5)
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := s.Args(&n); err != nil || n != 5 || len(s.State.Steps) != 1 {
		t.Errorf("step %+v, %v", s, err)
	}
	s.State.Steps = append(s.State.Steps, "call")
	s.Event(n)
	s.Respond("yes")
	s.Suspend()
	r, err := s.Result()
	if err != nil || string(r.Response) != `"yes"` || string(r.State) != `{"steps":["init","call"]}` || len(r.Events) != 1 || r.Then.Do != registry.ThenSuspend {
		t.Errorf("result %+v, %v", r, err)
	}
	var text string
	if err := s.Args(&text); err == nil {
		t.Error("a number was decoded into a text")
	}
	s.Event(func() {})
	if _, err := s.Result(); err == nil {
		t.Error("a function was encoded")
	}
}

// TestHandle_RefusesFaultsOfTheProgram expects a panic for each.
func TestHandle_RefusesFaultsOfTheProgram(t *testing.T) {
	for _, names := range [][]string{{"Bad Name"}, {"a", "a"}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%v: no panic", names)
				}
			}()
			var m task.Mux
			for _, name := range names {
				process.Handle(&m, name, quiet)
			}
		}()
	}
}
