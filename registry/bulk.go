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
	// Parent limits the act to the jobs of a batch that it was asked of: a delete stops first what still runs.
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
