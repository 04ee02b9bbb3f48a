package client

import (
	"context"
	"net/http"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// PrepareGraph adds submissions to a graph, all or none. The *Problem of a refusal is a
// *registry.GraphError or registry.ErrSealed. With an idempotency key ("" for none), a repeat gets
// the first one's answer.
func (c *Client) PrepareGraph(ctx context.Context, g wire.GraphRequest, idempotencyKey string) (registry.PreparedGraph, error) {
	var out registry.PreparedGraph
	err := c.ask(ctx, request{method: http.MethodPost, path: "/graphs", header: keyed(idempotencyKey)}, g, &out)
	return out, err
}

// Seal starts a graph's items. If they form a cycle, the *Problem is a *registry.CycleError. A
// repeat changes nothing. The actor is the token.
func (c *Client) Seal(ctx context.Context, graphID string) error {
	return c.ask(ctx, request{method: http.MethodPost, path: in("graphs", graphID, "seal")}, nil, nil)
}

// Graph returns the items of a graph with their edges; a *Problem that is registry.ErrNotFound if
// there is no such graph.
func (c *Client) Graph(ctx context.Context, id string) (registry.GraphView, error) {
	return get[registry.GraphView](ctx, c, in("graphs", id), nil)
}

// GraphNodes returns a page of a graph's nodes by key: those behind the key after, at most limit (0:
// 50; 500 at most). The *Problem is registry.ErrNotFound if there is no such graph.
func (c *Client) GraphNodes(ctx context.Context, graphID, after string, limit int) (registry.GraphPart, error) {
	return get[registry.GraphPart](ctx, c, in("graphs", graphID, "nodes"), values("after", after, "limit", number(limit)))
}

// Around returns an item with what it waits for and what waits for it, directly or not: at most
// limit items in each direction (0: 50; 500 at most). The *Problem is registry.ErrNotFound if there
// is no such item.
func (c *Client) Around(ctx context.Context, itemID string, limit int) (registry.GraphPart, error) {
	return get[registry.GraphPart](ctx, c, in("items", itemID, "around"), values("limit", number(limit)))
}
