package client

import (
	"context"
	"net/http"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// Redeliver enqueues another delivery of a job's outcome and returns its item. With an idempotency key
// ("" for none), a repeat gets the first one's answer.
func (c *Client) Redeliver(ctx context.Context, itemID, reason, idempotencyKey string) (registry.WorkItem, error) {
	var out registry.WorkItem
	err := c.ask(ctx, request{method: http.MethodPost, path: in("items", itemID, "redeliveries"), header: keyed(idempotencyKey)}, wire.RedeliverRequest{Reason: reason}, &out)
	return out, err
}
