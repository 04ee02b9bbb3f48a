package ui_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// task is a node of a graph that calls a function.
func taskNode(key string, requires ...string) registry.Node {
	n := registry.Node{Key: key, Task: &registry.NewTask{Function: "convert", Args: json.RawMessage(`{"page": "<b>"}`), Title: "step " + key}}
	for _, r := range requires {
		n.Task.Requires = append(n.Task.Requires, registry.Requirement{Key: r})
	}
	return n
}

// canGraph is the graph of the proposal, half done: 1 and 2 have completed, 3 has failed, 4 runs.
func (s *site) canGraph(t testing.TB) registry.PreparedGraph {
	t.Helper()
	must(t, s.store.Announce(t.Context(), []registry.Function{{Name: "convert"}}))
	first := taskNode("1")
	first.Task.Title = hostile
	p, err := s.store.Prepare(t.Context(), registry.Graph{Seal: true, Nodes: []registry.Node{
		first, taskNode("2", "1"), taskNode("3", "1"), taskNode("4", "1"), taskNode("5", "2"), taskNode("6", "3"), taskNode("7", "5"), taskNode("8", "6", "7", "4"),
	}})
	must(t, err)
	settle := func(o registry.Settlement) {
		o.Lease = s.claim(t, "run:convert")
		_, err := s.store.Settle(t.Context(), o)
		must(t, err)
	}
	settle(registry.Settlement{Outcome: registry.OutcomeDone, Results: map[string]json.RawMessage{registry.ResultReturned: json.RawMessage(`{"pages": 7}`)}})
	settle(registry.Settlement{Outcome: registry.OutcomeDone})
	settle(registry.Settlement{Outcome: registry.OutcomeFailed, Error: "no such file " + hostile, Class: registry.ContentFault})
	runs := s.claim(t, "run:convert")
	_, err = s.store.Renew(t.Context(), registry.RenewRequest{Worker: registry.WorkerInfo{ID: "w <b>1</b>"}, Lease: time.Minute, Beats: []registry.Beat{
		{Lease: runs, DoneBytes: -1, DoneFiles: -1, Progress: []registry.Progress{{Title: "pages", Unit: "pages", Position: 40, End: 100}}},
	}})
	must(t, err)
	return p
}

// TestC25_GraphPage: the page draws a graph, says of each node how far it is and what keeps it, and
// has its acts; it draws what is around an item, too.
func TestC25_GraphPage(t *testing.T) {
	acting := withClerk(t)
	reading := *acting.Server
	reading.Token = reading.TokenOf(t, "a reader", registry.RoleViewer)
	s := siteOf(&reading)
	g := s.canGraph(t)
	page := acting.get(t, "/graphs/"+g.GraphID, http.StatusOK)
	wantTame(t, "the graph", page)
	for _, want := range []string{`class="wide graph"`, "40\u202f%", "awaits repair: no such file", "holds up 2", "3 (Failed)", "40 of 100 pages", "The failed item:", "/items/" + g.Items["3"] + "/acts", `sse-connect="/live?page=`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page of the graph has no %q:\n%s", want, page)
		}
	}
	if strings.Count(page, `class="node `) != 8 || strings.Count(page, `class="edge`) != 9 {
		t.Errorf("the page draws %d nodes and %d edges", strings.Count(page, `class="node `), strings.Count(page, `class="edge`))
	}
	if folder := os.Getenv("HOLDFAST_PAGES"); folder != "" {
		must(t, os.WriteFile(filepath.Join(folder, "graph.html"), []byte(page), 0o600))
	}
	if page := s.get(t, "/graphs/"+g.GraphID, http.StatusOK); strings.Contains(page, "/acts") || strings.Contains(page, "Requeue") {
		t.Error("readers get buttons")
	}
	page = s.get(t, "/items/"+g.Items["5"]+"/graph", http.StatusOK)
	if strings.Count(page, `class="node `) != 5 || !strings.Contains(page, "Around") {
		t.Errorf("around 5 are other nodes than 1, 2, 5, 7, 8:\n%s", page)
	}
	page = s.get(t, "/items/"+g.Items["1"], http.StatusOK)
	for _, want := range []string{"convert", "&lt;b&gt;", "&#34;pages&#34;: 7", "/graphs/" + g.GraphID} {
		if !strings.Contains(page, want) {
			t.Errorf("the page of a task has no %q:\n%s", want, page)
		}
	}
	if page := s.get(t, "/items/"+g.Items["8"], http.StatusOK); strings.Count(page, "<dt>Requires</dt>") != 3 {
		t.Errorf("the page of 8 does not name its three parents:\n%s", page)
	}
	match := "graph:" + g.GraphID + " status:failed"
	form := acting.get(t, "/items/act?"+url.Values{"act": {"requeue"}, "all": {"yes"}, "q": {match}}.Encode(), http.StatusOK)
	if !strings.Contains(form, "Requeue: 1 item") {
		t.Error(form)
	}
	// Every act for failed items starts a bulk item; the form asks again for what it cannot do without.
	for _, c := range []struct {
		form   url.Values
		status int
	}{
		{url.Values{"act": {"priority"}, "priority": {"-3"}}, http.StatusSeeOther},
		{url.Values{"act": {"priority"}, "priority": {"soon"}}, http.StatusUnprocessableEntity},
		{url.Values{"act": {"hold"}}, http.StatusUnprocessableEntity},
		{url.Values{"act": {"hold"}, "reason": {"look at it"}}, http.StatusSeeOther},
		{url.Values{"act": {"abort"}}, http.StatusUnprocessableEntity},
		{url.Values{"act": {"abort"}, "confirm": {"yes"}}, http.StatusSeeOther},
		{url.Values{"act": {"purge"}}, http.StatusBadRequest},
	} {
		c.form.Set("q", match)
		if w := acting.post(t, "/items/act", c.form); w.Code != c.status {
			t.Errorf("%v: %d, want %d", c.form, w.Code, c.status)
		}
	}
	bulk, err := s.store.Items(t.Context(), registry.ItemQuery{Action: registry.Bulk})
	must(t, err)
	if len(bulk.Rows) != 3 {
		t.Errorf("%d bulk items, want 3", len(bulk.Rows))
	}
	s.get(t, "/graphs/nothing", http.StatusNotFound)
	s.get(t, "/items/nothing/graph", http.StatusNotFound)
}

// TestC25_LargeGraphPage: a graph that is too large to draw is summed up, and its failed nodes are
// listed.
func TestC25_LargeGraphPage(t *testing.T) {
	s := newSite(t)
	must(t, s.store.Announce(t.Context(), []registry.Function{{Name: "convert"}}))
	var nodes []registry.Node
	for i := range 300 {
		if i == 0 {
			nodes = append(nodes, taskNode("0"))
		} else {
			nodes = append(nodes, taskNode(fmt.Sprint(i), "0"))
		}
	}
	g, err := s.store.Prepare(t.Context(), registry.Graph{Nodes: nodes, Seal: true})
	must(t, err)
	_, err = s.store.Settle(t.Context(), registry.Settlement{Lease: s.claim(t, "run:convert"), Outcome: registry.OutcomeFailed, Error: "broken", Class: registry.ContentFault})
	must(t, err)
	page := s.get(t, "/graphs/"+g.GraphID, http.StatusOK)
	for _, want := range []string{"299 Pending", "holds up 299", "299 items not listed", "too many items to draw"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, `class="wide graph"`) {
		t.Error("it is drawn")
	}
}
