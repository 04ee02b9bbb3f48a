package client

import (
	"context"
	"net/http"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/wire"
)

// SearchOrphans implements registry.Administering.
func (s *Store) SearchOrphans(ctx context.Context, r registry.OrphanRequest) (registry.WorkItem, error) {
	if err := checkKeys("look for orphans", r.IdempotencyKey); err != nil {
		return registry.WorkItem{}, err
	}
	return call[registry.WorkItem](ctx, s, "search-orphans", r)
}

// SearchOrphans makes an item that looks for what belongs to nobody, as [registry.Administering] does.
func (c *Client) SearchOrphans(ctx context.Context, r wire.OrphanRequest) (registry.WorkItem, error) {
	var out registry.WorkItem
	err := c.ask(ctx, request{method: http.MethodPost, path: "/orphans"}, r, &out)
	return out, err
}
