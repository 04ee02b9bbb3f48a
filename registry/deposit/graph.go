package deposit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/collection"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/tasks"
	"github.com/holdfast/holdfast/registry/work"
)

// Prepare implements registry.Graphs.
func (s *Deposits) Prepare(ctx context.Context, g registry.Graph) (registry.PreparedGraph, error) {
	if wrong := g.Problems(); len(wrong) > 0 {
		return registry.PreparedGraph{}, fmt.Errorf("prepare graph: %w", wrong[0])
	}
	var p registry.PreparedGraph
	err := s.write(ctx, func(t *tx) (err error) {
		p, err = t.prepareGraph(g)
		return err
	})
	if err != nil {
		return registry.PreparedGraph{}, fmt.Errorf("prepare graph: %w", err)
	}
	return p, nil
}

func (t *tx) prepareGraph(g registry.Graph) (registry.PreparedGraph, error) {
	none := registry.PreparedGraph{}
	contents, args, err := t.fingerprints(g)
	if err != nil {
		return none, err
	}
	id, done, err := t.Keyed(g.IdempotencyKey, args)
	if err != nil {
		return none, err
	}
	if done {
		return t.repeatedGraph(id, g)
	}
	if err := t.Accepting(); err != nil {
		return none, err
	}
	b := builder{tx: t, graph: g.ID, actor: g.Actor, items: map[string]string{}, collections: map[string]registry.Collection{}}
	if err := b.open(g); err != nil {
		return none, err
	}
	created := map[string]string{}
	for _, n := range g.Nodes {
		created[n.Key] = sqldb.NewID()
		if _, taken := b.items[n.Key]; taken {
			return none, &registry.GraphError{Key: n.Key, Problem: "an earlier call for this graph used this key"}
		}
	}
	b.created = created
	for i, n := range g.Nodes {
		if err := b.add(n, contents[i]); err != nil {
			return none, err
		}
	}
	if g.Seal {
		if err := t.SealGraph(b.graph, g.Actor); err != nil {
			return none, b.cycleByKey(err)
		}
	}
	return registry.PreparedGraph{GraphID: b.graph, Items: maps.Clone(created)}, t.Answer(g.IdempotencyKey, args, b.graph, registry.ActPrepare, g.Actor)
}

// cycleByKey returns a cycle that prevents sealing with the nodes' keys, because the ids of items that
// were not added mean nothing to the caller. It returns other errors unchanged.
func (b *builder) cycleByKey(err error) error {
	var cycle *registry.CycleError
	if !errors.As(err, &cycle) {
		return err
	}
	keys := map[string]string{}
	for _, items := range []map[string]string{b.items, b.created} {
		for key, id := range items {
			keys[id] = key
		}
	}
	var names []string
	for _, id := range append(slices.Clone(cycle.Items), cycle.Items[0]) {
		names = append(names, cmp.Or(keys[id], "item "+id))
	}
	return &registry.GraphError{Key: keys[cycle.Items[0]], Problem: "it waits for itself: " + strings.Join(names, " -> ") + "; leave out one of these requirements"}
}

// fingerprints returns the fingerprint of each node's submission, and one of the whole call.
func (t *tx) fingerprints(g registry.Graph) (contents []string, args string, err error) {
	type node struct {
		Key, Description string
		Requires         []registry.Requirement
	}
	nodes := make([]node, len(g.Nodes))
	contents = make([]string, len(g.Nodes))
	for i, n := range g.Nodes {
		if n.Task != nil {
			contents[i], err = tasks.Fingerprint(*n.Task)
		} else {
			contents[i], err = t.fingerprint(withDefaultName(n.Submission))
		}
		if err != nil {
			return nil, "", fmt.Errorf("node %q: %w", n.Key, err)
		}
		nodes[i] = node{n.Key, contents[i], n.Requires()}
	}
	args, err = work.Fingerprint(struct {
		Graph string
		Nodes []node
		Seal  bool `json:",omitempty"`
	}{g.ID, nodes, g.Seal})
	return contents, args, err
}

// repeatedGraph returns the answer that the first call got.
func (t *tx) repeatedGraph(graphID string, g registry.Graph) (registry.PreparedGraph, error) {
	all, err := t.nodes(graphID)
	if err != nil {
		return registry.PreparedGraph{}, err
	}
	p := registry.PreparedGraph{GraphID: graphID, Items: map[string]string{}}
	for _, n := range g.Nodes {
		p.Items[n.Key] = all[n.Key]
	}
	return p, nil
}

// nodes returns the items of a graph by key.
func (t *tx) nodes(graphID string) (items map[string]string, err error) {
	items = map[string]string{}
	ask := t.Ask(`SELECT key, item_id FROM graph_node WHERE graph_id = $1`, graphID)
	err = sqldb.Each(ask, "list nodes of graph "+graphID, func(row sqldb.Scanner) error {
		var key, item string
		if err := row.Scan(&key, &item); err != nil {
			return err
		}
		items[key] = item
		return nil
	})
	return items, err
}

// builder adds nodes to a graph.
type builder struct {
	*tx

	graph, actor string
	items        map[string]string // by key, of earlier calls
	created      map[string]string // by key, of this call
	collections  map[string]registry.Collection
}

// open inserts a new graph, or loads the graph that g adds nodes to.
func (b *builder) open(g registry.Graph) error {
	if b.graph == "" {
		b.graph = sqldb.NewID()
		_, err := b.Exec(`INSERT INTO graph (id, tenant, created_by, created_at) VALUES ($1, $2, $3, $4)`, b.graph, sqldb.Tenant, sqldb.Clean(g.Actor), b.Now)
		if err != nil {
			return fmt.Errorf("insert graph: %w", err)
		}
		return nil
	}
	sealed, err := b.IsSealed(b.graph)
	if err != nil {
		return err
	}
	if sealed {
		return fmt.Errorf("graph %s: %w", b.graph, registry.ErrSealed)
	}
	if b.items, err = b.nodes(b.graph); err != nil {
		return err
	}
	if n := len(b.items) + len(g.Nodes); n > registry.MostItems {
		return &registry.GraphError{Problem: fmt.Sprintf("the graph would have %d items; at most %d are allowed", n, registry.MostItems)}
	}
	return nil
}

// add inserts the item of one node, with its edges.
func (b *builder) add(n registry.Node, content string) error {
	needs, err := b.needs(n)
	if err != nil {
		return err
	}
	at := work.NewItem{ID: b.created[n.Key], Status: registry.Prepare, Graph: b.graph, Blockers: work.OpenNeeds(needs)}
	if n.Task != nil {
		err = b.addTask(*n.Task, at)
	} else {
		err = b.addBatch(n.Submission, at, content)
	}
	if err != nil {
		return &registry.NodeError{Key: n.Key, Err: err}
	}
	if err := b.Require(at.ID, needs); err != nil {
		return fmt.Errorf("node %q: %w", n.Key, err)
	}
	_, err = b.Exec(`INSERT INTO graph_node (graph_id, key, item_id) VALUES ($1, $2, $3)`, b.graph, n.Key, at.ID)
	if err != nil {
		return fmt.Errorf("node %q: insert: %w", n.Key, err)
	}
	return nil
}

// addBatch inserts a submission's batch with the id, status, graph and blockers of at.
func (b *builder) addBatch(sub registry.Submission, at work.NewItem, content string) error {
	sub = withDefaultName(sub)
	sub.Force = true // each node gets its own batch, also for the same content
	c, err := b.collection(sub.Collection)
	if err != nil {
		return err
	}
	if err := b.out.CheckMail(sub, c); err != nil {
		return err
	}
	return b.insertBatch(placed(b.newBatch(sub, c, content), at), sub.Limits)
}

// addTask inserts a task with the id, status, graph and blockers of at.
func (b *builder) addTask(n registry.NewTask, at work.NewItem) error {
	n.Actor = b.actor
	it, err := tasks.Item(b.Tx, n)
	if err != nil {
		return err
	}
	return b.Insert(placed(it, at))
}

// placed returns an item with the id, status, graph and blockers of at.
func placed(it, at work.NewItem) work.NewItem {
	it.ID, it.Status, it.Graph, it.Blockers = at.ID, at.Status, at.Graph, at.Blockers
	return it
}

func (b *builder) collection(mnemonic string) (registry.Collection, error) {
	if c, ok := b.collections[mnemonic]; ok {
		return c, nil
	}
	c, err := collection.Of(b.Tx, mnemonic)
	if err == nil {
		b.collections[mnemonic] = c
	}
	return c, err
}

// needs returns the items that a node requires, and their states.
func (b *builder) needs(n registry.Node) ([]work.Need, error) {
	var all []work.Need
	seen := map[string]bool{}
	for _, r := range n.Requires() {
		wanted := r
		if r.Key != "" {
			if wanted.ItemID = b.created[r.Key]; wanted.ItemID == "" {
				wanted.ItemID = b.items[r.Key]
			}
			if wanted.ItemID == "" {
				return nil, &registry.GraphError{Key: n.Key, Problem: fmt.Sprintf("it requires node %q, which is neither in this call nor in an earlier call for this graph", r.Key)}
			}
		}
		if seen[wanted.ItemID] {
			return nil, &registry.GraphError{Key: n.Key, Problem: fmt.Sprintf("item %s is required twice", wanted.ItemID)}
		}
		seen[wanted.ItemID] = true
		one, err := b.need(r, wanted)
		if err != nil {
			var wrong *registry.GraphError
			if errors.As(err, &wrong) {
				return nil, &registry.GraphError{Key: n.Key, Problem: wrong.Problem}
			}
			return nil, fmt.Errorf("node %q: %w", n.Key, err)
		}
		all = append(all, one)
	}
	return all, nil
}

// need looks up one required item. An item of this call is in prepare, even if its row is not
// written yet.
func (b *builder) need(r, wanted registry.Requirement) (work.Need, error) {
	if _, ours := b.created[r.Key]; !ours {
		return b.NeedOf(wanted)
	}
	n := work.Need{ID: wanted.ItemID, WaitFor: r.WaitFor}
	if n.WaitFor == "" {
		n.WaitFor = registry.WaitSuccess
	}
	return n, nil
}
