package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/cmd/holdfast/cli/clitest"
	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/registry"
)

// TestGraph: files become preserved objects in the order of the graph.
func TestGraph(t *testing.T) {
	dir := up(t)
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, err := w.Write([]byte("served")); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(served.Close)
	folder := t.TempDir()
	a := clitest.WriteFile(t, filepath.Join(folder, "a.txt"), "first")
	file := clitest.WriteFile(t, filepath.Join(folder, "graph.json"), `{"nodes": [
		{"key": "a", "payload": "`+a+`", "type": "file"},
		{"key": "b", "payload": "`+served.URL+`/b.txt", "type": "file", "requires": [{"key": "a"}]}]}`)

	id := strings.TrimSpace(holdfast(t, "graph", "prepare", file, "--dir", dir).Wants(t, exit.OK).Says(t, "prepared 2", "graph seal").Out)
	shown := holdfast(t, "graph", "show", id, "--dir", dir).Wants(t, exit.OK).Out
	for _, want := range []string{"sealed:  no", "2 Prepare", "KEY", "WAITS FOR"} {
		if !strings.Contains(shown, want) {
			t.Errorf("graph show does not say %q:\n%s", want, shown)
		}
	}
	holdfast(t, "graph", "seal", id, "--dir", dir).Wants(t, exit.OK).Says(t, "sealed "+id)

	var g registry.GraphView
	if err := json.Unmarshal([]byte(holdfast(t, "graph", "show", id, "--json", "--dir", dir).Wants(t, exit.OK).Out), &g); err != nil {
		t.Fatal(err)
	}
	ids := map[string]string{}
	for item, key := range g.Keys {
		ids[key] = item
	}
	later := strings.TrimSpace(holdfast(t, "submit", a, "--force", "--title", "later", "--after", ids["b"]+":settled,"+ids["a"], "--dir", dir).Wants(t, exit.OK).Out)
	holdfast(t, "watch", later, "-q", "--dir", dir).Wants(t, exit.OK)
	if err := json.Unmarshal([]byte(holdfast(t, "graph", "show", id, "--json", "--dir", dir).Wants(t, exit.OK).Out), &g); err != nil {
		t.Fatal(err)
	}
	if !g.Sealed || len(g.Items) != 2 || g.Items[0].Status != registry.Completed || g.Items[1].Status != registry.Completed {
		t.Errorf("graph: %+v", g)
	}
	if g.Edges[0].SatisfiedAt == nil || g.Items[1].FinishedAt.Before(*g.Edges[0].SatisfiedAt) {
		t.Errorf("%s ended at %v, what it requires at %v", g.Items[1].ID, g.Items[1].FinishedAt, g.Edges[0].SatisfiedAt)
	}

	clitest.WriteFile(t, file, `{"nodes": [{"key": "a", "url": "`+served.URL+`", "requires": [{"key": "b"}]}, {"key": "b", "url": "`+served.URL+`", "requires": [{"key": "a"}]}]}`)
	cycle := holdfast(t, "graph", "prepare", file, "--seal", "--dir", dir).Wants(t, exit.Refused).Says(t, "cycle: ", " -> ", "abort one of them")
	shown = holdfast(t, "graph", "show", strings.TrimSpace(cycle.Out), "--dir", dir).Wants(t, exit.OK).Out
	if !strings.Contains(shown, "2 Prepare") {
		t.Errorf("a refused seal let something go:\n%s", shown)
	}
	holdfast(t, "graph", "seal", "nothing", "--dir", dir).Wants(t, exit.NotFound)
}
