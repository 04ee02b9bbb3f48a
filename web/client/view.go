package client

import (
	"context"
	"net/http"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// Views lists the caller's saved views by name, then the shared ones of others that the caller may see.
func (c *Client) Views(ctx context.Context) ([]registry.View, error) {
	p, err := get[registry.Page[registry.View]](ctx, c, "/views", nil)
	return p.Rows, err
}

// View returns a saved view; registry.ErrNotFound if there is none that the caller may see.
func (c *Client) View(ctx context.Context, id string) (registry.View, error) {
	return get[registry.View](ctx, c, in("views", id), nil)
}

// AddView saves a view. A repeat of the same request returns the view; registry.ErrViewExists if the
// caller has another one of the name.
func (c *Client) AddView(ctx context.Context, r wire.ViewRequest) (registry.View, error) {
	var out registry.View
	err := c.ask(ctx, request{method: http.MethodPost, path: "/views"}, r, &out)
	return out, err
}

// EditView replaces what one of the caller's views says; registry.ErrViewChanged if it has another
// version than the request.
func (c *Client) EditView(ctx context.Context, id string, r wire.ViewRequest) (registry.View, error) {
	var out registry.View
	err := c.ask(ctx, request{method: http.MethodPut, path: in("views", id)}, r, &out)
	return out, err
}

// RemoveView removes one of the caller's views or, as an admin, a shared one of others;
// registry.ErrNotFound if there is none.
func (c *Client) RemoveView(ctx context.Context, id string) error {
	return c.ask(ctx, request{method: http.MethodDelete, path: in("views", id)}, nil, nil)
}
