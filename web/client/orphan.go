package client

import (
	"context"
	"net/http"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// SearchOrphans makes an item that looks for what belongs to nobody, as [registry.Requesting] does.
func (c *Client) SearchOrphans(ctx context.Context, r wire.OrphanRequest) (registry.WorkItem, error) {
	var out registry.WorkItem
	err := c.ask(ctx, request{method: http.MethodPost, path: "/orphans"}, r, &out)
	return out, err
}
