package client

import (
	"context"
	"net/url"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

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

// Audit lists what people did and what they were refused, and backups, newest first.
func (c *Client) Audit(ctx context.Context, q registry.AuditQuery) (registry.Page[registry.Event], error) {
	v := values("actor", q.Actor, "after", q.After, "before", q.Before, "limit", number(q.Limit))
	for name, at := range map[string]time.Time{"since": q.Since, "until": q.Until} {
		if !at.IsZero() {
			v[name] = []string{at.UTC().Format(time.RFC3339Nano)}
		}
	}
	if len(q.Types) > 0 {
		v["types"] = []string{join(q.Types)}
	}
	return get[registry.Page[registry.Event]](ctx, c, "/audit", v)
}
