package client

import (
	"context"
	"net/http"
	"strconv"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// Submit submits a payload. With an idempotency key ("" for none) a repeat answers what the first
// one did; a *Problem that is registry.ErrIdempotencyConflict says that the key was used with other
// arguments.
func (c *Client) Submit(ctx context.Context, s wire.SubmitRequest, idempotencyKey string) (wire.SubmitResponse, error) {
	var out wire.SubmitResponse
	err := c.ask(ctx, request{method: http.MethodPost, path: "/batches", header: keyed(idempotencyKey)}, s, &out)
	return out, err
}

// Command asks an act of an item and returns the item after it. The actor is the token's. A
// *Problem that is a *registry.TransitionError names what is allowed instead; one of code
// confirmation-needed, what must be confirmed.
func (c *Client) Command(ctx context.Context, cmd registry.Command) (registry.WorkItem, error) {
	var out registry.WorkItem
	err := c.ask(ctx, request{
		method: http.MethodPost, path: in("items", cmd.ItemID, "commands"), header: keyed(cmd.IdempotencyKey),
	}, wire.CommandRequest{
		Act: string(cmd.Act), From: string(cmd.From), Priority: cmd.Priority, Reason: cmd.Reason, Confirm: cmd.Confirmed, AgreesTo: cmd.AgreesTo,
	}, &out)
	return out, err
}

// Bulk asks an act of every item that matches b.Query's words and returns the item that carries it
// out. The actor is the token's.
func (c *Client) Bulk(ctx context.Context, b wire.BulkRequest, idempotencyKey string) (registry.WorkItem, error) {
	var out registry.WorkItem
	err := c.ask(ctx, request{method: http.MethodPost, path: "/bulk", header: keyed(idempotencyKey)}, b, &out)
	return out, err
}

// AddHold keeps items of a scope from starting. The actor is the token's; a repeat replaces it and
// the reason.
func (c *Client) AddHold(ctx context.Context, h registry.Hold) error {
	return c.ask(ctx, request{method: http.MethodPost, path: "/holds"},
		wire.HoldRequest{Scope: string(h.Scope), Key: h.Key, Reason: h.Reason}, nil)
}

// RemoveHold lets go what no other hold covers; registry.ErrNotFound when there is no such hold.
// The actor is the token's, whatever is named here.
func (c *Client) RemoveHold(ctx context.Context, scope registry.HoldScope, key, _ string) error {
	return c.ask(ctx, request{method: http.MethodDelete, path: "/holds", query: values("scope", string(scope), "key", key)}, nil, nil)
}

// PutCollection creates a collection or makes col.Profile the next version of its profile;
// col.Version is what it is saved over, and *registry.VersionError says that there is another one.
// The actor is the token's, whatever is named here.
func (c *Client) PutCollection(ctx context.Context, col registry.Collection, _ string) error {
	_, err := c.SaveProfile(ctx, col, false)
	return err
}

// SaveProfile is PutCollection that returns the collection as it is afterwards. With dryRun nothing
// is changed, and it returns the collection as it would be.
func (c *Client) SaveProfile(ctx context.Context, col registry.Collection, dryRun bool) (registry.Collection, error) {
	var out registry.Collection
	q := request{method: http.MethodPut, path: in("collections", col.Mnemonic), header: http.Header{}}
	switch {
	case col.Version == registry.NoVersion:
		q.header.Set("If-None-Match", "*")
	case col.Version > 0:
		q.header.Set("If-Match", strconv.Quote(strconv.Itoa(col.Version)))
	}
	if dryRun {
		q.query = values("dry_run", "true")
	}
	err := c.ask(ctx, q, col.Profile, &out)
	return out, err
}

func keyed(idempotencyKey string) http.Header {
	if idempotencyKey == "" {
		return nil
	}
	return http.Header{wire.IdempotencyHeader: {idempotencyKey}}
}
