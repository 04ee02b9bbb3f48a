package work

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// Graph implements registry.Graphs.
func (e *Engine) Graph(ctx context.Context, id string) (registry.GraphView, error) {
	g := registry.GraphView{ID: id, Keys: map[string]string{}}
	err := e.db.Read.QueryRowContext(ctx, `SELECT sealed_at IS NOT NULL FROM graph WHERE id = $1`, id).Scan(&g.Sealed)
	if errors.Is(err, sql.ErrNoRows) {
		return g, fmt.Errorf("graph %s: %w", id, registry.ErrNotFound)
	}
	if err == nil {
		g.Items, err = e.ReadItems(ctx, SelectItem+`WHERE i.graph_id = $1 AND i.graph_id <> '' ORDER BY i.id`, id)
	}
	if err == nil {
		err = e.graphKeys(ctx, &g)
	}
	if err == nil {
		g.Edges, err = e.edges(ctx, `SELECT `+edgeColumns+` FROM work_item i JOIN work_dep d ON d.item_id = i.id
			WHERE i.graph_id = $1 AND i.graph_id <> '' AND d.at_start = 1 ORDER BY d.item_id, d.requires_id`, id)
	}
	if err != nil {
		return g, fmt.Errorf("read graph %s: %w", id, err)
	}
	return g, nil
}

func (e *Engine) graphKeys(ctx context.Context, g *registry.GraphView) (err error) {
	return sqldb.Each(e.db.Read.Ask(ctx, `SELECT item_id, key FROM graph_node WHERE graph_id = $1`, g.ID), "", func(row sqldb.Scanner) error {
		var item, key string
		if err := row.Scan(&item, &key); err != nil {
			return err
		}
		g.Keys[item] = key
		return nil
	})
}

// Edges implements registry.Graphs.
func (e *Engine) Edges(ctx context.Context, itemID string) (requires, required []registry.Edge, err error) {
	if _, err := e.Item(ctx, itemID); err != nil {
		return nil, nil, err
	}
	requires, err = e.edges(ctx, `SELECT `+edgeColumns+` FROM work_dep d WHERE d.item_id = $1 AND d.at_start = 1 ORDER BY d.requires_id`, itemID)
	if err == nil {
		required, err = e.edges(ctx, `SELECT `+edgeColumns+` FROM work_dep d WHERE d.requires_id = $1 AND d.at_start = 1 ORDER BY d.item_id`, itemID)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("list edges of item %s: %w", itemID, err)
	}
	return requires, required, nil
}

const edgeColumns = `d.item_id, d.requires_id, d.wait_for, d.satisfied_at, d.at_start`

func (e *Engine) edges(ctx context.Context, query string, args ...any) (out []registry.Edge, err error) {
	return sqldb.Collect(e.db.Read.Ask(ctx, query, args...), "", func(row sqldb.Scanner) (registry.Edge, error) {
		var e registry.Edge
		var satisfied sql.NullInt64
		var atStart int
		if err := row.Scan(&e.ItemID, &e.RequiresID, &e.WaitFor, &satisfied, &atStart); err != nil {
			return e, err
		}
		e.Job = atStart == 0
		if satisfied.Valid {
			at := sqldb.FromMicros(satisfied.Int64)
			e.SatisfiedAt = &at
		}
		return e, nil
	})
}
