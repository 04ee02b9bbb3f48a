package registry

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Deleting is how a deletion is carried out.
type Deleting interface {
	// MarkDeleting makes the object, whose lock the item has and whose deletion by this item was
	// approved, one that nobody can read any more, and notes what remains of it. From then on the
	// item is only carried on. ErrIntentOpen while a version of it is being written, ErrNotFound
	// when no such deletion was approved. A repeat returns what is noted.
	MarkDeleting(ctx context.Context, l Lease, objectID string, last Remains) (Deletion, error)
	// RecordDeletion notes that no byte of a marked object is left. Repeating it changes nothing.
	RecordDeletion(ctx context.Context, l Lease, objectID string, events []Premis) error
}

// DeletionStatus says how far the deletion of an object is.
type DeletionStatus string

// The statuses. What is asked for and not approved within AskingLasts is expired. From deleting on
// nobody can read the object any more, and its deletion is only carried on.
const (
	DeletionAsked     DeletionStatus = "asked"
	DeletionWithdrawn DeletionStatus = "withdrawn"
	DeletionExpired   DeletionStatus = "expired"
	DeletionApproved  DeletionStatus = "approved"
	DeletionDeleting  DeletionStatus = "deleting"
	DeletionDeleted   DeletionStatus = "deleted"
)

// AskingLasts is how long a deletion that was asked for can be approved.
const AskingLasts = 30 * 24 * time.Hour

// Deletion is what is known of the deletion of an object; of one that is deleted it is the
// tombstone.
type Deletion struct {
	ObjectID string         `json:"object_id"`
	Status   DeletionStatus `json:"status"`
	Reason   string         `json:"reason"`
	AskedBy  string         `json:"asked_by"`
	AskedAt  time.Time      `json:"asked_at"`
	// ExpiresAt is when it can be approved no more.
	ExpiresAt   time.Time  `json:"expires_at"`
	ApprovedBy  string     `json:"approved_by,omitempty"`
	ApprovedAt  *time.Time `json:"approved_at,omitempty"`
	WithdrawnBy string     `json:"withdrawn_by,omitempty"`
	WithdrawnAt *time.Time `json:"withdrawn_at,omitempty"`
	ItemID      string     `json:"item_id,omitempty"` // that carries it out
	DeletedAt   *time.Time `json:"deleted_at,omitempty"`
	Last        Remains    `json:"last,omitzero"`
	// EZIDItem is the item that EZID knows the object's name by; "" for names that it does not know
	// from us. Only MarkDeleting tells it.
	EZIDItem string `json:"ezid_item,omitempty"`
}

// Remains is what is kept of an object's last version: digests, written ALG:HEX, by which copies
// elsewhere can be told.
type Remains struct {
	Version   int    `json:"version,omitempty"`
	Inventory string `json:"inventory,omitempty"` // of its root inventory; "" when that could not be read
	Files     string `json:"files,omitempty"`     // of the list of its files: a line of "DIGEST  PATH\n" each, by path
}

// DeletionQuery restricts a list of deletions.
type DeletionQuery struct {
	Within []string `json:"within"` // as in ItemQuery: of objects in these collections
	After  string   `json:"after"`
	Limit  int      `json:"limit"`
}

// Decision is what one person can decide about the deletion of an object.
type Decision string

// The decisions.
const (
	DecideAsk      Decision = "ask"
	DecideApprove  Decision = "approve"
	DecideWithdraw Decision = "withdraw"
)

// Decisions are those that actor can make after d, the last deletion that was asked for; nil for
// none. An approval may still be refused: who made whose token is not known here.
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

// Gone says that the object cannot be read any more.
func (d *Deletion) Gone() bool {
	return d != nil && (d.Status == DeletionDeleting || d.Status == DeletionDeleted)
}

// Text says for people what was decided, by whom and why.
func (d *Deletion) Text() string {
	text := fmt.Sprintf("%s; asked for by %s on %s: %s", d.Status, d.AskedBy, d.AskedAt.UTC().Format(time.DateOnly), d.Reason)
	if d.ApprovedBy != "" {
		text += fmt.Sprintf("; approved by %s on %s", d.ApprovedBy, d.ApprovedAt.UTC().Format(time.DateOnly))
	}
	return text
}

// Errors about deletions.
var (
	// ErrSamePerson: it was asked for by the same person, or by somebody whose token the one has
	// made for the other.
	ErrSamePerson = errors.New("it needs two people: another person than the one who asked must approve it")
	// ErrNotAsked: nobody has asked to delete the object, or it was withdrawn, or has expired.
	ErrNotAsked = errors.New("nobody is asking to delete the object")
	// ErrAsked: somebody else, or with another reason, has asked to delete the object already.
	ErrAsked = errors.New("the deletion of the object was asked for already")
)

// GoneError says that an object was deleted. For a deposit it is a content fault: its identifiers
// are never used again.
type GoneError struct {
	ObjectID string    `json:"object_id"`
	AskedBy  string    `json:"asked_by"`
	Approved string    `json:"approved_by"`
	At       time.Time `json:"at"` // when it was approved
	Reason   string    `json:"reason"`
}

// ContentFault marks the deposit as at fault.
func (e *GoneError) ContentFault() bool { return true }

// Error says who deleted it, when and why.
func (e *GoneError) Error() string {
	return fmt.Sprintf("%s was deleted: asked for by %s, approved by %s on %s, reason: %s; its identifiers are not used again",
		e.ObjectID, e.AskedBy, e.Approved, e.At.UTC().Format(time.DateOnly), e.Reason)
}

// Deciding is what people decide together. Over HTTP the actor is always the one whose token it is,
// whatever is named: nobody may approve in another's name.
type Deciding interface {
	// AskDeletion asks to delete a recorded object. It can be approved for [AskingLasts]. A repeat
	// by the same actor with the same reason returns what was asked; ErrAsked while another one is
	// open, ErrNotFound for an object that is not recorded, *GoneError for one that is deleted.
	AskDeletion(ctx context.Context, objectID, reason, actor string) (Deletion, error)
	// ApproveDeletion makes the item that deletes the object, when another person than the actor
	// has asked for it: ErrSamePerson otherwise. A person is a token, by its name, which is never
	// given again; two tokens of which one has made the other are one person. ErrNotAsked when
	// nobody asks; *GoneError. A repeat by the same actor returns what was approved.
	ApproveDeletion(ctx context.Context, objectID, actor string) (Deletion, error)
	// WithdrawDeletion ends the asking, whoever asked. ErrNotAsked when nobody asks, or it is
	// approved: then its item can be stopped until it has begun. A repeat changes nothing.
	WithdrawDeletion(ctx context.Context, objectID, actor string) (Deletion, error)
}
