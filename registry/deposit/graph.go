package deposit

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/collection"
	"github.com/holdfast/holdfast/registry/sqldb"
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
	b := builder{tx: t, graph: g.ID, items: map[string]string{}, collections: map[string]registry.Collection{}}
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
	return registry.PreparedGraph{GraphID: b.graph, Items: maps.Clone(created)}, t.Answer(g.IdempotencyKey, args, b.graph, registry.ActPrepare, g.Actor)
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
		if contents[i], err = t.fingerprint(withDefaultName(n.Submission)); err != nil {
			return nil, "", fmt.Errorf("node %q: %w", n.Key, err)
		}
		nodes[i] = node{n.Key, contents[i], n.Submission.Requires}
	}
	args, err = work.Fingerprint(struct {
		Graph string
		Nodes []node
	}{g.ID, nodes})
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

	graph       string
	items       map[string]string // by key, of earlier calls
	created     map[string]string // by key, of this call
	collections map[string]registry.Collection
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

// add inserts the batch of one node, with its edges.
func (b *builder) add(n registry.Node, content string) error {
	sub := withDefaultName(n.Submission)
	sub.Force = true // each node gets its own batch, also for the same content
	c, err := b.collection(sub.Collection)
	if err != nil {
		return fmt.Errorf("node %q: %w", n.Key, err)
	}
	needs, err := b.needs(n)
	if err != nil {
		return err
	}
	if err := b.out.CheckMail(sub, c); err != nil {
		return fmt.Errorf("node %q: %w", n.Key, err)
	}
	it := b.newBatch(sub, c, content)
	it.ID, it.Status, it.Graph, it.Blockers = b.created[n.Key], registry.Prepare, b.graph, work.OpenNeeds(needs)
	if err := b.insertBatch(it, sub.Limits); err != nil {
		return fmt.Errorf("node %q: %w", n.Key, err)
	}
	if err := b.Require(it.ID, needs); err != nil {
		return fmt.Errorf("node %q: %w", n.Key, err)
	}
	_, err = b.Exec(`INSERT INTO graph_node (graph_id, key, item_id) VALUES ($1, $2, $3)`, b.graph, n.Key, it.ID)
	if err != nil {
		return fmt.Errorf("node %q: insert: %w", n.Key, err)
	}
	return nil
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
	for _, r := range n.Submission.Requires {
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
