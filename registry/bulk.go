package registry

import (
	"errors"
	"time"
)

// ErrEmptyQuery refuses a bulk act without conditions, which would apply to all items.
var ErrEmptyQuery = errors.New("a bulk act needs a query with at least one condition")

// BulkSpec is the immutable input of an item of action bulk.
type BulkSpec struct {
	Match  Query    `json:"match"`
	Within []string `json:"within"` // null: all collections; empty: none
	// Parent limits the act to the jobs of this batch. A delete then stops running jobs first.
	Parent   string    `json:"parent,omitempty"`
	Act      Act       `json:"act"`
	From     Stage     `json:"from,omitempty"`
	Priority *int      `json:"priority,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	Confirm  bool      `json:"confirm,omitempty"`
	Matched  int64     `json:"matched"`  // at the time of the request
	AskedAt  time.Time `json:"asked_at"` // items inserted later are not affected
}

// Title describes the act for people.
func (s BulkSpec) Title() string {
	if s.Parent != "" {
		return string(s.Act) + " the jobs of batch " + s.Parent
	}
	return string(s.Act) + " " + s.Match.String()
}

// ResultBulk is the durable result with the progress of a bulk item, a [BulkProgress].
const ResultBulk = "bulk"

// TidySpec is the immutable input of an item of action tidy. It has one of its fields.
type TidySpec struct {
	Subject string        `json:"subject,omitempty"` // the aborted or deleted item
	Orphans *OrphanSearch `json:"orphans,omitempty"` // a search for orphaned data
}

// BulkRequest requests an act on every item that matches a query.
type BulkRequest struct {
	Match          Query    `json:"match"` // needs at least one term, so that nothing is applied to all items by mistake
	Within         []string `json:"within"`
	Act            Act      `json:"act"`
	From           Stage    `json:"from"`
	Priority       *int     `json:"priority"`
	Reason         string   `json:"reason"`
	Actor          string   `json:"actor"`
	IdempotencyKey string   `json:"idempotency_key"`
	Confirmed      bool     `json:"confirmed"` // as in Command, for each item
}

// BulkProgress is the progress of a bulk act.
type BulkProgress struct {
	Done    bool  `json:"done"`
	Matched int64 `json:"matched"` // when it was asked for
	Applied int64 `json:"applied"`
	Refused int64 `json:"refused"`
	// Refusals are the first few refusals, for people.
	Refusals []string `json:"refusals,omitempty"`
}
