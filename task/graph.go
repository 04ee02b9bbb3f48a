package task

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast/holdfast/registry"
)

// Graph is tasks that depend on each other, in preparation. The zero value is empty. Nothing is
// submitted or run before Submit, so that a test can look at what a program builds.
type Graph struct {
	nodes []registry.Node
	errs  []error
}

// After requires that the tasks of these keys complete first.
func After(keys ...string) []registry.Requirement { return requirements(keys, registry.WaitSuccess) }

// AfterSettled requires that the tasks of these keys settle first, with any outcome.
func AfterSettled(keys ...string) []registry.Requirement {
	return requirements(keys, registry.WaitSettled)
}

func requirements(keys []string, wait registry.WaitFor) (out []registry.Requirement) {
	for _, key := range keys {
		out = append(out, registry.Requirement{Key: key, WaitFor: wait})
	}
	return out
}

// Add adds a task of a function under a key that is unique in the graph. Its requirements come from
// [After] and [AfterSettled]; they may name tasks that are added later. Check and Submit return its
// errors.
func Add[T, R any](g *Graph, key string, f *Function[T, R], args T, requires ...[]registry.Requirement) {
	n, err := f.New(args)
	if err != nil {
		g.errs = append(g.errs, fmt.Errorf("node %q: %w", key, err))
		return
	}
	if err := f.fits(n.Args); err != nil {
		g.errs = append(g.errs, fmt.Errorf("node %q: %w", key, err))
	}
	n.Requires = slices.Concat(requires...)
	g.nodes = append(g.nodes, registry.Node{Key: key, Task: &n})
}

// AddNode adds any node, as a submission of a deposit.
func (g *Graph) AddNode(n registry.Node) { g.nodes = append(g.nodes, n) }

// Nodes returns the nodes in the order in which they were added.
func (g *Graph) Nodes() []registry.Node { return slices.Clone(g.nodes) }

// Check returns what is wrong with the graph, as far as that can be told without a Registry: keys
// that are used twice or unknown, arguments that do not fit, cycles.
func (g *Graph) Check() error {
	errs := slices.Clone(g.errs)
	for part := range slices.Chunk(g.nodes, registry.MostNodes) {
		for _, p := range (registry.Graph{Nodes: part}).Problems() {
			errs = append(errs, p)
		}
	}
	open := map[string][]string{} // the requirements of each key
	for _, n := range g.nodes {
		if _, twice := open[n.Key]; twice {
			errs = append(errs, &registry.GraphError{Key: n.Key, Problem: "the key is used twice"})
		}
		open[n.Key] = []string{}
		for _, r := range n.Requires() {
			if r.Key != "" {
				open[n.Key] = append(open[n.Key], r.Key)
			}
		}
	}
	for _, n := range g.nodes {
		for _, key := range open[n.Key] {
			if _, known := open[key]; !known {
				errs = append(errs, &registry.GraphError{Key: n.Key, Problem: fmt.Sprintf("it requires node %q, which is not in the graph", key)})
			}
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	return acyclic(open)
}

// acyclic removes keys without open requirements until none is left; what remains waits for itself.
func acyclic(open map[string][]string) error {
	waits, dependents := map[string]int{}, map[string][]string{}
	var free []string
	for key, requires := range open {
		waits[key] = len(requires)
		for _, r := range requires {
			dependents[r] = append(dependents[r], key)
		}
		if len(requires) == 0 {
			free = append(free, key)
		}
	}
	for len(free) > 0 {
		key := free[len(free)-1]
		free = free[:len(free)-1]
		delete(waits, key)
		for _, d := range dependents[key] {
			if waits[d]--; waits[d] == 0 {
				free = append(free, d)
			}
		}
	}
	if len(waits) == 0 {
		return nil
	}
	var stuck []string
	for key := range waits {
		stuck = append(stuck, key)
	}
	slices.Sort(stuck)
	return &registry.GraphError{Problem: fmt.Sprintf("these nodes wait for each other: %.500s", registry.AllOf(stuck))}
}

// Submit adds the whole graph and starts it. It returns the graph's id and the items by key. A graph
// of more than registry.MostNodes nodes is added in several transactions; none of its tasks starts
// before the last one. key is an idempotency key; "": none. With a key a repeat after an error goes
// on where the first call stopped.
func (g *Graph) Submit(ctx context.Context, r Preparing, actor, key string) (registry.PreparedGraph, error) {
	if err := g.Check(); err != nil {
		return registry.PreparedGraph{}, fmt.Errorf("submit graph: %w", err)
	}
	all := registry.PreparedGraph{Items: map[string]string{}}
	for i, part := range slices.Collect(slices.Chunk(inOrder(g.nodes), registry.MostNodes)) {
		last := (i+1)*registry.MostNodes >= len(g.nodes)
		request := registry.Graph{ID: all.GraphID, Nodes: part, Actor: actor, Seal: last}
		if key != "" {
			request.IdempotencyKey = fmt.Sprintf("%s/%d", key, i)
		}
		p, err := r.Prepare(ctx, request)
		if err != nil {
			return registry.PreparedGraph{}, fmt.Errorf("submit graph: %w", err)
		}
		all.GraphID = p.GraphID
		for key, id := range p.Items {
			all.Items[key] = id
		}
	}
	return all, nil
}

// inOrder returns the nodes of an acyclic graph so that each comes behind those that it requires:
// a transaction may name nodes of its own and of earlier ones.
func inOrder(nodes []registry.Node) []registry.Node {
	at, done := map[string]registry.Node{}, map[string]bool{}
	for _, n := range nodes {
		at[n.Key] = n
	}
	var out []registry.Node
	var place func(n registry.Node)
	place = func(n registry.Node) {
		if done[n.Key] {
			return
		}
		done[n.Key] = true
		for _, r := range n.Requires() {
			if r.Key != "" {
				place(at[r.Key])
			}
		}
		out = append(out, n)
	}
	for _, n := range nodes {
		place(n)
	}
	return out
}
