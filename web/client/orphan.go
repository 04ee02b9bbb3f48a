package client

import (
	"context"
	"net/http"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// SearchOrphans enqueues a search for orphaned data, as [registry.Requesting] does, and returns its
// item.
func (c *Client) SearchOrphans(ctx context.Context, r wire.OrphanRequest) (registry.WorkItem, error) {
	var out registry.WorkItem
	err := c.ask(ctx, request{method: http.MethodPost, path: "/orphans"}, r, &out)
	return out, err
}
