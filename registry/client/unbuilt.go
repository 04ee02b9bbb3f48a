package client

import (
	"context"
	"errors"

	"github.com/holdfast/holdfast/registry"
)

// What the contract promises and this client does not have yet.
var errUnbuilt = errors.ErrUnsupported

// Prepare implements registry.Submitting.
func (c *Client) Prepare(context.Context, registry.Graph) (registry.PreparedGraph, error) {
	return registry.PreparedGraph{}, errUnbuilt
}

// Seal implements registry.Submitting.
func (c *Client) Seal(context.Context, string, string) error { return errUnbuilt }

// Graph implements registry.Reading.
func (c *Client) Graph(context.Context, string) (registry.GraphView, error) {
	return registry.GraphView{}, errUnbuilt
}

// Edges implements registry.Reading.
func (c *Client) Edges(context.Context, string) (requires, required []registry.Edge, err error) {
	return nil, nil, errUnbuilt
}

// Withdrawn implements registry.Working.
func (c *Client) Withdrawn(context.Context, string, int64) ([]registry.Lease, int64, error) {
	return nil, 0, errUnbuilt
}

// ApplyNext implements registry.Working.
func (c *Client) ApplyNext(context.Context, registry.Lease) (registry.BulkProgress, error) {
	return registry.BulkProgress{}, errUnbuilt
}

// SetAccepting implements registry.Administering.
func (c *Client) SetAccepting(context.Context, registry.Accepting) error { return errUnbuilt }

// QueueStatus implements registry.Reading.
func (c *Client) QueueStatus(context.Context) (registry.QueueStatus, error) {
	return registry.QueueStatus{}, errUnbuilt
}

// Tokens implements registry.Administering.
func (c *Client) Tokens(context.Context) ([]registry.Token, error) { return nil, errUnbuilt }

// RevokeToken implements registry.Administering.
func (c *Client) RevokeToken(context.Context, string, string) error { return errUnbuilt }

// Refused implements registry.Administering.
func (c *Client) Refused(context.Context, registry.Refusal) error { return errUnbuilt }

// Feed implements registry.Reading.
func (c *Client) Feed(context.Context, registry.FeedQuery) ([]registry.Event, error) {
	return nil, errUnbuilt
}

// FeedEnd implements registry.Reading.
func (c *Client) FeedEnd(context.Context) (int64, error) { return 0, errUnbuilt }

// AwaitFeed implements registry.Reading.
func (c *Client) AwaitFeed(context.Context, int64) error { return errUnbuilt }
