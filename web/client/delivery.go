package client

import (
	"context"
	"net/http"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// Redeliver enqueues another delivery of a job's outcome and returns its item.
func (c *Client) Redeliver(ctx context.Context, itemID, reason string) (registry.WorkItem, error) {
	var out registry.WorkItem
	err := c.ask(ctx, request{method: http.MethodPost, path: in("items", itemID, "redeliveries")}, wire.RedeliverRequest{Reason: reason}, &out)
	return out, err
}
