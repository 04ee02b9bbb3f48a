package client

import (
	"context"
	"net/http"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// QueueStatus adds up, per stage, what waits and runs.
func (c *Client) QueueStatus(ctx context.Context) (registry.QueueStatus, error) {
	return get[registry.QueueStatus](ctx, c, "/queue", nil)
}

// Accepting says whether submissions are taken.
func (c *Client) Accepting(ctx context.Context) (registry.Accepting, error) {
	return get[registry.Accepting](ctx, c, "/queue/accepting", nil)
}

// SetAccepting says whether submissions are taken. The actor is the token's, whatever is named
// here; a repeat replaces it and the reason.
func (c *Client) SetAccepting(ctx context.Context, a registry.Accepting) error {
	return c.ask(ctx, request{method: http.MethodPut, path: "/queue/accepting"}, wire.AcceptingRequest{On: a.On, Reason: a.Reason}, nil)
}
