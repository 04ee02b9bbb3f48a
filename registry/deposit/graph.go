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
	descriptions, args, err := t.describe(g)
	if err != nil {
		return none, err
	}
	id, done, err := t.Keyed(g.IdempotencyKey, args)
	if err != nil {
		return none, err
	}
	if done {
		return t.prepared(id, g)
	}
	if err := t.Accepting(); err != nil {
		return none, err
	}
	b := builder{tx: t, graph: g.ID, items: map[string]string{}, collections: map[string]registry.Collection{}}
	if err := b.open(g); err != nil {
		return none, err
	}
	born := map[string]string{}
	for _, n := range g.Nodes {
		born[n.Key] = sqldb.NewID()
		if _, taken := b.items[n.Key]; taken {
			return none, &registry.GraphError{Key: n.Key, Problem: "the key is used already by an earlier call for this graph"}
		}
	}
	b.born = born
	for i, n := range g.Nodes {
		if err := b.add(n, descriptions[i]); err != nil {
			return none, err
		}
	}
	return registry.PreparedGraph{GraphID: b.graph, Items: maps.Clone(born)}, t.Answer(g.IdempotencyKey, args, b.graph, registry.ActPrepare, g.Actor)
}

// describe returns what each node says, and a digest of all that the call says.
func (t *tx) describe(g registry.Graph) (descriptions []string, args string, err error) {
	type node struct {
		Key, Description string
		Requires         []registry.Requirement
	}
	nodes := make([]node, len(g.Nodes))
	descriptions = make([]string, len(g.Nodes))
	for i, n := range g.Nodes {
		if descriptions[i], err = t.description(named(n.Submission)); err != nil {
			return nil, "", fmt.Errorf("node %q: %w", n.Key, err)
		}
		nodes[i] = node{n.Key, descriptions[i], n.Submission.Requires}
	}
	args, err = work.Fingerprint(struct {
		Graph string
		Nodes []node
	}{g.ID, nodes})
	return descriptions, args, err
}

// prepared is the answer that a call got the first time.
func (t *tx) prepared(graphID string, g registry.Graph) (registry.PreparedGraph, error) {
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
	born        map[string]string // by key, of this call
	collections map[string]registry.Collection
}

// open makes the graph, or finds the one that is added to.
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
		return &registry.GraphError{Problem: fmt.Sprintf("the graph would have %d items; at most %d are taken", n, registry.MostItems)}
	}
	return nil
}

// add makes one node's batch with its edges.
func (b *builder) add(n registry.Node, description string) error {
	sub := named(n.Submission)
	sub.Force = true // every node becomes a batch of its own
	c, err := b.collection(sub.Collection)
	if err != nil {
		return fmt.Errorf("node %q: %w", n.Key, err)
	}
	needs, err := b.needs(n)
	if err != nil {
		return err
	}
	if err := b.out.MayMail(sub, c); err != nil {
		return fmt.Errorf("node %q: %w", n.Key, err)
	}
	it := b.batch(sub, c, description)
	it.ID, it.Status, it.Graph, it.Blockers = b.born[n.Key], registry.Prepare, b.graph, work.OpenNeeds(needs)
	if err := b.take(it, sub.Limits); err != nil {
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

// needs finds the items that a node requires and how they stand.
func (b *builder) needs(n registry.Node) ([]work.Need, error) {
	var all []work.Need
	seen := map[string]bool{}
	for _, r := range n.Submission.Requires {
		wanted := r
		if r.Key != "" {
			if wanted.ItemID = b.born[r.Key]; wanted.ItemID == "" {
				wanted.ItemID = b.items[r.Key]
			}
			if wanted.ItemID == "" {
				return nil, &registry.GraphError{Key: n.Key, Problem: fmt.Sprintf("it requires node %q, which is neither in this call nor in an earlier one for this graph", r.Key)}
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

// need looks at what is there already. What is born in this call is in prepare, whether or not its
// row is written yet.
func (b *builder) need(r, wanted registry.Requirement) (work.Need, error) {
	if _, ours := b.born[r.Key]; !ours {
		return b.NeedOf(wanted)
	}
	n := work.Need{ID: wanted.ItemID, WaitFor: r.WaitFor}
	if n.WaitFor == "" {
		n.WaitFor = registry.WaitSuccess
	}
	return n, nil
}
