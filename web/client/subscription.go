package client

import (
	"context"
	"net/http"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// PutSubscription makes a subscription or changes one. The actor is the token's.
func (c *Client) PutSubscription(ctx context.Context, name string, r wire.SubscriptionRequest) (registry.Subscription, error) {
	return c.subscription(ctx, http.MethodPut, name, "", r)
}

// Subscriptions lists all subscriptions by name.
func (c *Client) Subscriptions(ctx context.Context) ([]registry.Subscription, error) {
	p, err := get[registry.Page[registry.Subscription]](ctx, c, "/subscriptions", nil)
	return p.Rows, err
}

// Subscription returns one subscription; registry.ErrNotFound when there is none.
func (c *Client) Subscription(ctx context.Context, name string) (registry.Subscription, error) {
	return get[registry.Subscription](ctx, c, in("subscriptions", name), nil)
}

// RemoveSubscription ends a subscription; registry.ErrNotFound when there is none.
func (c *Client) RemoveSubscription(ctx context.Context, name string) error {
	return c.ask(ctx, request{method: http.MethodDelete, path: in("subscriptions", name)}, nil, nil)
}

// RewindSubscription moves the cursor of a subscription.
func (c *Client) RewindSubscription(ctx context.Context, name string, r wire.CursorRequest) (registry.Subscription, error) {
	return c.subscription(ctx, http.MethodPut, name, "cursor", r)
}

// PauseSubscription has nothing more sent.
func (c *Client) PauseSubscription(ctx context.Context, name, reason string) (registry.Subscription, error) {
	return c.subscription(ctx, http.MethodPut, name, "pause", wire.PauseRequest{Reason: reason})
}

// ResumeSubscription goes on after a pause, and tries one that is failing at once.
func (c *Client) ResumeSubscription(ctx context.Context, name string) (registry.Subscription, error) {
	return c.subscription(ctx, http.MethodDelete, name, "pause", nil)
}

// subscription asks something of a subscription, and returns it as it is then.
func (c *Client) subscription(ctx context.Context, method, name, what string, body any) (registry.Subscription, error) {
	var out registry.Subscription
	path := in("subscriptions", name)
	if what != "" {
		path = in("subscriptions", name, what)
	}
	err := c.ask(ctx, request{method: method, path: path}, body, &out)
	return out, err
}

// PutSubscriptionCredential sets what a subscription shows its receiver, or a key that it signs
// with. The actor is the token's.
func (c *Client) PutSubscriptionCredential(ctx context.Context, name string, r wire.CredentialRequest) (wire.Credential, error) {
	var out wire.Credential
	err := c.ask(ctx, request{method: http.MethodPut, path: in("subscriptions", name, "credentials")}, r, &out)
	return out, err
}

// SubscriptionCredentials lists what a subscription shows its receiver, without the secrets.
func (c *Client) SubscriptionCredentials(ctx context.Context, name string) ([]wire.Credential, error) {
	p, err := get[registry.Page[wire.Credential]](ctx, c, in("subscriptions", name, "credentials"), nil)
	return p.Rows, err
}

// RemoveSubscriptionCredential forgets one of them; registry.ErrNotFound when there is none.
func (c *Client) RemoveSubscriptionCredential(ctx context.Context, name, origin string) error {
	return c.ask(ctx, request{
		method: http.MethodDelete, path: in("subscriptions", name, "credentials"), query: values("origin", origin),
	}, nil, nil)
}
