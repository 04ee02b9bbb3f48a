package work

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// Seal implements registry.Graphs.
func (e *Engine) Seal(ctx context.Context, graphID, actor string) error {
	err := e.Write(ctx, func(t *Tx) error { return t.SealGraph(graphID, actor) })
	if err != nil {
		return fmt.Errorf("seal graph %s: %w", graphID, err)
	}
	return nil
}

// SealGraph is [Engine.Seal] in an open transaction.
func (t *Tx) SealGraph(graphID, actor string) error {
	if done, err := t.IsSealed(graphID); err != nil || done {
		return err
	}
	if err := t.acyclic(graphID); err != nil {
		return err
	}
	items, err := t.items(SelectItem+`WHERE i.graph_id = $1 AND i.graph_id <> '' AND i.status = 'prepare' ORDER BY i.id`, graphID)
	if err != nil {
		return fmt.Errorf("list items: %w", err)
	}
	shifts := make([]Shift, len(items))
	for i, it := range items {
		wait := max(0, sqldb.Micros(it.RunAt)-t.Now)
		shifts[i] = Shift{it, Change{act: registry.ActSeal, Stage: it.Stage, Status: registry.Pending, Actor: actor, delay: wait}}
	}
	if err := t.moveAll(shifts); err != nil {
		return err
	}
	for _, it := range items {
		if err := t.store.hooks.Started(t, it); err != nil {
			return err
		}
	}
	err = t.Do(`UPDATE graph SET sealed_at = $2 WHERE id = $1`, graphID, t.Now)
	return err
}

// acyclic returns a *CycleError if items of the graph wait for each other, also through items of
// other graphs. An edge counts if it is open or may open again; only completed, aborted and deleted
// items never run again. Edges from a batch to its jobs cannot be part of a cycle, because jobs
// require nothing.
func (t *Tx) acyclic(graphID string) error {
	const mayRun = `NOT IN ('completed', 'aborted', 'deleted')`
	from, err := t.Strings(`SELECT i.id FROM work_item i WHERE i.graph_id = $1 AND i.graph_id <> '' AND i.status `+mayRun, graphID)
	if err != nil {
		return fmt.Errorf("list items: %w", err)
	}
	seen := map[string]bool{}
	var edges [][2]string
	// One round reads the requirements of all items of the graph. Further ones are for other graphs.
	// A recursive query would read them layer by layer: PostgreSQL took 15 s for 100 layers.
	for len(from) > 0 {
		for _, id := range from {
			seen[id] = true
		}
		found, err := t.edgePairs(`SELECT d.item_id, d.requires_id FROM work_dep d JOIN work_item q ON q.id = d.requires_id
			WHERE `+t.Among("d.item_id")+` AND d.at_start = 1 AND q.status `+mayRun+` ORDER BY d.item_id, d.requires_id`, t.List(from))
		if err != nil {
			return fmt.Errorf("list requirements: %w", err)
		}
		from = nil
		for _, e := range found {
			if !seen[e[1]] {
				seen[e[1]] = true
				from = append(from, e[1])
			}
		}
		edges = append(edges, found...)
	}
	if cycle := findCycle(edges); cycle != nil {
		return &registry.CycleError{Items: cycle}
	}
	return nil
}

func (t *Tx) edgePairs(query string, args ...any) (pairs [][2]string, err error) {
	return sqldb.Collect(t.Ask(query, args...), "", func(row sqldb.Scanner) ([2]string, error) {
		var p [2]string
		err := row.Scan(&p[0], &p[1])
		return p, err
	})
}

// findCycle returns the items of one cycle, or nil. Each item requires the next, and the last
// requires the first.
func findCycle(edges [][2]string) []string {
	requires := map[string][]string{}
	for _, e := range edges {
		requires[e[0]] = append(requires[e[0]], e[1])
	}
	var path []string
	at := map[string]int{} // place in path, from 1; 0: not visited; -1: leads to no cycle
	var visit func(id string) []string
	visit = func(id string) []string {
		if at[id] > 0 {
			return path[at[id]-1:]
		}
		if at[id] < 0 {
			return nil
		}
		path = append(path, id)
		at[id] = len(path)
		for _, next := range requires[id] {
			if cycle := visit(next); cycle != nil {
				return cycle
			}
		}
		path, at[id] = path[:len(path)-1], -1
		return nil
	}
	for _, e := range edges {
		if cycle := visit(e[0]); cycle != nil {
			return cycle
		}
	}
	return nil
}

// IsSealed reports whether a graph is sealed. It returns ErrNotFound if there is no such graph.
func (t *Tx) IsSealed(graphID string) (sealed bool, err error) {
	err = t.Get(`SELECT sealed_at IS NOT NULL FROM graph WHERE id = $1`, []any{graphID}, &sealed)
	if errors.Is(err, sql.ErrNoRows) {
		return false, fmt.Errorf("graph %s: %w", graphID, registry.ErrNotFound)
	} else if err != nil {
		return false, fmt.Errorf("look at graph %s: %w", graphID, err)
	}
	return sealed, nil
}

// sealed returns an error if the item's graph is not sealed yet: no item of such a graph starts.
func (t *Tx) sealed(it registry.WorkItem) error {
	if it.GraphID == "" {
		return nil
	}
	if is, err := t.IsSealed(it.GraphID); err != nil || is {
		return err
	}
	return fmt.Errorf("its graph %s is not sealed yet; seal it first: %w", it.GraphID, refusal(it, registry.ActRequeue, registry.Pending))
}
