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
