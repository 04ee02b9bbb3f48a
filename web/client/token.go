package client

import (
	"context"
	"net/http"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// CreateToken creates a token and returns it with its secret, which cannot be read again. It
// returns registry.ErrNameTaken if a token has or had this name.
func (c *Client) CreateToken(ctx context.Context, r wire.TokenRequest) (wire.TokenResponse, error) {
	var out wire.TokenResponse
	err := c.ask(ctx, request{method: http.MethodPost, path: "/tokens"}, r, &out)
	return out, err
}

// Tokens lists all tokens, revoked ones too, oldest first.
func (c *Client) Tokens(ctx context.Context) ([]registry.Token, error) {
	p, err := get[registry.Page[registry.Token]](ctx, c, "/tokens", nil)
	return p.Rows, err
}

// OwnToken returns the token of this client.
func (c *Client) OwnToken(ctx context.Context) (registry.Token, error) {
	return get[registry.Token](ctx, c, "/token", nil)
}

// RevokeToken revokes a token at once. It returns registry.ErrNotFound if there is none, and
// registry.ErrLastAdmin if it is the last admin's. The actor is this client's
// token.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	return c.ask(ctx, request{method: http.MethodDelete, path: in("tokens", id)}, nil, nil)
}

// MakeSignInLink returns a link that signs in a browser as this client's token, once and within ten
// minutes.
func (c *Client) MakeSignInLink(ctx context.Context) (wire.SignInLink, error) {
	var out wire.SignInLink
	err := c.ask(ctx, request{method: http.MethodPost, path: "/sign-in-links"}, nil, &out)
	return out, err
}

// Sessions lists the caller's browser sessions, last used first; an admin sees those of all users.
func (c *Client) Sessions(ctx context.Context) ([]registry.Session, error) {
	p, err := get[registry.Page[registry.Session]](ctx, c, "/sessions", nil)
	return p.Rows, err
}

// EndSession ends a session that Sessions lists; its browser must sign in again. It returns
// registry.ErrNotFound for others and for ended ones.
func (c *Client) EndSession(ctx context.Context, id string) error {
	return c.ask(ctx, request{method: http.MethodDelete, path: in("sessions", id)}, nil, nil)
}
