package client

import (
	"context"
	"net/http"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// QueueStatus returns, for each stage, how many items wait and run.
func (c *Client) QueueStatus(ctx context.Context) (registry.QueueStatus, error) {
	return get[registry.QueueStatus](ctx, c, "/queue", nil)
}

// SetAccepting sets whether submissions are accepted. The actor is the token. A repeat replaces
// actor and reason.
func (c *Client) SetAccepting(ctx context.Context, a registry.Accepting) error {
	return c.ask(ctx, request{method: http.MethodPut, path: "/queue/accepting"}, wire.AcceptingRequest{On: a.On, Reason: a.Reason}, nil)
}
