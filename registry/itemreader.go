package registry

import (
	"context"
	"time"
)

// ItemReader looks up items. Lists use keyset pagination: pass the previous page's Next.
type ItemReader interface {
	// Item returns one item, or ErrNotFound.
	Item(ctx context.Context, id string) (WorkItem, error)
	// Items lists items, newest first. Items of one batch, given by ParentID or by a term, come in
	// row order. *QueryError: query.Parse did not make Match.
	Items(ctx context.Context, q ItemQuery) (Page[WorkItem], error)
	// CountItems counts the items of a query by state. It ignores paging.
	CountItems(ctx context.Context, q ItemQuery) (map[State]int64, error)
	// Failures groups the failed items of a query by cause, largest group first. Limit and After
	// page it as in Items. A status other than failed selects nothing. *QueryError as for Items.
	Failures(ctx context.Context, q ItemQuery) (Page[FailureGroup], error)
	// Events lists an item's events after a feed cursor, oldest first; all items' events if itemID
	// is "".
	Events(ctx context.Context, itemID string, after int64, limit int) ([]Event, error)
	// Why explains what an unsettled item waits for.
	Why(ctx context.Context, id string) (Why, error)
}

// Page is a page of a list.
type Page[T any] struct {
	Rows []T    `json:"rows" nullable:"false"`
	Next string `json:"next,omitempty"` // "" on the last page
}

// ItemQuery selects items; empty fields do not restrict.
type ItemQuery struct {
	Action     Action   `json:"action"`
	ParentID   string   `json:"parent_id"`
	Collection string   `json:"collection"`
	Status     Status   `json:"status"`
	Stage      Stage    `json:"stage"`
	Text       string   `json:"text"`   // text in the name or note
	Match      Query    `json:"match"`  // all terms must match
	Within     []string `json:"within"` // only items of these collections; nil: all, empty: none
	After      string   `json:"after"`
	Limit      int      `json:"limit"` // 0: 50; at most 500
}

// Why is the answer to "why is it waiting?".
type Why struct {
	ItemID   string    `json:"item_id"`
	Reason   Reason    `json:"reason"`
	Sentence string    `json:"sentence"`
	Actor    string    `json:"actor,omitempty"`
	Since    time.Time `json:"since"`
	Act      string    `json:"act,omitempty"` // what would let it continue
}
