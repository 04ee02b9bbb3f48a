package client

import (
	"context"
	"net/http"
	"strconv"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// Restore requests a version of an object (0: the newest) as one file. If the same restore is under
// way or ready, it returns that one. With an idempotency key ("" for none), a repeat gets the first
// one's answer.
func (c *Client) Restore(ctx context.Context, objectID string, version int, reason, idempotencyKey string) (registry.Restoration, error) {
	var out registry.Restoration
	err := c.ask(ctx, request{method: http.MethodPost, path: in("objects", objectID, "restores"), header: keyed(idempotencyKey)},
		wire.RestoreRequest{Version: version, Reason: reason}, &out)
	return out, err
}

// Restorations lists the restores of an object, newest first: those with a number below before, or
// all if before is 0.
func (c *Client) Restorations(ctx context.Context, objectID string, before, limit int) ([]registry.Restoration, error) {
	p, err := get[registry.Page[registry.Restoration]](ctx, c, in("objects", objectID, "restores"), values("after", number(before), "limit", number(limit)))
	return p.Rows, err
}

// RestorationOf returns the restore that an item carries out; registry.ErrNotFound if the item is
// not a restore.
func (c *Client) RestorationOf(ctx context.Context, itemID string) (registry.Restoration, error) {
	return get[registry.Restoration](ctx, c, in("items", itemID, "restore"), nil)
}

// Restored opens the file of a restore at an offset, as [Client.Content] does.
func (c *Client) Restored(ctx context.Context, r registry.Restoration, offset int64) (*Content, error) {
	return c.content(ctx, request{path: in("objects", r.ObjectID, "restores", strconv.Itoa(r.N), "content")}, r.Name, offset)
}
