package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Preserving is how content becomes an object: identity, intent, inventory.
type Preserving interface {
	// Identify settles which object an item is about, and takes all the item's locks or none (R1,
	// R8): a supplied ARK, else the ARK its local ids have under Owner, else Proposed, which then
	// belongs to the item for ever. The answer is recorded in results["ark"]; a repeat returns it.
	// *LockedError: another item has a lock or waits for it in front of this one (the item is woken
	// when it is its turn); *IdentifierMismatch; *OwnerMismatch: the object has another owner;
	// ErrTaken: propose another; *NoObject: r.Existing, and there is none; ErrInvalid: an owner or
	// folders that are not the item's. After an error nothing is bound.
	Identify(ctx context.Context, l Lease, r IdentifyRequest) (Identity, error)
	// Intend announces version N of an object and freezes its plan, before the first final byte is
	// written. The same item's repeat returns the plan announced first; ErrIntentOpen when another
	// item's version is open or N is not the head's successor. With in.Abandon it takes the
	// announcement back instead, with the version's files and the results that in.Forget names,
	// once two people have decided so ([Abandonment]): ErrInvalid before that. The caller has
	// removed what was written of the version. A repeat changes nothing.
	Intend(ctx context.Context, l Lease, in Intent) (Intent, error)
	// RecordFiles adds inventory rows of an intended version, at most 1,000 a call; rows that are
	// there are left.
	RecordFiles(ctx context.Context, l Lease, objectID string, version int, files []File) error
	// RecordVersion makes an intended version, its files and its events visible as the object's
	// head, and, when the Registry has a key for that, signs the version's receipt over what the
	// inventory then holds, in the same transaction. Repeating it changes nothing, the receipt
	// neither. With a key it is refused when the inventory does not hold as many files and bytes of
	// the version as v says.
	RecordVersion(ctx context.Context, l Lease, v VersionRecord) error
	// HasReplicas says whether a storage holds any version of an object that was not deleted: one
	// that is found empty all the same is not the storage that is meant. False of a storage that
	// nobody has heard of.
	HasReplicas(ctx context.Context, storage string) (bool, error)
	// KnowsObject says whether a record leads to an object: a version of it is recorded or
	// announced, or it was deleted.
	KnowsObject(ctx context.Context, id string) (bool, error)
}

// Locking keeps others from changing an object that is preserved already.
type Locking interface {
	// LockObject takes the lock of a recorded object for the item, as Identify takes a job's:
	// nobody else changes the object until the item settles. It returns the object's head, which
	// stays so long. *LockedError when another item has the lock or stands in line before this one;
	// the item keeps its place by its time of submission and is woken when it is first. A repeat
	// changes nothing. ErrInvalid unless the item is about this object, *GoneError when it was
	// deleted by another item.
	LockObject(ctx context.Context, l Lease, objectID string) (head int, err error)
}

// IdentifyRequest is what is known of an object's identity.
type IdentifyRequest struct {
	Owner    string   `json:"owner"`
	Supplied string   `json:"supplied"`  // an ARK, or ""
	LocalIDs []string `json:"local_ids"` // exact strings, no duplicates
	Proposed string   `json:"proposed"`  // a fresh ARK, chosen locally
	// Existing: the object must have a version already; Proposed is not looked at.
	Existing bool `json:"existing,omitempty"`
	// EZID: Proposed is a name that EZID is to know.
	EZID bool `json:"ezid,omitempty"`
	// Refused is the item's name as it was settled, which EZID has given to somebody else: it is
	// forgotten, with the local ids that led to it, and Proposed takes its place, unless a version
	// was announced under it.
	Refused string `json:"refused,omitempty"`
	// Folders are further locks that the item needs, each beginning with "folder:": of folders in
	// storages that another object could be given, too. They are known once the ARK is, so they
	// come with a second request.
	Folders []string `json:"folders,omitempty"`
}

// Identity is an object's name as it was settled.
type Identity struct {
	ARK    string `json:"ark"`
	Minted bool   `json:"minted"` // Proposed was taken
	Head   int    `json:"head"`   // the object's recorded version; 0 when it is new
	// EZIDItem is the item that EZID knows the name by: the one that it was chosen for, by
	// whichever item the object is named now. "" for names that EZID does not know from us.
	EZIDItem string `json:"ezid_item,omitempty"`
}

// Intent is an announced version of an object.
type Intent struct {
	ObjectID string          `json:"object_id"`
	Version  int             `json:"version"`
	Plan     json.RawMessage `json:"plan"` // the worker's own: everything that a repeat needs to write the same bytes
	// Abandon takes the announcement back. Forget are the durable results by which the item would
	// go on with the version.
	Abandon bool     `json:"abandon,omitempty"`
	Forget  []string `json:"forget,omitempty"`
}

// VersionRecord is what becomes visible when a version is recorded.
type VersionRecord struct {
	ObjectID   string    `json:"object_id"`
	Version    int       `json:"version"`
	Collection string    `json:"collection"`
	Owner      string    `json:"owner"`
	LocalIDs   []string  `json:"local_ids"`
	Title      string    `json:"title"`
	Creator    string    `json:"creator"`
	Date       string    `json:"date"`
	Files      int64     `json:"files"` // in the version's state, system files included
	SizeBytes  int64     `json:"size_bytes"`
	CreatedAt  time.Time `json:"created_at"` // as in the OCFL inventory
	Replicas   []Replica `json:"replicas"`   // of each of the item's storages one, in their order
	Inventory  string    `json:"inventory"`  // ALGORITHM:HEX of its OCFL inventory
	Events     []Premis  `json:"events"`
}

// ResultAbandon is the durable result of a failed job whose announced version is to be abandoned:
// an [Abandonment].
const ResultAbandon = "abandon"

// AbandonOneByOne is why a bulk act does not abandon.
const AbandonOneByOne = "a version is abandoned for each job by itself, since who agrees must have seen who asked for it and why"

// Abandonment is who asked, and who agreed, that an announced version is given up of which nobody
// can see anything. A requeue ends it: the version is rolled forward, or made anew when it was
// abandoned.
type Abandonment struct {
	Reason  string    `json:"reason"`
	AskedBy string    `json:"asked_by"`
	AskedAt time.Time `json:"asked_at"`
	// ApprovedBy is another person than AskedBy; "" while nobody has agreed.
	ApprovedBy string     `json:"approved_by,omitempty"`
	ApprovedAt *time.Time `json:"approved_at,omitempty"`
	// DoneAt is when the version was abandoned.
	DoneAt *time.Time `json:"done_at,omitempty"`
}

// Abandonment returns what was decided about the item's announced version; ok is false when nobody
// asked.
func (it WorkItem) Abandonment() (a Abandonment, ok bool) {
	raw, asked := it.Results[ResultAbandon]
	return a, asked && json.Unmarshal(raw, &a) == nil
}

// Waits says whether another person can still agree at a time: an item that failed after it was
// agreed must be asked for anew, and what was asked for expires after [AskingLasts].
func (a Abandonment) Waits(now time.Time) bool {
	return a.ApprovedBy == "" && now.Before(a.AskedAt.Add(AskingLasts))
}

// Request names this asking, apart from every other one for the same item.
func (a Abandonment) Request() string {
	return a.AskedBy + " at " + a.AskedAt.UTC().Format(time.RFC3339Nano)
}

// Text says for people who decided what, and why.
func (a Abandonment) Text() string {
	text := fmt.Sprintf("asked for by %s at %s: %s", a.AskedBy, a.AskedAt.UTC().Format(time.DateTime), a.Reason)
	if a.ApprovedBy != "" {
		text += fmt.Sprintf("; approved by %s at %s", a.ApprovedBy, a.ApprovedAt.UTC().Format(time.DateTime))
	}
	return text
}
