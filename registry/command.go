package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Commanding is what people do to items, and to the Registry as a whole.
type Commanding interface {
	// Command applies an admin act to an item at once, whether or not the item runs.
	// *TransitionError: the state machine does not allow the act. *ConfirmationNeeded: it has
	// consequences that c does not confirm. Cancel, abort and delete withdraw a running attempt:
	// its worker learns it by Withdrawn, and a late success is refused (R18). Past the point of no
	// return these three are refused (R7). A repeated idempotency key changes nothing and returns
	// the item. A dry run changes nothing; it returns the item as it would be, or the error that the
	// act would return.
	Command(ctx context.Context, c Command) (WorkItem, error)
	// Bulk creates an item that carries out an act on every item that matches a query now. It runs
	// in the background with progress, can be cancelled, and is one audit entry.
	// ErrIdempotencyConflict as for Submit.
	//
	// With b.GraceSeconds it starts no earlier than that. Until then, a cancel withdraws the act as
	// a whole: nothing has changed.
	Bulk(ctx context.Context, b BulkRequest) (WorkItem, error)
	// PreviewBulk returns what Bulk would do now, and changes nothing. It knows the state machine.
	// What only an item's own input decides, such as whether its receiver is still to be notified,
	// shows when the act runs.
	PreviewBulk(ctx context.Context, b BulkRequest) (BulkPreview, error)
	// SetAccepting turns the acceptance of submissions on or off; a repeat replaces reason and
	// actor. While it is off, Submit and Prepare return *NotAccepting, except for a repeated
	// idempotency key. Accepted work continues.
	SetAccepting(ctx context.Context, a Accepting) error
	// Drain holds everything, and tells running steps to stop at their next safe point: their
	// workers learn it with their next renewals, and release the items uncounted. Attempts that
	// still live at d.Until are withdrawn by the sweep. The drain goes on until the hold on
	// everything is removed; then all items continue. A repeat replaces the time, actor and reason.
	// ErrInvalid: there is no time, or no reason.
	Drain(ctx context.Context, d Drain) error
}

// Command is an admin act on an item.
type Command struct {
	ItemID   string `json:"item_id,omitempty"`
	Act      Act    `json:"act,omitempty"`      // one of AllowedActs
	From     Stage  `json:"from,omitempty"`     // requeue: the stage to restart at; "": where it failed
	Priority *int   `json:"priority,omitempty"` // priority: the new value, lower first; below 0 is express
	Reason   string `json:"reason,omitempty"`   // required for hold, and for the first request to abandon
	Actor    string `json:"actor,omitempty"`
	// Confirmed reports that the person has seen and accepted the consequences.
	Confirmed bool `json:"confirmed,omitempty"`
	// AgreesTo is for abandon: the [Abandonment.Request] of another person that the actor approves;
	// "" makes a request.
	AgreesTo       string `json:"agrees_to,omitempty"`
	IdempotencyKey string `json:"idempotency_key,omitempty"`
	// DryRun asks what the act would do: it is carried out and undone at once, so that it answers as
	// the act would, and changes nothing. Its idempotency key is ignored.
	DryRun bool `json:"dry_run,omitempty"`
}

// ConfirmationNeeded is the error for an act whose consequences are not confirmed.
type ConfirmationNeeded struct {
	ItemID       string   `json:"item_id"`
	Act          Act      `json:"act"`
	Consequences []string `json:"consequences"` // one sentence each: which notification is lost, which folders are removed
	// Entails are the consequences as statements, which pages word in the reader's language.
	Entails []Statement `json:"entails,omitempty"`
	// AgreesTo is the value that Command.AgreesTo needs with the confirmation.
	AgreesTo string `json:"agrees_to,omitempty"`
}

// Error lists the consequences.
func (e *ConfirmationNeeded) Error() string {
	return fmt.Sprintf("%v of item %s needs a confirmation: %v", e.Act, e.ItemID, strings.Join(e.Consequences, "; "))
}

// PastNoReturn is the error for stopping an item that has announced a version of an object. Such an
// item is only rolled forward (R7).
type PastNoReturn struct {
	ItemID    string `json:"item_id"`
	Act       Act    `json:"act"`
	ObjectID  string `json:"object_id"`
	Version   int    `json:"version"`             // 0: it deletes the object
	Preserved bool   `json:"preserved,omitempty"` // the version is recorded, and stays
	Allowed   []Act  `json:"allowed,omitempty"`
}

// Error says which acts are possible instead.
func (e *PastNoReturn) Error() string {
	if e.Version == 0 {
		return fmt.Sprintf("%v of item %s: past the point of no return: it is deleting %s, which cannot be stopped", e.Act, e.ItemID, e.ObjectID)
	}
	if e.Preserved {
		return fmt.Sprintf("%v of item %s: past the point of no return: version %d of %s is preserved and stays; allowed here: %v",
			e.Act, e.ItemID, e.Version, e.ObjectID, actsText(e.Allowed))
	}
	text := fmt.Sprintf("%v of item %s: past the point of no return: it is version %d of %s, which is only rolled forward; let it complete, then delete the object",
		e.Act, e.ItemID, e.Version, e.ObjectID)
	if slices.Contains(e.Allowed, ActAbandon) {
		text += "; where it can never complete, two admins may abandon the version"
	}
	return text
}

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
	// GraceSeconds is how long the act waited before its start, so that it could be withdrawn.
	GraceSeconds int `json:"grace_seconds,omitempty"`
}

// Title describes the act for people. Items that were chosen one by one are counted.
func (s BulkSpec) Title() string {
	if s.Parent != "" {
		return fmt.Sprintf("%v the jobs of batch %s", s.Act, s.Parent)
	}
	switch chosen := s.Match.Chosen(); len(chosen) {
	case 0:
	case 1:
		return fmt.Sprintf("%v 1 chosen item", s.Act)
	default:
		return fmt.Sprintf("%v %s chosen items", s.Act, CountText(int64(len(chosen))))
	}
	return string(s.Act) + " " + s.Match.String()
}

// Text describes the act with its reason.
func (s BulkSpec) Text() string {
	text := s.Title()
	if int64(len(s.Match.Chosen())) != s.Matched {
		items := " items"
		if s.Matched == 1 {
			items = " item"
		}
		text += " (" + CountText(s.Matched) + items + ")"
	}
	if s.Reason != "" {
		text = fmt.Sprintf("%v, reason: %s", text, s.Reason)
	}
	return text
}

// BulkSpecIn returns the request of a bulk act from an item's spec; ok is false if it is none.
func BulkSpecIn(raw json.RawMessage) (s BulkSpec, ok bool) {
	err := json.Unmarshal(raw, &s)
	return s, err == nil && s.Act != ""
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
	// GraceSeconds delays the start, at most [MostGrace].
	GraceSeconds int `json:"grace_seconds"`
}

// MostGrace is the largest number of seconds by which a bulk act can be delayed.
const MostGrace = 3600

// BulkPreview is what a bulk act would do.
type BulkPreview struct {
	Matched int64      `json:"matched"`
	Applies int64      `json:"applies"` // to so many of them
	Parts   []BulkPart `json:"parts" nullable:"false"`
}

// BulkPart is a group of the items that match. Those to which the act applies come first, then the
// larger groups.
type BulkPart struct {
	State   State  `json:"state"`
	Count   int64  `json:"count"`
	Skipped string `json:"skipped,omitempty"` // why the act does not apply; "" if it does
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
