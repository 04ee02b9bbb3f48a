package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/cli/clitest"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/graphview"
	"github.com/holdfast/holdfast/task"
	"github.com/holdfast/holdfast/task/remote"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/protocol"
)

// announce announces a function to the service in dir, as a program that serves it does.
func announce(t *testing.T, dir string, f registry.Function) {
	t.Helper()
	at, err := cli.New("test", strings.NewReader(""), io.Discard, io.Discard).ReadClientFile(dir)
	if err != nil {
		t.Fatal(err)
	}
	c := client.New(at.URL, at.Token, client.Options{})
	defer c.Close()
	p := protocol.NewClient(c)
	defer p.Close()
	if err := p.Announce(t.Context(), []registry.Function{f}); err != nil {
		t.Fatal(err)
	}
}

// TestTask: the commands submit tasks, show them and list them.
func TestTask(t *testing.T) {
	dir := up(t)
	holdfast(t, "task", "functions", "--dir", dir).Wants(t, exit.OK).Says(t, "no functions")
	holdfast(t, "task", "submit", "count", "--dir", dir).Wants(t, exit.NotFound).Says(t, `unknown function "count"`)
	announce(t, dir, registry.Function{Name: "count", Title: "Count files", Args: json.RawMessage(`{"type":"object"}`)})
	if out := holdfast(t, "task", "functions", "--dir", dir).Wants(t, exit.OK).Out; !strings.Contains(out, "Count files") {
		t.Error(out)
	}
	file := clitest.WriteFile(t, filepath.Join(t.TempDir(), "args.json"), `{"n": 2}`)
	first := strings.TrimSpace(holdfast(t, "task", "submit", "count", "--args", `{"n":1}`, "--idempotency-key", "k", "--dir", dir).Wants(t, exit.OK).Out)
	again := strings.TrimSpace(holdfast(t, "task", "submit", "count", "--args", `{"n":1}`, "--idempotency-key", "k", "--dir", dir).Wants(t, exit.OK).Out)
	if again != first {
		t.Errorf("the repeat made %s, not %s", again, first)
	}
	second := strings.TrimSpace(holdfast(t, "task", "submit", "count", "--args", "@"+file, "--title", "Two", "--subject", "ark:/99999/x", "--priority", "3",
		"--not-before", "2100-01-01T00:00:00Z", "--requires", first+":settled", "--dir", dir).Wants(t, exit.OK).Out)
	shown := holdfast(t, "task", "show", second, "--dir", dir).Wants(t, exit.OK).Out
	for _, want := range []string{"count", `{"n": 2}`, "Two", "ark:/99999/x", "parent:", first, "waits:"} {
		if !strings.Contains(shown, want) && !strings.Contains(strings.ReplaceAll(shown, `{"n":2}`, `{"n": 2}`), want) {
			t.Errorf("task show does not say %q:\n%s", want, shown)
		}
	}
	if list := holdfast(t, "task", "list", "Two", "--dir", dir).Wants(t, exit.OK).Out; !strings.Contains(list, second) || strings.Contains(list, first) {
		t.Errorf("task list Two:\n%s", list)
	}
	var it registry.WorkItem
	text := holdfastWith(t, `{"n":3}`, "task", "submit", "count", "--args", "-", "--json", "--dir", dir).Wants(t, exit.OK).Out
	if err := json.Unmarshal([]byte(text), &it); err != nil || it.Action != registry.Task {
		t.Errorf("%s: %v", text, err)
	}
	holdfast(t, "item", "cancel", it.ID, "--dir", dir).Wants(t, exit.OK)
	holdfast(t, "watch", it.ID, "-q", "--dir", dir).Wants(t, exit.Failed)
	holdfast(t, "task", "submit", "count", "--args", `[1]`, "--dir", dir).Wants(t, exit.Usage).Says(t, "do not fit")
	holdfast(t, "task", "submit", "count", "--args", `n=1`, "--dir", dir).Wants(t, exit.Usage).Says(t, "not JSON")
	holdfast(t, "task", "submit", "count", "--not-before", "soon", "--dir", dir).Wants(t, exit.Usage).Says(t, "--not-before soon")
	graph := clitest.WriteFile(t, filepath.Join(t.TempDir(), "graph.json"), `{"seal": true, "nodes": [{"key": "a", "task": {"function": "count", "args": {}}}]}`)
	holdfast(t, "graph", "prepare", graph, "--dir", dir).Wants(t, exit.OK).Says(t, "sealed")
}

// TestTaskCall: the command prints what the function returned, and its exit code is the outcome.
func TestTaskCall(t *testing.T) {
	dir := up(t)
	at, err := cli.New("test", strings.NewReader(""), io.Discard, io.Discard).ReadClientFile(dir)
	if err != nil {
		t.Fatal(err)
	}
	var m task.Mux
	task.Handle(&m, "double", func(_ context.Context, _ *task.Run, n int) (map[string]int, error) {
		if n < 0 {
			return nil, task.Fail(errors.New("it is below zero"))
		}
		return map[string]int{"doubled": 2 * n}, nil
	})
	r := remote.Open(at.URL, at.Token)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- task.Serve(ctx, r, &m, task.Options{}) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-ended, r.Close()); err != nil {
			t.Error(err)
		}
	})
	for !strings.Contains(holdfast(t, "task", "functions", "--dir", dir).Out, "double") {
		time.Sleep(10 * time.Millisecond)
	}
	if out := holdfast(t, "task", "call", "double", "--args", "21", "--idempotency-key", "k", "--dir", dir).Wants(t, exit.OK).Out; strings.ReplaceAll(out, " ", "") != "{\"doubled\":42}\n" {
		t.Errorf("it printed %q", out)
	}
	if out := holdfast(t, "task", "call", "double", "--args", "21", "--idempotency-key", "k", "--json", "--dir", dir).Wants(t, exit.OK).Out; !strings.Contains(out, `"allowed_acts"`) || !strings.Contains(out, "42") {
		t.Errorf("it printed %q", out)
	}
	if out := holdfast(t, "task", "call", "double", "--args", "-1", "--dir", dir).Wants(t, exit.Failed).Says(t, "below zero").Out; out != "" {
		t.Errorf("it printed %q", out)
	}
	holdfast(t, "task", "call", "triple", "--dir", dir).Wants(t, exit.NotFound)
}

// TestTaskGraph: the command draws graphs, and what is around an item, in three forms.
func TestTaskGraph(t *testing.T) {
	dir := up(t)
	announce(t, dir, registry.Function{Name: "count"})
	file := clitest.WriteFile(t, filepath.Join(t.TempDir(), "graph.json"), `{"seal": true, "nodes": [
		{"key": "first", "task": {"function": "count", "title": "Count them"}},
		{"key": "left", "task": {"function": "count", "requires": [{"key": "first"}]}},
		{"key": "right", "task": {"function": "count", "requires": [{"key": "first"}]}},
		{"key": "last", "task": {"function": "count", "requires": [{"key": "left"}, {"key": "right", "wait_for": "settled"}]}}]}`)
	id := strings.TrimSpace(holdfast(t, "graph", "prepare", file, "--dir", dir).Wants(t, exit.OK).Out)
	tree := holdfast(t, "task", "graph", id, "--dir", dir).Wants(t, exit.OK).Out
	for _, want := range []string{"nodes 4: 4 Pending", "… first Count them", "├─ … left", "waits for left, right", "↑ last"} {
		if !strings.Contains(tree, want) {
			t.Errorf("%q is missing:\n%s", want, tree)
		}
	}
	if out := holdfast(t, "task", "graph", id, "--limit", "2", "--dir", dir).Wants(t, exit.OK).Out; !strings.Contains(out, "levels 1 to 3") || !strings.Contains(out, "4 nodes are not shown") {
		t.Errorf("the summary says\n%s", out)
	}
	if out := holdfast(t, "task", "graph", id, "--dot", "--dir", dir).Wants(t, exit.OK).Out; !strings.HasPrefix(out, "digraph") || !strings.Contains(out, "dashed") {
		t.Errorf("--dot printed\n%s", out)
	}
	var v graphview.View
	if err := json.Unmarshal([]byte(holdfast(t, "task", "graph", id, "--json", "--dir", dir).Wants(t, exit.OK).Out), &v); err != nil || len(v.Nodes) != 4 || len(v.Edges) != 4 || !v.Sealed {
		t.Errorf("--json printed %+v %v", v, err)
	}
	left := v.Nodes[slices.IndexFunc(v.Nodes, func(n registry.GraphNode) bool { return n.Key == "left" })]
	if out := holdfast(t, "task", "graph", left.ID, "--dir", dir).Wants(t, exit.OK).Out; strings.Contains(out, "… right") || !strings.Contains(out, "… last") {
		t.Errorf("around left:\n%s", out)
	}
	holdfast(t, "task", "graph", id, "--dot", "--json", "--dir", dir).Wants(t, exit.Usage)
	holdfast(t, "task", "graph", "01a1ff7e-970e-7b87-bc77-ce185e182091", "--dir", dir).Wants(t, exit.NotFound)
}

// TestTask_Wait: the exit code of `task submit --wait` is the outcome, and `task show --json` prints
// what the text shows.
func TestTask_Wait(t *testing.T) {
	dir := up(t)
	at, err := cli.New("test", strings.NewReader(""), io.Discard, io.Discard).ReadClientFile(dir)
	if err != nil {
		t.Fatal(err)
	}
	c := client.New(at.URL, at.Token, client.Options{})
	defer c.Close()
	p := protocol.NewClient(c)
	defer p.Close()
	var m task.Mux
	task.Handle(&m, "work", func(ctx context.Context, run *task.Run, good bool) (string, error) {
		run.Log.InfoContext(ctx, "at work", "good", good)
		if !good {
			return "", task.Fail(errors.New("the tape is gone"))
		}
		return "done", nil
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- task.Serve(ctx, p, &m, task.Options{}) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	for holdfast(t, "task", "functions", "--json", "--dir", dir).Wants(t, exit.OK); !strings.Contains(holdfast(t, "task", "functions", "--json", "--dir", dir).Out, "work"); {
		if t.Context().Err() != nil {
			t.Fatal("the functions were not announced")
		}
	}
	good := holdfast(t, "task", "submit", "work", "--args", "true", "--wait", "--dir", dir).Wants(t, exit.OK).Out
	if shown := holdfast(t, "task", "submit", "work", "--args", "true", "--wait", "--dir", dir).Wants(t, exit.OK).Err; !strings.Contains(shown, "Completed") || strings.Contains(shown, "files") {
		t.Errorf("it showed as progress\n%s", shown)
	}
	bad := holdfast(t, "task", "submit", "work", "--args", "false", "--wait", "--dir", dir).Wants(t, exit.Failed).Out
	if !strings.Contains(good, "FUNCTION") || !strings.Contains(good, `"done"`) || strings.Contains(good, "ARK") || !strings.Contains(bad, "the tape is gone") {
		t.Errorf("it printed\n%s\nand\n%s", good, bad)
	}
	id := strings.Fields(good)[0]
	var one registry.WorkItem
	lines := strings.Split(strings.TrimSpace(holdfast(t, "task", "submit", "work", "--args", "true", "--wait", "--json", "--dir", dir).Wants(t, exit.OK).Out), "\n")
	line := lines[len(lines)-1] // after those of the progress
	if err := json.Unmarshal([]byte(line), &one); err != nil || one.Status != registry.Completed || string(one.Results[registry.ResultReturned]) != `"done"` {
		t.Errorf("%v: it printed %s", err, line)
	}
	var shown struct {
		ID       string
		Attempts []registry.Attempt
		Log      []registry.LogLine
	}
	text := holdfast(t, "task", "show", id, "--json", "--dir", dir).Wants(t, exit.OK).Out
	if err := json.Unmarshal([]byte(text), &shown); err != nil || shown.ID != id || len(shown.Attempts) != 1 || len(shown.Log) != 1 || shown.Log[0].Text != "at work good=true" {
		t.Errorf("%v: %+v of %s", err, shown, text)
	}
	if out := holdfast(t, "task", "show", id, "--dir", dir).Wants(t, exit.OK).Out; !strings.Contains(out, "at work good=true") {
		t.Error(out)
	}
	if out := holdfast(t, "item", "log", id, "--dir", dir).Wants(t, exit.OK).Out; !strings.Contains(out, "at work good=true") {
		t.Error(out)
	}
}

// TestTaskFailures: one command lists failed tasks by function and cause with their number, and one
// requeues them all, after it has shown the number.
func TestTaskFailures(t *testing.T) {
	dir := up(t)
	at, err := cli.New("test", strings.NewReader(""), io.Discard, io.Discard).ReadClientFile(dir)
	if err != nil {
		t.Fatal(err)
	}
	announce(t, dir, registry.Function{Name: "count"})
	c := client.New(at.URL, at.Token, client.Options{})
	defer c.Close()
	p := protocol.NewClient(c)
	defer p.Close()
	for n := range 2 {
		holdfast(t, "task", "submit", "count", "--dir", dir).Wants(t, exit.OK)
		claim, err := p.Claim(t.Context(), registry.ClaimRequest{RequestID: string(rune('a' + n)), Stage: "run:count", Worker: "w", Lease: time.Minute, MaxAttempts: 5, StuckAfter: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Settle(t.Context(), registry.Settlement{Lease: claim.Lease, Outcome: registry.OutcomeFailed, Error: "the scanner is broken", Class: registry.SystemFault}); err != nil {
			t.Fatal(err)
		}
	}
	if out := holdfast(t, "item", "failures", "action:task", "--dir", dir).Wants(t, exit.OK).Out; !strings.Contains(out, "run:count") || !strings.Contains(out, "the scanner is broken") || !strings.Contains(out, "2") {
		t.Errorf("item failures:\n%s", out)
	}
	holdfast(t, "item", "requeue", "--match", "stage:run:count status:failed", "--dir", dir).Says(t, "2 items")
	holdfast(t, "item", "requeue", "--match", "stage:run:count status:failed", "--yes", "--dir", dir).Wants(t, exit.OK)
	// The act runs in the background.
	for strings.Contains(holdfast(t, "task", "list", "status:failed", "--dir", dir).Out, "count") {
		time.Sleep(10 * time.Millisecond)
	}
}
