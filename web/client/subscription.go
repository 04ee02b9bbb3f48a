package client

import (
	"context"
	"net/http"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// PutSubscription creates or changes a subscription. The actor is the token.
func (c *Client) PutSubscription(ctx context.Context, name string, r wire.SubscriptionRequest) (registry.Subscription, error) {
	return c.subscription(ctx, http.MethodPut, name, "", r)
}

// Subscriptions lists all subscriptions by name.
func (c *Client) Subscriptions(ctx context.Context) ([]registry.Subscription, error) {
	p, err := get[registry.Page[registry.Subscription]](ctx, c, "/subscriptions", nil)
	return p.Rows, err
}

// Subscription returns a subscription; registry.ErrNotFound if there is none.
func (c *Client) Subscription(ctx context.Context, name string) (registry.Subscription, error) {
	return get[registry.Subscription](ctx, c, in("subscriptions", name), nil)
}

// RemoveSubscription removes a subscription; registry.ErrNotFound if there is none.
func (c *Client) RemoveSubscription(ctx context.Context, name string) error {
	return c.ask(ctx, request{method: http.MethodDelete, path: in("subscriptions", name)}, nil, nil)
}

// RewindSubscription moves the cursor of a subscription.
func (c *Client) RewindSubscription(ctx context.Context, name string, r wire.CursorRequest) (registry.Subscription, error) {
	return c.subscription(ctx, http.MethodPut, name, "cursor", r)
}

// PauseSubscription stops sending events to a subscription.
func (c *Client) PauseSubscription(ctx context.Context, name, reason string) (registry.Subscription, error) {
	return c.subscription(ctx, http.MethodPut, name, "pause", wire.PauseRequest{Reason: reason})
}

// ResumeSubscription ends a pause. A failing subscription is tried at once.
func (c *Client) ResumeSubscription(ctx context.Context, name string) (registry.Subscription, error) {
	return c.subscription(ctx, http.MethodDelete, name, "pause", nil)
}

// subscription sends a request about a subscription and returns the subscription afterwards.
func (c *Client) subscription(ctx context.Context, method, name, what string, body any) (registry.Subscription, error) {
	var out registry.Subscription
	path := in("subscriptions", name)
	if what != "" {
		path = in("subscriptions", name, what)
	}
	err := c.ask(ctx, request{method: method, path: path}, body, &out)
	return out, err
}

// PutSubscriptionCredential sets a credential for the receiver, or a signing key. The actor is the
// token.
func (c *Client) PutSubscriptionCredential(ctx context.Context, name string, r wire.CredentialRequest) (wire.Credential, error) {
	var out wire.Credential
	err := c.ask(ctx, request{method: http.MethodPut, path: in("subscriptions", name, "credentials")}, r, &out)
	return out, err
}

// SubscriptionCredentials lists a subscription's credentials, without the secrets.
func (c *Client) SubscriptionCredentials(ctx context.Context, name string) ([]wire.Credential, error) {
	p, err := get[registry.Page[wire.Credential]](ctx, c, in("subscriptions", name, "credentials"), nil)
	return p.Rows, err
}

// RemoveSubscriptionCredential removes a credential; registry.ErrNotFound if there is none.
func (c *Client) RemoveSubscriptionCredential(ctx context.Context, name, origin string) error {
	return c.ask(ctx, request{
		method: http.MethodDelete, path: in("subscriptions", name, "credentials"), query: values("origin", origin),
	}, nil, nil)
}
