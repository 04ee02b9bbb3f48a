package graphview_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/graphview"
)

// parts is a graph in pages of two nodes.
type parts struct {
	nodes []registry.GraphNode
	edges []registry.Edge
	page  int
}

func (s parts) GraphNodes(_ context.Context, id, after string, _ int) (p registry.GraphPart, err error) {
	start := 0
	for i, n := range s.nodes {
		if n.Key == after {
			start = i + 1
		}
	}
	end := min(start+s.page, len(s.nodes))
	p = registry.GraphPart{GraphID: id, Sealed: true, Nodes: s.nodes[start:end]}
	if end < len(s.nodes) {
		p.Next = s.nodes[end-1].Key
	} else {
		p.Edges = s.edges
	}
	return p, nil
}

func (s parts) Around(context.Context, string, int) (registry.GraphPart, error) {
	return registry.GraphPart{Nodes: s.nodes, Edges: s.edges, More: true}, nil
}

func node(key string, status registry.Status, state registry.State) registry.GraphNode {
	return registry.GraphNode{Key: key, WorkItem: registry.WorkItem{ID: "i" + key, Name: "step " + key, Status: status, State: state}}
}

func edge(item, requires string, satisfied bool) registry.Edge {
	e := registry.Edge{ItemID: "i" + item, RequiresID: "i" + requires, WaitFor: registry.WaitSuccess}
	if satisfied {
		at := time.Unix(1, 0)
		e.SatisfiedAt = &at
	}
	return e
}

// can is the graph of the proposal, half done.
func can() parts {
	failed := node("3", registry.Failed, registry.StateFailed)
	failed.Note = "exit status 2\x1b[31m \"quoted\""
	runs := node("5", registry.Running, registry.StateProcessing)
	runs.Progress = []registry.Progress{{Title: "pages", Unit: "pages", Position: 40, End: 100}}
	return parts{page: 2, nodes: []registry.GraphNode{
		node("1", registry.Completed, registry.StateCompleted), node("2", registry.Completed, registry.StateCompleted), failed,
		node("4", registry.Completed, registry.StateCompleted), runs, node("6", registry.Pending, registry.StatePending),
		node("7", registry.Pending, registry.StatePending), node("8", registry.Pending, registry.StatePending),
	}, edges: []registry.Edge{
		edge("2", "1", true), edge("3", "1", true), edge("4", "1", true), edge("5", "2", true), edge("6", "3", false),
		edge("7", "5", false), edge("8", "6", false), edge("8", "7", false),
	}}
}

func view(t *testing.T, s graphview.Source) *graphview.View {
	t.Helper()
	v, err := graphview.OfGraph(t.Context(), s, "g")
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func tree(t *testing.T, v *graphview.View, most int) string {
	t.Helper()
	var b strings.Builder
	clean := func(s string) string { return strings.ReplaceAll(s, "\x1b", "?") }
	if err := v.WriteTree(&b, graphview.Text{Most: most, Now: time.Unix(0, 0).UTC(), Clean: clean}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestC25_Tree(t *testing.T) {
	const want = `graph g
nodes 8: 1 Failed, 1 Processing, 3 Pending, 3 Completed

✓ 1 step 1              Completed
├─ ✓ 2 step 2           Completed
│  └─ ▸ 5 step 5        Processing: pages 40 of 100
│     └─ … 7 step 7     Pending: waits for 5
│        └─ … 8 step 8  Pending: waits for 6, 7
├─ ✗ 3 step 3           Failed: awaits repair: exit status 2?[31m "quoted"; holds up 2
│  └─ … 6 step 6        Pending: waits for 3 (failed)
│     └─ ↑ 8            see above
└─ ✓ 4 step 4           Completed
`
	if got := tree(t, view(t, can()), 100); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// TestC25_LargeGraph: a graph of 10,000 nodes is summed up, and says how much it leaves out.
func TestC25_LargeGraph(t *testing.T) {
	s := parts{page: 500}
	for i := range 10_000 {
		n := node(fmt.Sprintf("%05d", i), registry.Pending, registry.StatePending)
		if i == 5000 {
			n = node("05000", registry.Failed, registry.StateFailed)
		}
		s.nodes = append(s.nodes, n)
		if i > 0 {
			s.edges = append(s.edges, edge(n.Key, s.nodes[i-1].Key, false))
		}
	}
	v := view(t, s)
	got := tree(t, v, 200)
	for _, want := range []string{"levels 1 to 5000", "level 5001", "levels 5002 to 10000", "i05000", "holds up 4 999", "9 999 nodes are not shown"} {
		if !strings.Contains(strings.ReplaceAll(strings.ReplaceAll(got, "\u202f", " "), ",", " "), want) {
			t.Errorf("%q is missing", want)
		}
	}
	if lines := strings.Count(got, "\n"); lines > 100 {
		t.Errorf("%d lines", lines)
	}
	if got := tree(t, v, 20_000); !strings.Contains(got, "more below") || len(got) > 1<<20 {
		t.Errorf("the whole chain has %d bytes", len(got))
	}
}

// TestDOT: Graphviz reads it, whatever people name their tasks.
func TestDOT(t *testing.T) {
	s := can()
	s.nodes[1].Name = "a \"quoted\"\\N\nname } -> x"
	s.edges[0].WaitFor = registry.WaitSettled
	var b strings.Builder
	if err := view(t, s).WriteDOT(&b, time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`\"quoted\"\\N\nname } -> x`, "shape=octagon", `"i2" -> "i5"`, "style=dashed", "cluster_legend", "pages 40 of 100"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
	path, err := exec.LookPath("dot")
	if err != nil {
		t.Skip("Graphviz is not installed; the text was checked only")
	}
	cmd := exec.CommandContext(t.Context(), path, "-Tsvg", "-o", os.DevNull)
	cmd.Stdin = strings.NewReader(b.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("dot: %v %s\n%s", err, out, b.String())
	}
}

// TestOfItem: what was not read is said.
func TestOfItem(t *testing.T) {
	v, err := graphview.OfItem(t.Context(), can(), "i3")
	if err != nil {
		t.Fatal(err)
	}
	if got := tree(t, v, 100); !strings.Contains(got, "more items") {
		t.Error(got)
	}
}

// TestTitles: items outside of graphs are called by their titles, nodes by their keys.
func TestTitles(t *testing.T) {
	t.Parallel()
	titled, keyed := node("", registry.Failed, registry.StateFailed), node("k", registry.Pending, registry.StatePending)
	titled.Name, titled.Title = "plates.checkm", "Glass plates"
	keyed.Name, keyed.Title = "seeds.checkm", "Seed lists"
	v, err := graphview.OfItem(t.Context(), parts{nodes: []registry.GraphNode{titled, keyed}, edges: []registry.Edge{edge("k", "", false)}}, "i")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ name, title string }{{"Glass plates", "plates.checkm"}, {"k", "Seed lists"}} {
		if got := graphview.Title(v.Nodes[i]); got != want.title {
			t.Errorf("below %s stands %q, not %q", want.name, got, want.title)
		}
		if box := v.Draw().Boxes[i]; box.Name != want.name || box.Label != want.name {
			t.Errorf("box %+v, want %s", box, want.name)
		}
	}
	const want = "└─ … k Seed lists  Pending: waits for Glass plates (failed)"
	if got := tree(t, v, 100); !strings.Contains(got, want) {
		t.Errorf("no %q in\n%s", want, got)
	}
}
