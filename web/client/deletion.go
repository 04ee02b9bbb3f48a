package client

import (
	"context"
	"net/http"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// AskDeletion requests the deletion of an object, as registry.Deciding does. The actor is the
// token.
func (c *Client) AskDeletion(ctx context.Context, objectID, reason string) (registry.Deletion, error) {
	return c.decide(ctx, http.MethodPost, in("objects", objectID, "deletion"), wire.DeletionRequest{Reason: reason})
}

// SetTerms replaces an object's terms, as registry.Deciding does, and returns the object. The actor is
// the token.
func (c *Client) SetTerms(ctx context.Context, objectID string, terms registry.Terms, reason string) (registry.Object, error) {
	var out registry.Object
	err := c.ask(ctx, request{method: http.MethodPut, path: in("objects", objectID, "terms")}, wire.TermsRequest{Terms: terms, Reason: reason}, &out)
	return out, err
}

// ApproveDeletion approves a deletion, as registry.Deciding does. The actor is the token.
func (c *Client) ApproveDeletion(ctx context.Context, objectID string) (registry.Deletion, error) {
	return c.decide(ctx, http.MethodPost, in("objects", objectID, "deletion", "approval"), nil)
}

// WithdrawDeletion withdraws or declines a deletion, as registry.Deciding does. The actor is the
// token.
func (c *Client) WithdrawDeletion(ctx context.Context, objectID string) (registry.Deletion, error) {
	return c.decide(ctx, http.MethodDelete, in("objects", objectID, "deletion"), nil)
}

// Deletions lists the deletions that wait for another person's approval, oldest request first.
func (c *Client) Deletions(ctx context.Context, q registry.DeletionQuery) (registry.Page[registry.Deletion], error) {
	return get[registry.Page[registry.Deletion]](ctx, c, "/deletions", values("after", q.After, "limit", number(q.Limit)))
}

func (c *Client) decide(ctx context.Context, method, path string, body any) (registry.Deletion, error) {
	var out registry.Deletion
	err := c.ask(ctx, request{method: method, path: path}, body, &out)
	return out, err
}
