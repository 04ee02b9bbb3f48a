package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// Storages lists the storages, and the collections with objects that have too few copies.
func (c *Client) Storages(ctx context.Context) (out wire.StorageReport, err error) {
	err = c.ask(ctx, request{method: http.MethodGet, path: "/storages"}, nil, &out)
	return out, err
}

// StorageObjects lists objects that lack copies, as [registry.Storing] does.
func (c *Client) StorageObjects(ctx context.Context, q registry.StorageObjectsQuery) (registry.Page[registry.StorageObject], error) {
	return get[registry.Page[registry.StorageObject]](ctx, c, "/storage-objects",
		values("storage", q.Storage, "collection", q.Collection, "after", q.After, "limit", number(q.Limit)))
}

// ChangeStorage carries out an act on a storage, as [registry.Storing] does.
func (c *Client) ChangeStorage(ctx context.Context, name string, r wire.StorageRequest) (out registry.StorageChanged, err error) {
	err = c.ask(ctx, request{method: http.MethodPost, path: "/storages/" + url.PathEscape(name)}, r, &out)
	return out, err
}
