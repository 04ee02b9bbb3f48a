package client

import (
	"context"
	"net/http"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// PutCredential sets the credential of a collection for an origin, replacing an earlier one. The
// actor is the token.
func (c *Client) PutCredential(ctx context.Context, collection string, r wire.CredentialRequest) (wire.Credential, error) {
	var out wire.Credential
	err := c.ask(ctx, request{method: http.MethodPut, path: in("collections", collection, "credentials")}, r, &out)
	return out, err
}

// Credentials lists a collection's credentials by origin, without their secrets.
func (c *Client) Credentials(ctx context.Context, collection string) ([]wire.Credential, error) {
	p, err := get[registry.Page[wire.Credential]](ctx, c, in("collections", collection, "credentials"), nil)
	return p.Rows, err
}

// RemoveCredential removes a credential; registry.ErrNotFound if there is none. The actor is the
// token.
func (c *Client) RemoveCredential(ctx context.Context, collection, origin string) error {
	return c.ask(ctx, request{
		method: http.MethodDelete, path: in("collections", collection, "credentials"), query: values("origin", origin),
	}, nil, nil)
}
