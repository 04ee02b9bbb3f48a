package client

import (
	"context"
	"errors"

	"github.com/holdfast/holdfast/registry"
)

// What the contract promises and this client does not have yet.
var errUnbuilt = errors.ErrUnsupported

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
