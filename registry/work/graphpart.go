package work

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// nodeColumns returns ItemColumns without results and with what matters of specs, since both may be
// large: the title, and at notify all of it, because the acts of a job depend on it there.
func (e *Engine) nodeColumns() string {
	return strings.NewReplacer(
		"(SELECT w.spec FROM", "(SELECT CASE WHEN i.stage = 'notify' THEN w.spec WHEN i.action IN ('batch', 'ingest') THEN "+e.db.Dialect.Members("w.spec", "title", "title_shared")+" END FROM",
		"(SELECT w.results FROM work_detail w WHERE w.item_id = i.id)", "'{}'",
	).Replace(ItemColumns)
}

// nodeKey is the key of row i in its graph; "" outside of graphs.
const nodeKey = `COALESCE((SELECT g.key FROM graph_node g WHERE g.item_id = i.id AND g.graph_id = i.graph_id), '')`

// nodeProgress is the progress of the live attempt of row i; "" if row i is not running.
const nodeProgress = `CASE WHEN i.status = 'running' THEN COALESCE((SELECT p.progress FROM attempt p WHERE p.item_id = i.id AND p.n = i.attempt), '') ELSE '' END`

// selectNode begins a query for what scanNode reads from rows i.
func (e *Engine) selectNode() string {
	return `SELECT ` + e.nodeColumns() + `, ` + nodeKey + `, ` + nodeProgress + ` FROM `
}

func scanNode(row sqldb.Scanner) (n registry.GraphNode, err error) {
	var progress string
	if n.WorkItem, err = ScanItem(sqldb.WithMore(row, &n.Key, &progress)); err != nil {
		return n, err
	}
	n.Title = n.OwnTitle()
	n.Spec, n.Results = nil, nil
	if progress != "" {
		if err := json.Unmarshal([]byte(progress), &n.Progress); err != nil {
			return n, fmt.Errorf("decode progress of item %s: %w", n.ID, err)
		}
	}
	return n, nil
}

// GraphNodes implements registry.Graphs.
func (e *Engine) GraphNodes(ctx context.Context, graphID, after string, limit int) (registry.GraphPart, error) {
	p := registry.GraphPart{GraphID: graphID}
	limit = sqldb.PageSize(limit)
	err := e.db.Read.QueryRowContext(ctx, `SELECT sealed_at IS NOT NULL FROM graph WHERE id = $1`, graphID).Scan(&p.Sealed)
	if errors.Is(err, sql.ErrNoRows) {
		return p, fmt.Errorf("graph %s: %w", graphID, registry.ErrNotFound)
	}
	if err == nil {
		// The keys of purged items count here, so that a page never seems to be the last one.
		var keys []string
		keys, err = e.db.Column(ctx, `SELECT key FROM graph_node WHERE graph_id = $1 AND key > $2 ORDER BY key`+sqldb.Limit(limit+1), graphID, after)
		if err == nil && len(keys) > limit {
			keys = keys[:limit]
			p.Next = keys[limit-1]
		}
		if err == nil && len(keys) > 0 {
			err = e.graphNodes(ctx, &p, after, keys[len(keys)-1])
		}
	}
	if err != nil {
		return p, fmt.Errorf("list nodes of graph %s: %w", graphID, err)
	}
	return p, nil
}

// graphNodes reads the nodes with keys behind after and up to last, with what they require.
func (e *Engine) graphNodes(ctx context.Context, p *registry.GraphPart, after, last string) (err error) {
	const with = `graph_node n CROSS JOIN work_dep d WHERE n.graph_id = $1 AND n.key > $2 AND n.key <= $3 AND d.item_id = n.item_id AND d.at_start = 1`
	p.Nodes, err = e.nodes(ctx, e.selectNode()+`graph_node n CROSS JOIN work_item i WHERE n.graph_id = $1 AND n.key > $2 AND n.key <= $3 AND i.id = n.item_id ORDER BY n.key`, p.GraphID, after, last)
	if err != nil {
		return err
	}
	outside, err := e.nodes(ctx, e.selectNode()+`work_item i WHERE i.id IN (SELECT d.requires_id FROM `+with+`) AND i.graph_id <> $1 ORDER BY i.id`, p.GraphID, after, last)
	if err != nil {
		return err
	}
	for i := range outside {
		outside[i].Outside = true
	}
	p.Nodes = append(p.Nodes, outside...)
	p.Edges, err = e.edges(ctx, `SELECT `+edgeColumns+` FROM `+with+` ORDER BY n.key, d.requires_id`, p.GraphID, after, last)
	return err
}

// nodes reads the nodes that a query selects, with their holds.
func (e *Engine) nodes(ctx context.Context, query string, args ...any) ([]registry.GraphNode, error) {
	out, err := sqldb.Collect(e.db.Read.Ask(ctx, query, args...), "", scanNode)
	if err != nil {
		return nil, err
	}
	items := make([]*registry.WorkItem, len(out))
	for i := range out {
		items[i] = &out[i].WorkItem
	}
	return out, e.NameHolds(ctx, items...)
}

// Around implements registry.Graphs.
func (e *Engine) Around(ctx context.Context, itemID string, limit int) (registry.GraphPart, error) {
	limit = sqldb.PageSize(limit)
	it, err := e.Item(ctx, itemID)
	if err != nil {
		return registry.GraphPart{}, err
	}
	p := registry.GraphPart{GraphID: it.GraphID, Sealed: !it.Unsealed && it.Status != registry.Prepare}
	ids := []string{itemID}
	for _, way := range []struct{ from, to string }{{"item_id", "requires_id"}, {"requires_id", "item_id"}} {
		found, err := e.db.Column(ctx, `WITH RECURSIVE near (id) AS (SELECT CAST($1 AS TEXT) UNION SELECT d.`+way.to+
			` FROM near CROSS JOIN work_dep d WHERE d.`+way.from+` = near.id) SELECT id FROM near`+sqldb.Limit(limit+1), itemID)
		if err != nil {
			return p, fmt.Errorf("find items around %s: %w", itemID, err)
		}
		if len(found) > limit {
			found, p.More = found[:limit], true
		}
		ids = append(ids, found...)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	p.Nodes, err = e.nodes(ctx, e.selectNode()+`work_item i WHERE `+e.db.Among("i.id")+` ORDER BY i.id`, e.db.List(ids))
	if err == nil {
		p.Edges, err = e.edges(ctx, `SELECT `+edgeColumns+` FROM work_dep d WHERE `+e.db.Among("d.item_id")+` AND `+e.db.Among("d.requires_id")+
			` ORDER BY d.item_id, d.requires_id`, e.db.List(ids))
	}
	if err != nil {
		return p, fmt.Errorf("read items around %s: %w", itemID, err)
	}
	return p, nil
}
