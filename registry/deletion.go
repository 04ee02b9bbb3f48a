package registry

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Deleting carries out deletions.
type Deleting interface {
	// MarkDeleting makes an object unreadable, and records what remains of it and its tombstone. The item must have
	// the object's lock, and its deletion must be approved. From then on the item is only rolled
	// forward. ErrIntentOpen: a version of the object is being written. ErrNotFound: there is no
	// such approved deletion. A repeat returns the record.
	MarkDeleting(ctx context.Context, l Lease, objectID string, last Remains) (Deletion, error)
	// RecordDeletion records that no byte of a marked object is left. A repeat changes nothing.
	RecordDeletion(ctx context.Context, l Lease, objectID string, events []Premis) error
}

// DeletionStatus says how far the deletion of an object is.
type DeletionStatus string

// The statuses. A request that is not approved within AskingLasts is expired. From deleting on, the
// object cannot be read and its deletion is only rolled forward.
const (
	DeletionAsked     DeletionStatus = "asked"
	DeletionWithdrawn DeletionStatus = "withdrawn"
	DeletionExpired   DeletionStatus = "expired"
	DeletionApproved  DeletionStatus = "approved"
	DeletionDeleting  DeletionStatus = "deleting"
	DeletionDeleted   DeletionStatus = "deleted"
)

// AskingLasts is how long a request for a deletion can be approved.
const AskingLasts = 30 * 24 * time.Hour

// Deletion is the record of an object's deletion. For a deleted object it is the tombstone.
type Deletion struct {
	ObjectID string         `json:"object_id"`
	Status   DeletionStatus `json:"status"`
	Reason   string         `json:"reason"`
	AskedBy  string         `json:"asked_by"`
	AskedAt  time.Time      `json:"asked_at"`
	// ExpiresAt is when the request expires.
	ExpiresAt   time.Time  `json:"expires_at"`
	ApprovedBy  string     `json:"approved_by,omitempty"`
	ApprovedAt  *time.Time `json:"approved_at,omitempty"`
	WithdrawnBy string     `json:"withdrawn_by,omitempty"`
	WithdrawnAt *time.Time `json:"withdrawn_at,omitempty"`
	ItemID      string     `json:"item_id,omitempty"` // item that carries it out
	DeletedAt   *time.Time `json:"deleted_at,omitempty"`
	Last        Remains    `json:"last,omitzero"`
	// EZIDItem is the item under which EZID knows the object's name; "" if EZID does not know the
	// name from us. Only MarkDeleting sets it.
	EZIDItem string `json:"ezid_item,omitempty"`
	// Tombstone is the text to be left in each storage, signed if the Registry has a receipt key. It
	// never changes once the object is marked; "" if an earlier program marked it. Only MarkDeleting
	// sets it.
	Tombstone string `json:"tombstone,omitempty"`
}

// Remains identifies an object's last version after its deletion: digests, written ALG:HEX, by
// which copies elsewhere can be recognised.
type Remains struct {
	Version   int    `json:"version,omitempty"`
	Inventory string `json:"inventory,omitempty"` // of its root inventory; "" if it could not be read
	Files     string `json:"files,omitempty"`     // of the list of its files: one line "DIGEST  PATH\n" for each, by path
}

// DeletionQuery restricts a list of deletions.
type DeletionQuery struct {
	Within []string `json:"within"` // as in ItemQuery: objects in these collections
	After  string   `json:"after"`
	Limit  int      `json:"limit"`
}

// Decision is one person's decision about the deletion of an object.
type Decision string

// The decisions.
const (
	DecideAsk      Decision = "ask"
	DecideApprove  Decision = "approve"
	DecideWithdraw Decision = "withdraw"
)

// Decisions returns the decisions that actor can make after d, the last request; nil for none. An
// approval may still be refused, because this method does not know who created whose token.
func (d *Deletion) Decisions(actor string) []Decision {
	switch {
	case d == nil || d.Status == DeletionWithdrawn || d.Status == DeletionExpired:
		return []Decision{DecideAsk}
	case d.Status == DeletionAsked && d.AskedBy == actor:
		return []Decision{DecideWithdraw}
	case d.Status == DeletionAsked:
		return []Decision{DecideApprove, DecideWithdraw}
	}
	return nil
}

// Gone reports whether the object cannot be read any more.
func (d *Deletion) Gone() bool {
	return d != nil && (d.Status == DeletionDeleting || d.Status == DeletionDeleted)
}

// Text describes the decisions for people.
func (d *Deletion) Text() string {
	text := fmt.Sprintf("%v; asked for by %s on %s: %s", d.Status, d.AskedBy, d.AskedAt.UTC().Format(time.DateOnly), d.Reason)
	if d.ApprovedBy != "" {
		text += fmt.Sprintf("; approved by %s on %s", d.ApprovedBy, d.ApprovedAt.UTC().Format(time.DateOnly))
	}
	return text
}

// Errors about deletions.
var (
	// ErrSamePerson: the requester and the approver are the same person, or one of them created the
	// other's token.
	ErrSamePerson = errors.New("it needs two people: another person than the one who asked must approve it")
	// ErrNotAsked: there is no open request to delete the object.
	ErrNotAsked = errors.New("there is no open request to delete the object")
	// ErrAsked: there is an open request by another person or with another reason.
	ErrAsked = errors.New("the deletion of the object was requested already")
)

// GoneError is the error for a deleted object. For a deposit it is a content fault, because
// identifiers are never reused.
type GoneError struct {
	ObjectID string    `json:"object_id"`
	AskedBy  string    `json:"asked_by"`
	Approved string    `json:"approved_by"`
	At       time.Time `json:"at"` // time of the approval
	Reason   string    `json:"reason"`
}

// ContentFault blames the deposit.
func (e *GoneError) ContentFault() bool { return true }

// Error says who deleted the object, when and why.
func (e *GoneError) Error() string {
	return fmt.Sprintf("%s was deleted: asked for by %s, approved by %s on %s, reason: %s; its identifiers are not used again",
		e.ObjectID, e.AskedBy, e.Approved, e.At.UTC().Format(time.DateOnly), e.Reason)
}

// Deciding is what two people decide together. Over HTTP the actor is always the holder of the
// token, so nobody can approve in another's name.
type Deciding interface {
	// AskDeletion requests the deletion of a recorded object. The request can be approved for
	// [AskingLasts]. A repeat by the same actor with the same reason returns the request. ErrAsked:
	// another request is open. ErrNotFound: the object is not recorded. *GoneError: it is deleted.
	AskDeletion(ctx context.Context, objectID, reason, actor string) (Deletion, error)
	// ApproveDeletion creates the item that deletes the object. ErrSamePerson: the actor made the
	// request. A person is a token, by its name, which is never reused; two tokens are one person
	// if one created the other. ErrNotAsked: there is no request. *GoneError: the object is
	// deleted. A repeat by the same actor returns the deletion.
	ApproveDeletion(ctx context.Context, objectID, actor string) (Deletion, error)
	// WithdrawDeletion ends a request, whoever made it. ErrNotAsked: there is no request, or it is
	// approved; its item can be stopped until it begins. A repeat changes nothing.
	WithdrawDeletion(ctx context.Context, objectID, actor string) (Deletion, error)
	// SetTerms replaces the terms of a recorded object, also by less: it is the only way to end an
	// embargo before its day. The object's events keep the reason. ErrNotFound: the object is not
	// recorded. *GoneError: it is deleted. The terms in force again change nothing.
	SetTerms(ctx context.Context, objectID string, terms Terms, reason, actor string) error
}
