package client

import (
	"context"
	"net/http"
	"strconv"

	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// Submit submits a payload. With an idempotency key ("" for none), a repeat gets the first one's
// answer. A *Problem that is registry.ErrIdempotencyConflict says that the key was used with other
// arguments.
func (c *Client) Submit(ctx context.Context, s wire.SubmitRequest, idempotencyKey string) (wire.SubmitResponse, error) {
	var out wire.SubmitResponse
	err := c.ask(ctx, request{method: http.MethodPost, path: "/batches", header: keyed(idempotencyKey)}, s, &out)
	return out, err
}

// CheckSubmission checks a request as Submit would, as far as that is possible without its payload.
// It submits nothing.
func (c *Client) CheckSubmission(ctx context.Context, s wire.SubmitRequest) error {
	return c.ask(ctx, request{method: http.MethodPost, path: "/batches", query: tried(true)}, s, nil)
}

// Command asks for an act on an item and returns the item afterwards. The actor is the token. A
// *Problem that is a *registry.TransitionError lists the acts that the item allows. A *Problem of
// code confirmation-needed lists what must be confirmed. A dry run changes nothing, and answers as the
// act would.
func (c *Client) Command(ctx context.Context, cmd registry.Command) (registry.WorkItem, error) {
	var out registry.WorkItem
	err := c.ask(ctx, request{
		method: http.MethodPost, path: in("items", cmd.ItemID, "commands"), header: keyed(cmd.IdempotencyKey),
	}, wire.ItemCommandRequest{DryRun: cmd.DryRun, CommandRequest: wire.CommandRequest{
		Act: string(cmd.Act), From: string(cmd.From), Priority: cmd.Priority, Reason: cmd.Reason, Confirm: cmd.Confirmed, AgreesTo: cmd.AgreesTo,
	}}, &out)
	return out, err
}

// CancelBatch cancels a batch and returns it afterwards. A depositor's token may cancel those that it
// submitted. A *Problem that is a *registry.TransitionError says that it is too late.
func (c *Client) CancelBatch(ctx context.Context, id, reason, idempotencyKey string) (registry.WorkItem, error) {
	var out registry.WorkItem
	err := c.ask(ctx, request{method: http.MethodPost, path: in("batches", id, "cancel"), header: keyed(idempotencyKey)}, wire.CancelRequest{Reason: reason}, &out)
	return out, err
}

// Bulk asks for an act on every item that matches b.Query. It returns the item that does so in the
// background. The actor is the token.
func (c *Client) Bulk(ctx context.Context, b wire.BulkRequest, idempotencyKey string) (registry.WorkItem, error) {
	var out registry.WorkItem
	err := c.ask(ctx, request{method: http.MethodPost, path: "/bulk", header: keyed(idempotencyKey)}, b, &out)
	return out, err
}

// PreviewBulk returns what Bulk would do now.
func (c *Client) PreviewBulk(ctx context.Context, b wire.BulkRequest) (registry.BulkPreview, error) {
	var out registry.BulkPreview
	err := c.ask(ctx, request{method: http.MethodPost, path: "/bulk/preview"}, b, &out)
	return out, err
}

// AddHold stops the items of a scope from starting their next step. The actor is the token. A
// repeat replaces actor and reason.
func (c *Client) AddHold(ctx context.Context, h registry.Hold) error {
	return c.ask(ctx, request{method: http.MethodPost, path: "/holds"},
		wire.HoldRequest{Scope: string(h.Scope), Key: h.Key, Reason: h.Reason}, nil)
}

// RemoveHold removes a hold. Items that another hold covers stay held. It returns
// registry.ErrNotFound if there is no such hold. The actor is the token.
func (c *Client) RemoveHold(ctx context.Context, scope registry.HoldScope, key string) error {
	return c.ask(ctx, request{method: http.MethodDelete, path: "/holds", query: values("scope", string(scope), "key", key)}, nil, nil)
}

// PutCollection creates a collection, or makes col.Profile the next version of its profile.
// col.Version is the version to replace; *registry.VersionError says that the collection has
// another one. The actor is the token.
func (c *Client) PutCollection(ctx context.Context, col registry.Collection) error {
	_, err := c.SaveProfile(ctx, col, false)
	return err
}

// SaveProfile is PutCollection, and returns the collection afterwards. With dryRun it changes
// nothing and returns the collection as it would be.
func (c *Client) SaveProfile(ctx context.Context, col registry.Collection, dryRun bool) (registry.Collection, error) {
	var out registry.Collection
	q := request{method: http.MethodPut, path: in("collections", col.Mnemonic), header: http.Header{}}
	switch {
	case col.Version == registry.NoVersion:
		q.header.Set("If-None-Match", "*")
	case col.Version > 0:
		q.header.Set("If-Match", strconv.Quote(strconv.Itoa(col.Version)))
	}
	q.query = tried(dryRun)
	err := c.ask(ctx, q, col.Profile, &out)
	return out, err
}

func keyed(idempotencyKey string) http.Header {
	if idempotencyKey == "" {
		return nil
	}
	return http.Header{wire.IdempotencyHeader: {idempotencyKey}}
}

// CheckUpload judges an upload as a submission of type t to a collection would, and keeps it. A
// *Problem of code judging says that this takes longer: ask again.
func (c *Client) CheckUpload(ctx context.Context, id, collection string, t registry.PayloadType) (intake.Report, error) {
	var out intake.Report
	err := c.ask(ctx, request{method: http.MethodPost, path: "/check", query: values("upload_id", id, "collection", collection, "type", string(t))}, nil, &out)
	return out, err
}
