package client

import (
	"context"
	"net/http"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// CreateToken makes a token and returns it with its secret, which is never told again.
// registry.ErrNameTaken when there is or was one of this name.
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

// OwnToken returns the token by which this client asks.
func (c *Client) OwnToken(ctx context.Context) (registry.Token, error) {
	return get[registry.Token](ctx, c, "/token", nil)
}

// RevokeToken makes a token useless from now on. registry.ErrNotFound when there is none,
// registry.ErrLastAdmin when it is the last admin's. The actor is this client's token, whatever is
// named here.
func (c *Client) RevokeToken(ctx context.Context, id, _ string) error {
	return c.ask(ctx, request{method: http.MethodDelete, path: in("tokens", id)}, nil, nil)
}

// MakeSignInLink makes a link by which a browser signs in as this client's token, once, within ten
// minutes.
func (c *Client) MakeSignInLink(ctx context.Context) (wire.SignInLink, error) {
	var out wire.SignInLink
	err := c.ask(ctx, request{method: http.MethodPost, path: "/sign-in-links"}, nil, &out)
	return out, err
}

// Sessions lists the browsers' sessions of whoever asks, the last used first; everybody's for an
// admin.
func (c *Client) Sessions(ctx context.Context) ([]registry.Session, error) {
	p, err := get[registry.Page[registry.Session]](ctx, c, "/sessions", nil)
	return p.Rows, err
}

// EndSession ends a session that Sessions lists: its browser must sign in again.
// registry.ErrNotFound for all others, also the second time.
func (c *Client) EndSession(ctx context.Context, id string) error {
	return c.ask(ctx, request{method: http.MethodDelete, path: in("sessions", id)}, nil, nil)
}
