package registry

import (
	"errors"
	"fmt"
	"time"
)

// Sentinel errors of the contract, tested with errors.Is.
var (
	// ErrNotFound: there is no such item, object, collection or upload.
	ErrNotFound = errors.New("not found")
	// ErrClaimLost: the write named an attempt that is no longer the live one. The caller must
	// write nothing more.
	ErrClaimLost = errors.New("claim lost")
	// ErrIdempotencyConflict: the idempotency key was used before with other arguments.
	ErrIdempotencyConflict = errors.New("idempotency key was used with other arguments")
	// ErrWorkerTaken: the worker's id was announced by another token, whose process lives.
	ErrWorkerTaken = errors.New("the worker's id belongs to another token")

	// ErrTaken: the proposed identifier belongs to another object; propose another one.
	ErrTaken = errors.New("identifier is taken")
	// ErrUnavailable: the Registry's database does not answer, or not in time. Whoever asked asks
	// again; what came of a write is found under its request id, idempotency key or attempt.
	ErrUnavailable = errors.New("registry is not available")
	// ErrIntentOpen: another item's version of the object is intended and not yet recorded (R1).
	ErrIntentOpen = errors.New("another version of the object is being written")
	// ErrJobsOpen: a batch cannot be reported while one of its jobs is not settled. It is rung for
	// when the last one is.
	ErrJobsOpen = errors.New("jobs of the batch are not settled")
	// ErrInvalid: the arguments can never be right, whatever the state of things: too many rows in
	// one call, an unknown outcome, a claim without a request id. Nothing was changed.
	ErrInvalid = errors.New("not a valid request")
)

// Reason is why an item is not running: one enumeration for claim, why, CLI and UI
// (docs/commands.md, item why).
type Reason string

// The reason codes.
const (
	ReasonHeld             Reason = "held"
	ReasonNotDue           Reason = "not-due"
	ReasonBlocked          Reason = "blocked"
	ReasonLocked           Reason = "locked"
	ReasonNoSpace          Reason = "no-space"
	ReasonNoMemory         Reason = "no-memory" // to decompress it takes more than its worker's process has left for that
	ReasonThawing          Reason = "thawing"   // its bytes are on their way out of an archive
	ReasonQueued           Reason = "queued"
	ReasonCrowded          Reason = "crowded" // its collection has all the slots that one may have where sources are waited for
	ReasonRunning          Reason = "running"
	ReasonRunningElsewhere Reason = "running-elsewhere"
	ReasonSettled          Reason = "settled"
	ReasonWrongStage       Reason = "wrong-stage"
)

// NotClaimable says why a claim gave no item.
type NotClaimable struct {
	ItemID string `json:"item_id"` // the hinted item
	Reason Reason `json:"reason"`
	// After is how long the item waits at least, for not-due; 0 otherwise.
	After time.Duration `json:"after"`
	// Again is above 0 where items wait for a slot of their collection, whatever keeps the hinted
	// one: their messages may be used up, so this one is kept, and the same is asked again after
	// that time at the latest.
	Again time.Duration `json:"again"`
}

// Error implements error.
func (e *NotClaimable) Error() string {
	return fmt.Sprintf("item %s cannot be claimed: %s", e.ItemID, e.Reason)
}

// LockedError says that another item holds a lock this one needs, or waits for it in front of this
// one.
type LockedError struct {
	Key    string `json:"key"`
	ItemID string `json:"item_id"` // the holder
}

// Error implements error.
func (e *LockedError) Error() string {
	return fmt.Sprintf("%s is locked by item %s", e.Key, e.ItemID)
}

// IdentifierMismatch says that a submission names an object twice, differently. It is a content
// fault.
type IdentifierMismatch struct {
	LocalID string `json:"local_id"`
	Known   string `json:"known"` // the ARK the local id belongs to
	Given   string `json:"given"` // the ARK the submission names
}

// ContentFault marks the deposit as at fault.
func (e *IdentifierMismatch) ContentFault() bool { return true }

// ErrorCode says so in one word, which failures are grouped by.
func (e *IdentifierMismatch) ErrorCode() string { return "identifier-mismatch" }

// Error names both identifiers and what to do.
func (e *IdentifierMismatch) Error() string {
	return fmt.Sprintf("local id %q belongs to %s, but the submission names %s; correct one of the two", e.LocalID, e.Known, e.Given)
}

// NoObject says that a submission is for an object that must be there and is not. It is a content
// fault.
type NoObject struct {
	ARK     string `json:"ark"`      // as it was supplied, or ""
	LocalID string `json:"local_id"` // the first of those that were given, when no ARK was
}

// ContentFault marks the deposit as at fault.
func (e *NoObject) ContentFault() bool { return true }

// ErrorCode says so in one word, which failures are grouped by.
func (e *NoObject) ErrorCode() string { return "no-object" }

// Error names the object as the depositor did, and says what to do.
func (e *NoObject) Error() string {
	name := e.ARK
	if name == "" {
		name = fmt.Sprintf("with the local id %q", e.LocalID)
	}
	return fmt.Sprintf("there is no object %s to update; submit it without --update to add it", name)
}

// OwnerMismatch says that a submission names an object of another owner. It is a content fault.
type OwnerMismatch struct {
	ARK   string `json:"ark"`
	Owner string `json:"owner"` // whose collection the submission came to
}

// ContentFault marks the deposit as at fault.
func (e *OwnerMismatch) ContentFault() bool { return true }

// ErrorCode says so in one word, which failures are grouped by.
func (e *OwnerMismatch) ErrorCode() string { return "owner-mismatch" }

// Error says what to do. It does not say whose the object is.
func (e *OwnerMismatch) Error() string {
	return fmt.Sprintf("%s is an object of another owner than %s; correct the identifier or submit to its owner's collection", e.ARK, e.Owner)
}

// NoSpaceError says that a reservation would fill the volume beyond its threshold.
type NoSpaceError struct {
	Volume          string  `json:"volume"`
	Need            int64   `json:"need"`     // bytes
	Used            int64   `json:"used"`     // bytes on the volume
	Total           int64   `json:"total"`    // bytes on the volume
	Reserved        int64   `json:"reserved"` // bytes promised to others and not yet staged
	ThresholdFactor float64 `json:"threshold_factor"`
	// Yield says that the item that asks must give back what it has staged before it asks again: an
	// earlier one, which holds room, waits for more, or nobody else holds any that could become
	// free. Items that grow at once would else wait for each other without end.
	Yield bool `json:"yield,omitempty"`
	// Kept is what failed and cancelled items of the same collection keep for a requeue, when that
	// is what is in the way: 0 otherwise.
	Kept int64 `json:"kept,omitempty"`
	// Never says that the volume could not hold what the item is known to have even if there were
	// nothing else on it.
	Never bool `json:"never,omitempty"`
}

// Error gives the figures.
func (e *NoSpaceError) Error() string {
	if e.Kept > 0 {
		return fmt.Sprintf("needs %s on volume %s, where failed and cancelled jobs of its collection keep %s; requeue or delete them: one collection's may keep half of what may be filled",
			SizeText(e.Need), e.Volume, SizeText(e.Kept))
	}
	used := 100.0
	if e.Total > 0 {
		used = 100 * float64(e.Used) / float64(e.Total)
	}
	return fmt.Sprintf("needs %s; volume %s is %.0f %% used (%s of %s), %s reserved, and may be filled to %.0f %%",
		SizeText(e.Need), e.Volume, used, SizeText(e.Used), SizeText(e.Total), SizeText(e.Reserved), e.ThresholdFactor*100)
}

// CodeUnfitProfile is what happened where the profile of an item's collection, which the item
// keeps, cannot be gone by.
const CodeUnfitProfile = "profile-unfit"

// CodeAbandoned is what happened to a job whose announced version was abandoned: see [Abandonment].
const CodeAbandoned = "abandoned"
