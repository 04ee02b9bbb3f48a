package registry

import (
	"errors"
	"fmt"
	"time"
)

// Sentinel errors of the contract. Test them with errors.Is.
var (
	// ErrNotFound: there is no such item, object, collection or upload.
	ErrNotFound = errors.New("not found")
	// ErrClaimLost: the write's attempt is not the live one. The caller must write nothing more.
	ErrClaimLost = errors.New("claim lost")
	// ErrIdempotencyConflict: the idempotency key was used with other arguments.
	ErrIdempotencyConflict = errors.New("idempotency key was used with other arguments")
	// ErrWorkerTaken: another token announced the worker's id, and its process is alive.
	ErrWorkerTaken = errors.New("the worker's id belongs to another token")

	// ErrTaken: the proposed identifier belongs to another object. Propose another one.
	ErrTaken = errors.New("identifier is taken")
	// ErrUnavailable: the Registry's database does not answer, or not in time. Retry. The outcome
	// of a write can be found by its request id, idempotency key or attempt.
	ErrUnavailable = errors.New("registry is not available")
	// ErrIntentOpen: another item has announced a version of the object that is not recorded yet
	// (R1).
	ErrIntentOpen = errors.New("another version of the object is being written")
	// ErrJobsOpen: the batch cannot be reported while a job is open. It becomes due when the last
	// job settles.
	ErrJobsOpen = errors.New("jobs of the batch are not settled")
	// ErrInvalid: the arguments can never be right, such as an unknown outcome. Nothing was
	// changed.
	ErrInvalid = errors.New("not a valid request")
)

// Reason is why an item is not running. Claims, why, CLI and pages share it (docs/commands.md, item
// why).
type Reason string

// The reason codes.
const (
	ReasonHeld             Reason = "held"
	ReasonNotDue           Reason = "not-due"
	ReasonBlocked          Reason = "blocked"
	ReasonLocked           Reason = "locked"
	ReasonNoSpace          Reason = "no-space"
	ReasonNoMemory         Reason = "no-memory" // its worker's process has too little memory left to decompress it
	ReasonThawing          Reason = "thawing"   // an archive is restoring its files
	ReasonQueued           Reason = "queued"
	ReasonCrowded          Reason = "crowded" // its collection has all the slots that one collection may have in stages that wait for sources
	ReasonLimit            Reason = "limit"   // as many items run as an admin allows, see [Limit]
	ReasonRunning          Reason = "running"
	ReasonRunningElsewhere Reason = "running-elsewhere"
	ReasonSettled          Reason = "settled"
	ReasonWrongStage       Reason = "wrong-stage"
)

// NotClaimable says why a claim returned no item.
type NotClaimable struct {
	ItemID string `json:"item_id"` // the hinted item
	Reason Reason `json:"reason"`
	// After is how long the item waits at least, for not-due; otherwise 0.
	After time.Duration `json:"after"`
	// Again is above 0 if items wait for a slot of their collection. Their messages may be used up,
	// so the worker keeps this one and claims again after at most this time.
	Again time.Duration `json:"again"`
}

// Error implements error.
func (e *NotClaimable) Error() string {
	return fmt.Sprintf("item %s cannot be claimed: %s", e.ItemID, e.Reason)
}

// FieldError says which field of a request is not valid. Err is ErrInvalid with the reason.
type FieldError struct {
	Field string // as JSON names it, such as signing_key or filter.types
	Err   error
}

// Error gives the reason.
func (e *FieldError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *FieldError) Unwrap() error { return e.Err }

// InField says of an error that it is about a field; nil stays nil.
func InField(field string, err error) error {
	if err == nil {
		return nil
	}
	return &FieldError{field, err}
}

// CorrectedError says that another batch already corrects a batch, or a row of it.
type CorrectedError struct {
	BatchID string `json:"batch_id"`
	Line    int64  `json:"line"` // of the first such row; 0: all that failed
	By      string `json:"by"`
}

// Error names both.
func (e *CorrectedError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("batch %s was already submitted, corrected, as batch %s; see how that one stands", e.BatchID, e.By)
	}
	return fmt.Sprintf("the row on line %d of batch %s was already submitted, corrected, as batch %s; leave it out, and see how that one stands", e.Line, e.BatchID, e.By)
}

// LockedError says that another item holds a lock that this one needs, or stands in line before it.
type LockedError struct {
	Key    string `json:"key"`
	ItemID string `json:"item_id"` // the holder
}

// Error implements error.
func (e *LockedError) Error() string {
	return fmt.Sprintf("%s is locked by item %s", e.Key, e.ItemID)
}

// IdentifierMismatch says that a submission gives two identifiers that belong to different objects.
// It is a content fault.
type IdentifierMismatch struct {
	LocalID string `json:"local_id"`
	Known   string `json:"known"` // ARK to which the local id belongs
	Given   string `json:"given"` // ARK that the submission names
}

// ContentFault marks the deposit as at fault.
func (e *IdentifierMismatch) ContentFault() bool { return true }

// ErrorCode says so in one word, which failures are grouped by.
func (e *IdentifierMismatch) ErrorCode() string { return "identifier-mismatch" }

// Error names both identifiers and what to do.
func (e *IdentifierMismatch) Error() string {
	return fmt.Sprintf("local id %q belongs to %s, but the submission names %s; correct one of the two", e.LocalID, e.Known, e.Given)
}

// NoObject says that a submission updates an object that does not exist. It is a content fault.
type NoObject struct {
	ARK     string `json:"ark"`      // as given, or ""
	LocalID string `json:"local_id"` // the first one given, if no ARK was
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
	Owner string `json:"owner"` // owner of the submission's collection
}

// ContentFault marks the deposit as at fault.
func (e *OwnerMismatch) ContentFault() bool { return true }

// ErrorCode says so in one word, which failures are grouped by.
func (e *OwnerMismatch) ErrorCode() string { return "owner-mismatch" }

// Error says what to do. It does not name the object's owner.
func (e *OwnerMismatch) Error() string {
	return fmt.Sprintf("%s is an object of another owner than %s; correct the identifier or submit to its owner's collection", e.ARK, e.Owner)
}

// NoSpaceError says that a reservation would fill the volume beyond its threshold.
type NoSpaceError struct {
	Volume          string  `json:"volume"`
	Need            int64   `json:"need"`     // bytes
	Used            int64   `json:"used"`     // bytes on the volume
	Total           int64   `json:"total"`    // bytes on the volume
	Reserved        int64   `json:"reserved"` // bytes reserved for others and not yet staged
	ThresholdFactor float64 `json:"threshold_factor"`
	// Yield reports that the item must give back what it has staged before it asks again. Either an
	// earlier item that holds room waits for more, or no other item holds room that could become
	// free. Otherwise items that grow at once would wait for each other for ever.
	Yield bool `json:"yield,omitempty"`
	// Kept is the bytes that failed and cancelled items of the collection keep for a requeue, if
	// these are in the way; otherwise 0.
	Kept int64 `json:"kept,omitempty"`
	// Never reports that the item would not fit even on the empty volume.
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

// CodeUnfitProfile is the code of a failure because of a wrong profile, which the item keeps from
// its submission.
const CodeUnfitProfile = "profile-unfit"

// CodeAbandoned is the code of a job whose announced version was abandoned, see [Abandonment].
const CodeAbandoned = "abandoned"
