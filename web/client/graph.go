package client

import (
	"context"
	"net/http"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// Prepare adds submissions to a graph, all or none; *registry.GraphError and registry.ErrSealed are
// found in the *Problem that refuses them. The actor is the token's.
func (c *Client) Prepare(ctx context.Context, g registry.Graph) (registry.PreparedGraph, error) {
	return c.PrepareGraph(ctx, wire.GraphRequestOf(g), g.IdempotencyKey)
}

// PrepareGraph is Prepare for a graph as it is written down for the API. With an idempotency key
// ("" for none) a repeat answers what the first one did.
func (c *Client) PrepareGraph(ctx context.Context, g wire.GraphRequest, idempotencyKey string) (registry.PreparedGraph, error) {
	var out registry.PreparedGraph
	err := c.ask(ctx, request{method: http.MethodPost, path: "/graphs", header: keyed(idempotencyKey)}, g, &out)
	return out, err
}

// Seal lets a graph's items go; a *registry.CycleError is found in the *Problem that names a cycle.
// A repeat changes nothing. The actor is the token's, whatever is named here.
func (c *Client) Seal(ctx context.Context, graphID, _ string) error {
	return c.ask(ctx, request{method: http.MethodPost, path: in("graphs", graphID, "seal")}, nil, nil)
}

// Graph returns the items of a graph with their edges; a *Problem that is registry.ErrNotFound when
// there is none.
func (c *Client) Graph(ctx context.Context, id string) (registry.GraphView, error) {
	return get[registry.GraphView](ctx, c, in("graphs", id), nil)
}

// Edges returns what an item requires and what requires it.
func (c *Client) Edges(ctx context.Context, itemID string) (requires, required []registry.Edge, err error) {
	e, err := get[wire.EdgesResponse](ctx, c, in("items", itemID, "edges"), nil)
	return e.Requires, e.RequiredBy, err
}
