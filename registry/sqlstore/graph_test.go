package sqlstore_test

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore"
)

func graphStore(t *testing.T) (s *sqlstore.Store, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "registry.db")
	s = open(t, path, newClock().now)
	if err := s.PutCollection(t.Context(), registry.Collection{Mnemonic: "c"}, "admin"); err != nil {
		t.Fatal(err)
	}
	return s, path
}

func chain(first, n int) []registry.Node {
	nodes := make([]registry.Node, n)
	for i := range nodes {
		nodes[i] = registry.Node{Key: fmt.Sprint(first + i), Submission: registry.Submission{Collection: "c"}}
		if first+i > 0 {
			nodes[i].Submission.Requires = []registry.Requirement{{Key: fmt.Sprint(first + i - 1)}}
		}
	}
	return nodes
}

// TestSeal_CycleThroughAnotherGraph: the contract cannot create such a cycle, because an item
// requires only earlier ones. Seal still looks for it, because such items would wait for ever.
func TestSeal_CycleThroughAnotherGraph(t *testing.T) {
	s, path := graphStore(t)
	p, err := s.Prepare(t.Context(), registry.Graph{Nodes: chain(0, 2)})
	if err != nil {
		t.Fatal(err)
	}
	outside, err := s.Submit(t.Context(), registry.Submission{Collection: "c", Requires: []registry.Requirement{{ItemID: p.Items["1"]}}})
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, err = db.ExecContext(t.Context(), `INSERT INTO work_dep (item_id, requires_id, wait_for, at_start) VALUES ($1, $2, 'success', 1)`,
		p.Items["0"], outside.BatchID)
	if err != nil {
		t.Fatal(err)
	}
	var cycle *registry.CycleError
	if err := s.Seal(t.Context(), p.GraphID, "x"); !errors.As(err, &cycle) {
		t.Fatalf("seal: %v, want a cycle", err)
	}
	at := slices.Index(cycle.Items, p.Items["0"])
	want := []string{p.Items["0"], outside.BatchID, p.Items["1"]}
	if at < 0 || !slices.Equal(append(slices.Clone(cycle.Items[at:]), cycle.Items[:at]...), want) {
		t.Errorf("cycle %v, want %v", cycle.Items, want)
	}
}

// TestGraph_Largest: the largest graph can be built, sealed, and aborted from its first item; one
// more item is refused.
func TestGraph_Largest(t *testing.T) {
	s, _ := graphStore(t)
	var graph string
	var first registry.PreparedGraph
	for n := 0; n < registry.MostItems; n += registry.MostNodes {
		p, err := s.Prepare(t.Context(), registry.Graph{ID: graph, Nodes: chain(n, registry.MostNodes)})
		if err != nil {
			t.Fatal(err)
		}
		if graph = p.GraphID; n == 0 {
			first = p
		}
	}
	_, err := s.Prepare(t.Context(), registry.Graph{ID: graph, Nodes: chain(registry.MostItems, 1)})
	if wrong := new(registry.GraphError); !errors.As(err, &wrong) {
		t.Errorf("one item more: %v, want a GraphError", err)
	}
	if err := s.Seal(t.Context(), graph, "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Command(t.Context(), registry.Command{ItemID: first.Items["0"], Act: registry.ActAbort, Actor: "x", Confirmed: true}); err != nil {
		t.Fatal(err)
	}
	g, err := s.Graph(t.Context(), graph)
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Items) != registry.MostItems || len(g.Edges) != registry.MostItems-1 || !g.Sealed {
		t.Errorf("%d items with %d edges", len(g.Items), len(g.Edges))
	}
	for _, it := range g.Items {
		if it.Status != registry.Aborted {
			t.Fatalf("item %s is %s, want aborted", g.Keys[it.ID], it.Status)
		}
	}
}
