package registry

import (
	"errors"
	"time"
)

// ErrEmptyQuery refuses a bulk act that names nothing: it would be done to everything by mistake.
var ErrEmptyQuery = errors.New("a bulk act needs a query with at least one condition")

// BulkSpec is the immutable input of an item of action bulk.
type BulkSpec struct {
	Match  Query    `json:"match"`
	Within []string `json:"within"` // null: all collections; an empty list: none
	// Parent limits the act to the jobs of a batch that it was asked of: a delete stops first what
	// still runs.
	Parent   string    `json:"parent,omitempty"`
	Act      Act       `json:"act"`
	From     Stage     `json:"from,omitempty"`
	Priority *int      `json:"priority,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	Confirm  bool      `json:"confirm,omitempty"`
	Matched  int64     `json:"matched"`  // when it was asked for
	AskedAt  time.Time `json:"asked_at"` // items that were made later are left alone
}

// Title says for people what the act is about.
func (s BulkSpec) Title() string {
	if s.Parent != "" {
		return string(s.Act) + " the jobs of batch " + s.Parent
	}
	return string(s.Act) + " " + s.Match.String()
}

// ResultBulk names the durable result of a bulk item that says how far it is, a [BulkProgress].
const ResultBulk = "bulk"

// TidySpec is the immutable input of an item of action tidy, which has one of the two.
type TidySpec struct {
	Subject string        `json:"subject,omitempty"` // the item that was given up
	Orphans *OrphanSearch `json:"orphans,omitempty"` // what belongs to no item
}

// BulkRequest asks an act of every item that matches a query.
type BulkRequest struct {
	Match          Query    `json:"match"` // must have a term: nothing is done to everything by mistake
	Within         []string `json:"within"`
	Act            Act      `json:"act"`
	From           Stage    `json:"from"`
	Priority       *int     `json:"priority"`
	Reason         string   `json:"reason"`
	Actor          string   `json:"actor"`
	IdempotencyKey string   `json:"idempotency_key"`
	Confirmed      bool     `json:"confirmed"` // for each item as in Command
}

// BulkProgress is how far a bulk act is.
type BulkProgress struct {
	Done    bool  `json:"done"`
	Matched int64 `json:"matched"` // when it was asked for
	Applied int64 `json:"applied"`
	Refused int64 `json:"refused"`
	// Refusals are the first few, for people.
	Refusals []string `json:"refusals,omitempty"`
}
