package registry

import (
	"context"
	"time"
)

// ItemReader is what people, pages and steps look up of items. Lists are paged by key: pass the
// last page's Next to go on.
type ItemReader interface {
	// Item returns one item, or ErrNotFound.
	Item(ctx context.Context, id string) (WorkItem, error)
	// Items lists items, newest first; children of one batch, named by ParentID or by a term, in
	// row order. *QueryError for a Match that ParseQuery did not make.
	Items(ctx context.Context, q ItemQuery) (Page[WorkItem], error)
	// CountItems counts the items that a query selects by the state that people see; paging is
	// ignored.
	CountItems(ctx context.Context, q ItemQuery) (map[State]int64, error)
	// Failures groups the failed items that a query selects by their cause, the largest group
	// first. Its fields, Limit and After are those of Items; a status other than failed selects
	// nothing. *QueryError as for Items.
	Failures(ctx context.Context, q ItemQuery) (Page[FailureGroup], error)
	// Events lists an item's events (all items' when itemID is ""), oldest first, after a feed
	// cursor.
	Events(ctx context.Context, itemID string, after int64, limit int) ([]Event, error)
	// Why says what an unsettled item waits for.
	Why(ctx context.Context, id string) (Why, error)
}

// Page is a part of a list.
type Page[T any] struct {
	Rows []T    `json:"rows" nullable:"false"`
	Next string `json:"next,omitempty"` // "" when this is the end
}

// ItemQuery selects items; empty fields do not restrict.
type ItemQuery struct {
	Action     Action   `json:"action"`
	ParentID   string   `json:"parent_id"`
	Collection string   `json:"collection"`
	Status     Status   `json:"status"`
	Stage      Stage    `json:"stage"`
	Text       string   `json:"text"`   // part of the name or the note
	Match      Query    `json:"match"`  // all of its terms
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
	Act      string    `json:"act,omitempty"` // what would let it go
}
