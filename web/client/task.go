package client

import (
	"context"
	"net/http"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// Functions lists the functions that tasks can call, by name.
func (c *Client) Functions(ctx context.Context) ([]registry.Function, error) {
	p, err := get[registry.Page[wire.Function]](ctx, c, "/functions", nil)
	return wire.Each(p.Rows, wire.Function.Registry), err
}

// SubmitTask submits a task and returns its item. The actor is the token. The *Problem of a refusal
// is a *registry.UnknownFunctionError, *registry.ArgumentError or *registry.NotAccepting. With an
// idempotency key ("" for none), a repeat gets the first one's answer.
func (c *Client) SubmitTask(ctx context.Context, t wire.TaskRequest, idempotencyKey string) (registry.WorkItem, error) {
	var out registry.WorkItem
	err := c.ask(ctx, request{method: http.MethodPost, path: "/tasks", header: keyed(idempotencyKey)}, t, &out)
	return out, err
}

// Edges returns what an item requires and what requires it.
func (c *Client) Edges(ctx context.Context, itemID string) (requires, required []registry.Edge, err error) {
	e, err := get[wire.EdgesResponse](ctx, c, in("items", itemID, "edges"), nil)
	return e.Requires, e.RequiredBy, err
}
