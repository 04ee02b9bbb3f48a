package task_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/task"
)

// TestC31_AFunctionWithoutAQueue calls a function as its unit test would.
func TestC31_AFunctionWithoutAQueue(t *testing.T) {
	var m task.Mux
	sum := task.Handle(&m, "sum", func(ctx context.Context, run *task.Run, in order) (int, error) {
		var before int
		if err := run.Parent(ctx, "first", &before); err != nil {
			return 0, err
		}
		run.Progress("numbers", "numbers").Add(1)
		err := run.Once(ctx, "factor", &in.Number, func(context.Context) (any, error) { return in.Number * 2, nil })
		return before + in.Number, err
	})
	parent := registry.Parent{Key: "first", Status: registry.Completed, Result: []byte("40")}
	if got, err := sum.Test(t.Context(), task.TestRun(parent), order{Number: 1}); err != nil || got != 42 {
		t.Errorf("%d, %v; want 42", got, err)
	}
	parent.Status, parent.Error = registry.Failed, "no network"
	if _, err := sum.Test(t.Context(), task.TestRun(parent), order{Number: 1}); err == nil || !strings.Contains(err.Error(), "no network") {
		t.Errorf("%v, want the parent's error", err)
	}
	if _, err := sum.Test(t.Context(), task.TestRun(), order{Number: 1}); err == nil || !strings.Contains(err.Error(), "does not require") {
		t.Errorf("%v, want that there is no such parent", err)
	}
}

// TestC31_AGraphWithoutRunningIt looks at what a program builds.
func TestC31_AGraphWithoutRunningIt(t *testing.T) {
	var m task.Mux
	work := task.Handle(&m, "work", func(context.Context, *task.Run, string) (none, error) { panic("never called") })
	var g task.Graph
	task.Add(&g, "a", work, "1", task.After("c"))
	task.Add(&g, "b", work, "2", task.After("a"), task.AfterSettled("c"))
	task.Add(&g, "c", work, "3")
	if err := g.Check(); err != nil {
		t.Fatal(err)
	}
	if n := g.Nodes()[1]; n.Key != "b" || string(n.Task.Args) != `"2"` || len(n.Requires()) != 2 || n.Requires()[1].WaitFor != registry.WaitSettled {
		t.Errorf("node %+v", n)
	}
	for name, build := range map[string]func(*task.Graph){
		"used twice":      func(g *task.Graph) { task.Add(g, "a", work, "4") },
		"which is not in": func(g *task.Graph) { task.Add(g, "d", work, "4", task.After("nothing")) },
		"wait for each other": func(g *task.Graph) {
			task.Add(g, "d", work, "4", task.After("e"))
			task.Add(g, "e", work, "5", task.After("d"))
		},
		"is required twice": func(g *task.Graph) { task.Add(g, "d", work, "4", task.After("a", "a")) },
		"requires itself":   func(g *task.Graph) { task.Add(g, "d", work, "4", task.After("d")) },
	} {
		var bad task.Graph
		for _, n := range g.Nodes() {
			bad.AddNode(n)
		}
		build(&bad)
		if err := bad.Check(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %q", err, name)
		}
	}
}

// TestHandle_RefusesFaultsOfTheProgram expects a panic for each.
func TestHandle_RefusesFaultsOfTheProgram(t *testing.T) {
	for name, register := range map[string]func(*task.Mux){
		"is not a name":  func(m *task.Mux) { handle[none](m, "Bad Name") },
		"twice":          func(m *task.Mux) { handle[none](m, "a"); handle[none](m, "a") },
		"no JSON schema": func(m *task.Mux) { handle[chan int](m, "a") },
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, name) {
					t.Errorf("panicked with %q, want %q", got, name)
				}
			}()
			var m task.Mux
			register(&m)
		}()
	}
}

func handle[T any](m *task.Mux, name string) {
	task.Handle(m, name, func(context.Context, *task.Run, T) (none, error) { return none{}, errors.New("no") })
}
