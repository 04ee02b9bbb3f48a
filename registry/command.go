package registry

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

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
	// AgreesTo is abandon: the [Abandonment.Request] of somebody else that the actor was shown and agrees to; "" asks for it.
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

// PastNoReturn refuses to stop an item that has announced a version of an object: that is only rolled forward (R7).
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

// Accepting says whether submissions are taken. Where nobody ever said so, they are, since the zero time.
type Accepting struct {
	On     bool      `json:"on"`
	Reason string    `json:"reason,omitempty"`
	Actor  string    `json:"actor,omitempty"`
	Since  time.Time `json:"since"`
}

// NotAccepting refuses a submission while none are taken. It is temporary.
type NotAccepting struct{ Accepting }

// Error says why, and since when.
func (e *NotAccepting) Error() string {
	return fmt.Sprintf("submissions are not accepted since %s (%s, by %s); try again later",
		e.Since.Format(time.RFC3339), e.Reason, e.Actor)
}

// QueueStatus is the whole queue at a glance.
type QueueStatus struct {
	Accepting Accepting `json:"accepting"`
	Paused    *Hold     `json:"paused,omitempty"` // the hold on everything, or on all deposits
	Running   int64     `json:"running"`
	Holds     int       `json:"holds"`
	Damaged   int64     `json:"damaged"` // stored files that are known not to be right in some storage
	// Strays is the failed search that found files in storages which belong to no object; "" when there is none.
	Strays  string       `json:"strays,omitempty"`
	OneCopy int64        `json:"one_copy"` // collections whose objects are kept in one storage only: there is no second copy
	Stages  []StageQueue `json:"stages"`   // every stage, in route order
	// Failing are the subscriptions whose receivers do not acknowledge what they are sent.
	Failing []Subscription `json:"failing,omitempty"`
}

// StageQueue is what stands in one stage.
type StageQueue struct {
	Stage       Stage      `json:"stage"`
	Ready       int64      `json:"ready"`   // would be claimed if there were a slot
	Waiting     int64      `json:"waiting"` // for time, room, a lock or other items
	Held        int64      `json:"held"`
	Running     int64      `json:"running"`
	Rung        int64      `json:"rung"`     // messages sent to NSQ for them and not answered yet; at most two for each slot
	Capacity    int        `json:"capacity"` // slots of live workers that are neither held nor stopping
	Free        int        `json:"free"`
	OldestReady *time.Time `json:"oldest_ready,omitempty"` // since when the one that waits longest could run
}
