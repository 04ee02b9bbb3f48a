package client

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// feedWait is how long the server is asked to wait for an event.
const feedWait = 15 * time.Second

func feedValues(q registry.FeedQuery) url.Values {
	v := values("after", number(max(q.After, 0)), "item", q.ItemID, "limit", number(q.Limit))
	if len(q.Types) > 0 {
		v["types"] = []string{join(q.Types)}
	}
	if len(q.Within) > 0 {
		v["collections"] = []string{join(q.Within)}
	}
	return v
}

// Feed lists events after a cursor, oldest first.
func (c *Client) Feed(ctx context.Context, q registry.FeedQuery) ([]registry.Event, error) {
	if q.Within != nil && len(q.Within) == 0 {
		return nil, nil
	}
	f, err := get[wire.Feed](ctx, c, "/feed", feedValues(q))
	if len(f.Rows) == 0 {
		return nil, err
	}
	return f.Rows, err
}

// FeedEnd returns the cursor of the newest event, 0 when there is none.
func (c *Client) FeedEnd(ctx context.Context) (int64, error) {
	f, err := get[wire.Feed](ctx, c, "/feed", url.Values{"limit": {"1"}})
	return f.End, err
}

// AwaitFeed returns nil soon after there is an event beyond a cursor; ctx's error when that ends
// first.
func (c *Client) AwaitFeed(ctx context.Context, after int64) error {
	query := url.Values{"after": {strconv.FormatInt(after, 10)}, "limit": {"1"}, "wait": {strconv.Itoa(int(feedWait / time.Second))}}
	for {
		f, err := get[wire.Feed](ctx, c, "/feed", query)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return err
		case f.End > after:
			return nil
		}
	}
}

// Audit lists what people did and were refused, newest first.
func (c *Client) Audit(ctx context.Context, q registry.AuditQuery) (registry.Page[registry.Event], error) {
	v := values("actor", q.Actor, "after", q.After, "limit", number(q.Limit))
	if len(q.Types) > 0 {
		v["types"] = []string{join(q.Types)}
	}
	return get[registry.Page[registry.Event]](ctx, c, "/audit", v)
}

// Refused is not for clients: what somebody is refused is noted where it is refused.
func (c *Client) Refused(context.Context, registry.Refusal) error {
	return errors.ErrUnsupported
}
