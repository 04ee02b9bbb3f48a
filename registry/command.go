package registry

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Commanding is what people do to items, and to the Registry as a whole.
type Commanding interface {
	// Command applies an admin act to an item at once, whether or not it runs; *TransitionError
	// when the state machine does not have it, *ConfirmationNeeded when it has consequences that c
	// does not confirm. An item that runs loses its attempt to cancel, abort and delete: its worker
	// hears of it by Withdrawn, and a late success is refused (R18). Past the point of no return
	// these three are refused (R7). A repeat with the same idempotency key changes nothing and is
	// answered with the item as it is.
	Command(ctx context.Context, c Command) (WorkItem, error)
	// Bulk makes an item of its own that carries an act out on every item that matches a query at
	// this moment. It runs in the background with progress, can be cancelled, and is one audit
	// entry. ErrIdempotencyConflict as for Submit.
	Bulk(ctx context.Context, b BulkRequest) (WorkItem, error)
	// SetAccepting says whether submissions are taken; a repeat replaces reason and actor. While
	// they are not, Submit and Prepare return *NotAccepting, except to a repeat of a key that was
	// used before, and everything under way goes on.
	SetAccepting(ctx context.Context, a Accepting) error
}

// Command is an admin act asked of an item.
type Command struct {
	ItemID   string `json:"item_id,omitempty"`
	Act      Act    `json:"act,omitempty"`      // one of AllowedActs
	From     Stage  `json:"from,omitempty"`     // requeue: the stage to start again at; "" = where it failed
	Priority *int   `json:"priority,omitempty"` // priority: the new one, lower first; below 0 goes before everything else
	Reason   string `json:"reason,omitempty"`   // hold, and abandon where nobody has asked before: required
	Actor    string `json:"actor,omitempty"`
	// Confirmed says that the consequences were shown and accepted.
	Confirmed bool `json:"confirmed,omitempty"`
	// AgreesTo is abandon: the [Abandonment.Request] of somebody else that the actor was shown and
	// agrees to; "" asks for it.
	AgreesTo       string `json:"agrees_to,omitempty"`
	IdempotencyKey string `json:"idempotency_key,omitempty"`
}

// ConfirmationNeeded refuses an act whose consequences nobody confirmed yet.
type ConfirmationNeeded struct {
	ItemID       string   `json:"item_id"`
	Act          Act      `json:"act"`
	Consequences []string `json:"consequences"` // a sentence each: what notification will be lost, what folders go
	// AgreesTo is what Command.AgreesTo must be with the confirmation.
	AgreesTo string `json:"agrees_to,omitempty"`
}

// Error tells the consequences.
func (e *ConfirmationNeeded) Error() string {
	return fmt.Sprintf("%s of item %s needs a confirmation: %s", e.Act, e.ItemID, strings.Join(e.Consequences, "; "))
}

// PastNoReturn refuses to stop an item that has announced a version of an object: that is only
// rolled forward (R7).
type PastNoReturn struct {
	ItemID    string `json:"item_id"`
	Act       Act    `json:"act"`
	ObjectID  string `json:"object_id"`
	Version   int    `json:"version"`             // 0: it deletes the object
	Preserved bool   `json:"preserved,omitempty"` // the version is recorded, and stays
	Allowed   []Act  `json:"allowed,omitempty"`
}

// Error says what can be done instead.
func (e *PastNoReturn) Error() string {
	if e.Version == 0 {
		return fmt.Sprintf("%s of item %s: past the point of no return: it is deleting %s, which is only carried on", e.Act, e.ItemID, e.ObjectID)
	}
	if e.Preserved {
		return fmt.Sprintf("%s of item %s: past the point of no return: version %d of %s is preserved and stays; allowed here: %s",
			e.Act, e.ItemID, e.Version, e.ObjectID, actsText(e.Allowed))
	}
	text := fmt.Sprintf("%s of item %s: past the point of no return: it is version %d of %s, which is only rolled forward; let it complete, then delete the object",
		e.Act, e.ItemID, e.Version, e.ObjectID)
	if slices.Contains(e.Allowed, ActAbandon) {
		text += "; where it can never complete, two admins may abandon the version"
	}
	return text
}
