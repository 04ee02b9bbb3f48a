package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// QueueStatus returns, for each stage, how many items wait and run.
func (c *Client) QueueStatus(ctx context.Context) (registry.QueueStatus, error) {
	return get[registry.QueueStatus](ctx, c, "/queue", nil)
}

// Workers lists the live workers.
func (c *Client) Workers(ctx context.Context) ([]registry.WorkerInfo, error) {
	p, err := get[registry.Page[registry.WorkerInfo]](ctx, c, "/workers", nil)
	return p.Rows, err
}

// Throughput returns what was preserved and failed in a span.
func (c *Client) Throughput(ctx context.Context, span registry.ThroughputSpan) (registry.Throughput, error) {
	return get[registry.Throughput](ctx, c, "/queue/throughput", url.Values{"span": {string(span)}})
}

// Holdings returns how many copies and checks there are of what is kept, and how full volumes are.
func (c *Client) Holdings(ctx context.Context) (wire.Holdings, error) {
	return get[wire.Holdings](ctx, c, "/queue/holdings", nil)
}

// Limits lists the limits on what runs at once.
func (c *Client) Limits(ctx context.Context) ([]registry.Limit, error) {
	p, err := get[registry.Page[registry.Limit]](ctx, c, "/queue/limits", nil)
	return p.Rows, err
}

// SetLimit sets the limit of a stage or collection, in place of an earlier one. The actor is the
// token.
func (c *Client) SetLimit(ctx context.Context, l registry.Limit) error {
	return c.ask(ctx, request{method: http.MethodPut, path: "/queue/limits"},
		wire.LimitRequest{Scope: string(l.Scope), Key: l.Key, Most: l.Most, Weight: l.Weight}, nil)
}

// RemoveLimit removes a limit. It returns registry.ErrNotFound if there is no such limit. The actor
// is the token.
func (c *Client) RemoveLimit(ctx context.Context, scope registry.HoldScope, key string) error {
	return c.ask(ctx, request{method: http.MethodDelete, path: "/queue/limits", query: values("scope", string(scope), "key", key)}, nil, nil)
}

// Drain holds everything and stops what runs: at safe points, or after the time stop, rounded up to
// seconds. The actor is the token.
func (c *Client) Drain(ctx context.Context, reason string, stop time.Duration) error {
	seconds := int((stop + time.Second - 1) / time.Second)
	return c.ask(ctx, request{method: http.MethodPost, path: "/queue/drain"}, wire.DrainRequest{Reason: reason, Stop: seconds}, nil)
}

// SetAccepting sets whether submissions are accepted. The actor is the token. A repeat replaces
// actor and reason.
func (c *Client) SetAccepting(ctx context.Context, a registry.Accepting) error {
	return c.ask(ctx, request{method: http.MethodPut, path: "/queue/accepting"}, wire.AcceptingRequest{On: a.On, Reason: a.Reason}, nil)
}
