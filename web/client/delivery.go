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

// RedeliverJobs enqueues another delivery of the outcomes of a batch's next jobs in row order, after
// the ones with which an earlier call ended ("" for the first). With an idempotency key ("" for
// none), a repeat queues nothing.
func (c *Client) RedeliverJobs(ctx context.Context, batchID, after, reason, idempotencyKey string) (registry.Redelivered, error) {
	var out registry.Redelivered
	err := c.ask(ctx, request{method: http.MethodPost, path: in("batches", batchID, "redeliveries"), header: keyed(idempotencyKey)}, wire.RedeliverJobsRequest{Reason: reason, After: after}, &out)
	return out, err
}
