package main

import (
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/cmd/holdfast/cli/clitest"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/registry"
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
