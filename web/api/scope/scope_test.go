package scope_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/scope"
)

// The ids of what whole has: a1 and a2 in collection a, b1 in b.
const (
	a1 = "0a000000-0000-7000-8000-000000000001"
	a2 = "0a000000-0000-7000-8000-000000000002"
	b1 = "0b000000-0000-7000-8000-000000000001"
)

// whole is a Registry with things of two collections. What it does not have itself must not be
// asked.
type whole struct {
	scope.Registry
	prepared []registry.Graph
}

func (*whole) Item(_ context.Context, id string) (registry.WorkItem, error) {
	c, ok := map[string]string{a1: "a", a2: "a", b1: "b"}[id]
	if !ok {
		return registry.WorkItem{}, registry.ErrNotFound
	}
	return registry.WorkItem{ID: id, Collection: c, Note: "locked by " + b1}, nil
}

func (w *whole) Graph(ctx context.Context, id string) (registry.GraphView, error) {
	g := registry.GraphView{ID: id, Edges: []registry.Edge{{ItemID: a1, RequiresID: a2}, {ItemID: a2, RequiresID: b1}, {ItemID: b1, RequiresID: a1}}}
	for _, item := range map[string][]string{"mixed": {a1, a2, b1}, "theirs": {b1}, "mine": {a1, a2}}[id] {
		it, _ := w.Item(ctx, item)
		g.Items = append(g.Items, it)
	}
	if g.Items == nil {
		return g, registry.ErrNotFound
	}
	return g, nil
}

func (*whole) Edges(context.Context, string) (requires, required []registry.Edge, err error) {
	return []registry.Edge{{ItemID: a1, RequiresID: a2}, {ItemID: a1, RequiresID: b1}}, []registry.Edge{{ItemID: b1, RequiresID: a1}}, nil
}

func (*whole) QueueStatus(context.Context) (registry.QueueStatus, error) {
	return registry.QueueStatus{
		Accepting: registry.Accepting{On: true}, Paused: &registry.Hold{Reason: "r"}, Running: 7, Holds: 3, Stages: []registry.StageQueue{{Ready: 9}},
	}, nil
}

func (*whole) CountItems(_ context.Context, q registry.ItemQuery) (map[registry.State]int64, error) {
	return map[registry.State]int64{"x": int64(len(q.Within))}, nil
}

func (*whole) Failures(_ context.Context, q registry.ItemQuery) (registry.Page[registry.FailureGroup], error) {
	return registry.Page[registry.FailureGroup]{Rows: []registry.FailureGroup{{Count: int64(len(q.Within)), Note: "after " + b1}}}, nil
}

func (*whole) Workers(context.Context) ([]registry.WorkerInfo, error) {
	return []registry.WorkerInfo{{ID: "host-1", Version: "v"}}, nil
}

func (*whole) Seal(context.Context, string, string) error { return nil }

func (w *whole) Prepare(_ context.Context, g registry.Graph) (registry.PreparedGraph, error) {
	w.prepared = append(w.prepared, g)
	return registry.PreparedGraph{}, nil
}

func TestScoped(t *testing.T) {
	w := &whole{}
	r := scope.New(w)
	ctx := access.With(t.Context(), access.Caller{Token: registry.Token{ID: "t", Role: registry.RoleDepositor, Collections: []string{"a"}}})
	all := access.With(t.Context(), access.Caller{Token: registry.Token{Role: registry.RoleViewer}})
	notFound := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, registry.ErrNotFound) {
			t.Errorf("%s: %v, want ErrNotFound", what, err)
		}
	}
	g, err := r.Graph(ctx, "mixed")
	must(t, err)
	if diff := cmp.Diff([]registry.Edge{{ItemID: a1, RequiresID: a2}}, g.Edges); diff != "" || len(g.Items) != 2 || g.Items[0].Note != "locked by (of another collection)" {
		t.Errorf("graph %+v %s", g, diff)
	}
	_, err = r.Graph(ctx, "theirs")
	notFound("their graph", err)
	if g, err = r.Graph(all, "mixed"); err != nil || len(g.Items) != 3 || len(g.Edges) != 3 || g.Items[0].Note != "locked by "+b1 {
		t.Errorf("a viewer's graph: %+v %v", g, err)
	}
	requires, required, err := r.Edges(ctx, a1)
	must(t, err)
	if len(requires) != 1 || requires[0].RequiresID != a2 || len(required) != 0 {
		t.Errorf("edges %+v %+v", requires, required)
	}
	_, _, err = r.Edges(ctx, b1)
	notFound("edges of theirs", err)
	q, err := r.QueueStatus(ctx)
	must(t, err)
	if q.Running != 0 || q.Holds != 0 || q.Stages != nil || q.Paused == nil || !q.Accepting.On {
		t.Errorf("queue %+v, want only what keeps the depositor's own from starting", q)
	}
	for _, c := range []struct {
		asked []string
		want  int64
	}{{nil, 1}, {[]string{"b"}, 0}, {[]string{"a", "b"}, 1}} {
		if n, err := r.CountItems(ctx, registry.ItemQuery{Within: c.asked}); err != nil || n["x"] != c.want {
			t.Errorf("within %v: %v %v, want %d collections", c.asked, n, err, c.want)
		}
		g, err := r.Failures(ctx, registry.ItemQuery{Within: c.asked})
		if err != nil || g.Rows[0].Count != c.want || g.Rows[0].Note != "after (of another collection)" {
			t.Errorf("failures within %v: %+v %v, want %d collections and no id of theirs", c.asked, g, err, c.want)
		}
	}
	workers, err := r.Workers(ctx)
	must(t, err)
	if len(workers) != 1 || workers[0].ID != "" || workers[0].Version != "" {
		t.Errorf("workers %+v", workers)
	}

	notFound("seal theirs", r.Seal(ctx, "theirs", "x"))
	notFound("seal a mixed one", r.Seal(ctx, "mixed", "x"))
	must(t, r.Seal(ctx, "mine", "x"))
	node := func(collection, requires string) registry.Graph {
		s := registry.Submission{Collection: collection}
		if requires != "" {
			s.Requires = []registry.Requirement{{ItemID: requires}}
		}
		return registry.Graph{Nodes: []registry.Node{{Key: "k", Submission: s}}, IdempotencyKey: "key"}
	}
	_, err = r.Prepare(ctx, node("b", ""))
	notFound("prepare in b", err)
	_, err = r.Prepare(ctx, node("a", b1))
	notFound("require theirs", err)
	_, err = r.Submit(ctx, node("a", b1).Nodes[0].Submission)
	notFound("submit what requires theirs", err)
	added := node("a", a1)
	added.ID = "theirs"
	_, err = r.Prepare(ctx, added)
	notFound("add to theirs", err)
	_, err = r.Prepare(ctx, node("a", a1))
	must(t, err)
	_, err = r.Prepare(all, node("b", b1))
	must(t, err)
	keys := []string{w.prepared[0].IdempotencyKey, w.prepared[1].IdempotencyKey}
	if !slices.Equal(keys, []string{"t key", "key"}) {
		t.Errorf("keys %q", keys)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
