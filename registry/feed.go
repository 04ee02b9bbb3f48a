package registry

import "context"

// Feeds is what happened to all items, in the order in which it did.
type Feeds interface {
	// Feed lists events of all items after a cursor, oldest first.
	Feed(ctx context.Context, q FeedQuery) ([]Event, error)
	// FeedEnd returns the cursor of the newest event, 0 when there is none.
	FeedEnd(ctx context.Context) (int64, error)
	// AwaitFeed returns nil soon after there is an event beyond a cursor, at once when there is one already; ctx's error
	// when that ends first.
	AwaitFeed(ctx context.Context, after int64) error
	// Audit lists what people did and were refused, newest first.
	Audit(ctx context.Context, q AuditQuery) (Page[Event], error)
}

// FeedQuery selects events of the feed; empty fields do not restrict.
type FeedQuery struct {
	After  int64    `json:"after"`             // the cursor of the last event that was seen
	ItemID string   `json:"item_id,omitempty"` // only events of this item
	Types  []string `json:"types"`             // only events of these types
	Within []string `json:"within"`            // only events of items in these collections; nil: all, empty: none
	Limit  int      `json:"limit"`             // 0: 50; at most 500
}

// FeedPage is a part of the feed.
type FeedPage struct {
	Events []Event
	Next   int64 // the cursor to go on after: past events that were not asked for, too, so that nobody looks through them again
	End    int64 // the cursor of the newest event
}

// ReadFeed reads a page, whose limit must be given, and finds the cursor to go on with.
func ReadFeed(ctx context.Context, r interface {
	Feed(ctx context.Context, q FeedQuery) ([]Event, error)
	FeedEnd(ctx context.Context) (int64, error)
}, q FeedQuery,
) (FeedPage, error) {
	end, err := r.FeedEnd(ctx) // first: all up to it is seen by the reading that follows
	if err != nil {
		return FeedPage{}, err
	}
	events, err := r.Feed(ctx, q)
	if err != nil {
		return FeedPage{}, err
	}
	p := FeedPage{Events: events, End: end, Next: max(q.After, end)}
	if len(events) > 0 {
		last := events[len(events)-1].Seq
		p.End = max(end, last)
		if len(events) >= q.Limit || last > end {
			p.Next = last
		}
	}
	return p, nil
}

// AuditQuery selects entries of the audit log: what people asked and what they were refused, not what workers and the
// Registry did by themselves. An act on many items is one entry. Empty fields do not restrict.
type AuditQuery struct {
	Actor string   `json:"actor"` // who asked: the name of a token
	Types []string `json:"types"` // only entries of these types
	After string   `json:"after"` // Next of the page before
	Limit int      `json:"limit"` // 0: 50; at most 500
}

// Types of events that are no act on an item.
const (
	EventTokenCreated = "token-created"
	EventTokenRevoked = "token-revoked"
	EventRefused      = "refused"
	// Those about credentials tell collection, origin, kind and name, and no secret.
	EventCredentialSet     = "credential-set"
	EventCredentialRemoved = "credential-removed"
)
