package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestGraph prepares submissions that wait for each other, with a kill before they are sealed. Each
// starts when what it requires has completed.
func TestGraph(t *testing.T) {
	t.Parallel()
	source := serveAny(t, 1)
	h := up(t)
	write := func(text string) string {
		name := filepath.Join(t.TempDir(), "graph.json")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}

	r := h.must(0, "graph", "prepare", write(`{"nodes": [
		{"key": "hen", "payload": "`+source+`/hen.txt", "requires": [{"key": "egg"}]},
		{"key": "egg", "payload": "`+source+`/egg.txt", "requires": [{"key": "hen"}]}]}`))
	round := strings.TrimSpace(r.stdout)
	says(t, "a graph that goes round", h.must(8, "graph", "seal", round).stderr, "hen -> egg -> hen")

	r = h.must(0, "graph", "prepare", write(`{"nodes": [
		{"key": "scans", "payload": "`+source+`/scans.txt"},
		{"key": "texts", "payload": "`+source+`/texts.txt", "requires": [{"key": "scans"}]},
		{"key": "index", "payload": "`+source+`/index.txt", "requires": [{"key": "texts"}, {"key": "scans"}]}]}`), "--idempotency-key", "graph")
	id := strings.TrimSpace(r.stdout)
	if err := h.signal(syscall.SIGKILL); err == nil {
		t.Fatal("holdfast ended cleanly when it was killed")
	}
	h.start()
	items := map[string]item{}
	show := func() {
		t.Helper()
		g := rows[struct {
			Items []item            `json:"items"`
			Keys  map[string]string `json:"keys"`
		}](h, "graph", "show", id)[0]
		for _, it := range g.Items {
			items[g.Keys[it.ID]] = it
		}
	}
	show()
	for _, key := range []string{"scans", "texts", "index"} {
		if items[key].State != "Prepare" {
			t.Errorf("before the seal %s is %+v", key, items[key])
		}
	}
	h.must(0, "graph", "seal", id)
	h.must(0, "graph", "seal", id)
	after := h.begin(source+"/after.txt", "--after", items["index"].ID)
	w := rows[why](h, "item", "why", items["index"].ID)[0]
	if w.Reason == "blocked" && h.item(items["texts"].ID).FinishedAt == nil { // nor was it when that was asked
		says(t, "why", w.Sentence, items["texts"].ID)
	}
	h.watch(items["index"].ID)
	h.watch(after)
	show()
	created := func(batch string) time.Time { return h.job(batch).CreatedAt }
	order := []string{items["scans"].ID, items["texts"].ID, items["index"].ID, after}
	for i, batch := range order[1:] {
		if before := h.item(order[i]); before.FinishedAt == nil || created(batch).Before(*before.FinishedAt) {
			t.Errorf("item %d started before what it requires had completed", i+1)
		}
	}
	if n := len(h.list("state:prepare")); n != 2 {
		t.Errorf("%d items of the graph that goes round are prepared, want 2", n)
	}
	h.must(0, "item", "abort", "--match", "graph:"+round, "--yes")
	h.until("they are aborted", func() bool { return len(h.list("graph:"+round, "state:aborted")) == 2 })
	if !json.Valid([]byte(h.must(0, "graph", "show", round, "--json").stdout)) {
		t.Error("graph show --json prints no JSON")
	}
}
