package registry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Preserving turns content into an object: identity, intent, inventory.
type Preserving interface {
	// Identify decides which object an item is about, and takes all of the item's locks or none
	// (R1, R8). The ARK is the supplied one, else the one of its local ids under Owner, else
	// Proposed, which then belongs to the item for ever. results["ark"] records the answer; a
	// repeat returns it.
	//
	// *LockedError: another item has a lock or is earlier in its line; the item is woken in its
	// turn. *IdentifierMismatch: the identifiers belong to different objects. *OwnerMismatch: the
	// object has another owner. ErrTaken: propose another ARK. *NoObject: r.Existing is set and
	// there is no object. ErrInvalid: owner or folders are not the item's. After an error nothing
	// is bound.
	Identify(ctx context.Context, l Lease, r IdentifyRequest) (Identity, error)
	// Intend announces version N of an object and fixes its plan, before the first final byte is
	// written. The same transaction makes the plan the item's durable result [ResultPlan], and adds
	// the inventory rows in in.Files. A repeat by the same item returns the first plan, without
	// rows, and needs none itself. ErrIntentOpen: another item's version is open, or N is not the
	// head's successor. ErrNotFound: there is no plan.
	//
	// With in.Abandon it withdraws the announcement, with the version's files and the results in
	// in.Forget, after two people have approved that ([Abandonment]); ErrInvalid before that. The
	// caller must have removed what was written. A repeat changes nothing.
	Intend(ctx context.Context, l Lease, in Intent) (Intent, error)
	// RecordFiles adds inventory rows of an announced version, at most 1,000 a call. Existing rows
	// stay unchanged.
	RecordFiles(ctx context.Context, l Lease, objectID string, version int, files []File) error
	// RecordVersion makes an announced version, its files and its events visible as the object's
	// head. The same transaction makes the version's receipt over the inventory, and signs it if the
	// Registry has a receipt key; it is refused if the number of files and bytes differs from v. A repeat
	// changes nothing, not even the receipt.
	RecordVersion(ctx context.Context, l Lease, v VersionRecord) error
	// HasReplicas reports whether a storage contains a version of an object that was not deleted.
	// If such a storage is found empty, it is the wrong storage. It is false for an unknown
	// storage.
	HasReplicas(ctx context.Context, storage string) (bool, error)
	// KnowsObject reports whether there is a record of an object: a recorded or announced version,
	// or a deletion. The object may be named by its ARK or by its identifier in its storages.
	KnowsObject(ctx context.Context, id string) (bool, error)
}

// Locking locks preserved objects.
type Locking interface {
	// LockObject takes the lock of a recorded object for the item, as Identify does for a job.
	// Nobody else can change the object until the item settles. It returns the object's head.
	// *LockedError: another item has the lock or is earlier in its line; the item keeps its place
	// and is woken when it is first. ErrInvalid: the item is not about this object. *GoneError:
	// another item has deleted it. A repeat changes nothing. folders are as in IdentifyRequest: further
	// locks, which it takes too.
	LockObject(ctx context.Context, l Lease, objectID string, folders ...string) (head int, err error)
}

// IdentifyRequest is what is known about an object's identity.
type IdentifyRequest struct {
	Owner    string   `json:"owner"`
	Supplied string   `json:"supplied"`  // an ARK, or ""
	LocalIDs []string `json:"local_ids"` // exact strings, no duplicates
	Proposed string   `json:"proposed"`  // a fresh ARK, chosen locally
	// Existing: the object must have a version; Proposed is ignored.
	Existing bool `json:"existing,omitempty"`
	// EZID: Proposed is a name to be registered with EZID.
	EZID bool `json:"ezid,omitempty"`
	// Refused is the item's settled name, which EZID has given to somebody else. Proposed replaces
	// it, and the local ids that led to it are forgotten, unless a version was announced under it.
	Refused string `json:"refused,omitempty"`
	// Folders are further locks, each beginning with "folder:", of folders in storages that another
	// object might get. They depend on the ARK, so they come with a second request.
	Folders []string `json:"folders,omitempty"`
}

// Identity is an object's settled name.
type Identity struct {
	ARK    string `json:"ark"`
	Minted bool   `json:"minted"` // Proposed was taken
	Head   int    `json:"head"`   // the object's recorded version; 0 when it is new
	// EZIDItem is the item under which EZID knows the name: the one for which it was proposed,
	// whichever item uses it now; "" if EZID does not know the name from us.
	EZIDItem string `json:"ezid_item,omitempty"`
	Place
}

// Stored returns the object's identifier in its storages.
func (id Identity) Stored() string { return id.Place.Stored(id.ARK) }

// Intent is an announced version of an object.
type Intent struct {
	ObjectID string          `json:"object_id"`
	Version  int             `json:"version"`
	Plan     json.RawMessage `json:"plan,omitempty"` // defined by the worker: everything that a repeat needs to write the same bytes
	// Staged has the small staged files that the plan needs, in the worker's form; it is kept until
	// the version is recorded. "": all are in staging.
	Staged string `json:"staged,omitempty"`
	// Files are the version's rows of the inventory, if they are few: RecordFiles need not add them.
	Files []File `json:"-"`
	// Abandon withdraws the announcement. Forget names the durable results by which the item would
	// continue the version.
	Abandon bool     `json:"abandon,omitempty"`
	Forget  []string `json:"forget,omitempty"`
}

// VersionRecord is what becomes visible when a version is recorded.
type VersionRecord struct {
	ObjectID   string    `json:"object_id"`
	Version    int       `json:"version"`
	Collection string    `json:"collection"`
	Owner      string    `json:"owner"`
	Title      string    `json:"title"`
	Creator    string    `json:"creator"`
	Date       string    `json:"date"`
	Files      int64     `json:"files"` // in the version's state, system files included
	SizeBytes  int64     `json:"size_bytes"`
	CreatedAt  time.Time `json:"created_at"`        // as in the OCFL inventory
	Replicas   []Replica `json:"replicas"`          // one for each of the item's storages, in their order
	Inventory  string    `json:"inventory"`         // ALGORITHM:HEX of its OCFL inventory
	Padding    int       `json:"padding,omitempty"` // as in Place
	Events     []Premis  `json:"events"`
}

// ResultAbandon is the durable result of a failed job whose announced version is to be abandoned,
// an [Abandonment].
const ResultAbandon = "abandon"

// AbandonOneByOne says why a bulk act cannot abandon.
const AbandonOneByOne = "a version is abandoned for each job by itself, since who agrees must have seen who asked for it and why"

// Abandonment is a decision of two people to give up an announced version that is not visible yet.
// A requeue ends it: the version is rolled forward, or made again if it was abandoned.
type Abandonment struct {
	Reason  string    `json:"reason"`
	AskedBy string    `json:"asked_by"`
	AskedAt time.Time `json:"asked_at"`
	// ApprovedBy is a different person from AskedBy; "" until somebody approves.
	ApprovedBy string     `json:"approved_by,omitempty"`
	ApprovedAt *time.Time `json:"approved_at,omitempty"`
	// DoneAt is when the version was abandoned.
	DoneAt *time.Time `json:"done_at,omitempty"`
}

// Abandonment returns the decision about the item's announced version; ok is false if nobody
// requested one.
func (it WorkItem) Abandonment() (a Abandonment, ok bool) {
	raw, asked := it.Results[ResultAbandon]
	return a, asked && json.Unmarshal(raw, &a) == nil
}

// Waits reports whether another person can still approve at a time. A request expires after
// [AskingLasts]. If the item fails after the approval, a new request is needed.
func (a Abandonment) Waits(now time.Time) bool {
	return a.ApprovedBy == "" && now.Before(a.AskedAt.Add(AskingLasts))
}

// Request identifies this request among those for the same item.
func (a Abandonment) Request() string {
	return a.AskedBy + " at " + a.AskedAt.UTC().Format(time.RFC3339Nano)
}

// Text describes for people who decided what, and why.
func (a Abandonment) Text() string {
	text := fmt.Sprintf("asked for by %s at %s: %s", a.AskedBy, a.AskedAt.UTC().Format(time.DateTime), a.Reason)
	if a.ApprovedBy != "" {
		text += fmt.Sprintf("; approved by %s at %s", a.ApprovedBy, a.ApprovedAt.UTC().Format(time.DateTime))
	}
	return text
}

// Acceptance is a decision of two people: the record of events is right although it is older than
// signed checkpoints, as after restoring a backup.
type Acceptance struct {
	// Of names the checkpoints: each by storage, name, signed part and the digest of what is lost.
	// So the consent ends when more is missing.
	Of      []string  `json:"of"`
	Reason  string    `json:"reason"`
	AskedBy string    `json:"asked_by"`
	AskedAt time.Time `json:"asked_at"`
	// Replaces names the person whose waiting request this one replaced; "" for none.
	Replaces string `json:"replaces,omitempty"`
	// ApprovedBy is a different person from AskedBy; "" until somebody approves.
	ApprovedBy string     `json:"approved_by,omitempty"`
	ApprovedAt *time.Time `json:"approved_at,omitempty"`
}

// Covers reports whether the acceptance includes these checkpoints. It may include others, which
// are settled by now.
func (a Acceptance) Covers(of []string) bool {
	return len(of) > 0 && !slices.ContainsFunc(of, func(c string) bool { return !slices.Contains(a.Of, c) })
}

// Waits reports whether another person can still approve at a time. A request expires after
// [AskingLasts].
func (a Acceptance) Waits(now time.Time) bool {
	return a.ApprovedBy == "" && now.Before(a.AskedAt.Add(AskingLasts))
}

// Request identifies the request as it was shown to the approver. Another request has another
// value.
func (a Acceptance) Request() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %d", a.Of, a.Reason, a.AskedBy, a.AskedAt.UnixMicro()))
	return hex.EncodeToString(sum[:16])
}

// Text describes for people who requested the acceptance, and why.
func (a Acceptance) Text() string {
	return fmt.Sprintf("%s: asked for by %s at %s: %s", strings.Join(a.Of, ", "), a.AskedBy, a.AskedAt.UTC().Format(time.DateTime), a.Reason)
}

// ErrNoAcceptance says that there is no request to accept the present record, or it has expired.
var ErrNoAcceptance = errors.New("nobody has asked to accept the record as it is now: one person asks with a reason, another approves")

// Rebuilding enters into the Registry what storages hold of objects. Every call may be repeated: what
// is there already stays.
type Rebuilding interface {
	// RebuildState returns how far the last rebuild is; a zero value if there was none.
	RebuildState(ctx context.Context) (RebuildState, error)
	// SaveRebuild notes how far a rebuild is. ErrRebuilt: the Registry has objects, and no rebuild
	// of the same storages has begun that is not done.
	SaveRebuild(ctx context.Context, s RebuildState) error
	// EnteredHead returns the newest visible version of an object, and whether it is gone; 0 if there
	// is none.
	EnteredHead(ctx context.Context, objectID string) (head int, gone DeletionStatus, err error)
	// EnteredFiles lists what [Inventory.Files] does, also of a version that is not visible yet. The
	// files of the versions up to it must have been entered.
	EnteredFiles(ctx context.Context, objectID string, version int, after string, limit int) ([]File, error)
	// EnteredChain returns how far the chain of events of an object goes, and the hash of an event of
	// it; a zero value if the Registry does not know the object.
	EnteredChain(ctx context.Context, objectID string, seq int64) (EnteredChain, error)
	// EnterKeys enters keys with which anything was signed, and the first time of each that is known.
	EnterKeys(ctx context.Context, keys []ReceiptKey) error
	// Enter enters an object, or a part of it, in one transaction. With the part that has Object the
	// entered versions become visible: it returns the local ids that belong to other objects, which keep
	// them. A job that the Registry has, and of whose version it did not know that it was stored, goes on
	// behind the steps that made it.
	Enter(ctx context.Context, e Entered) (taken []TakenID, err error)
}

// Reconciling compares the Registry with what storages hold, after it was restored from an older backup,
// and enters what it does not know. Every call may be repeated.
type Reconciling interface {
	Rebuilding
	// ReconcileState returns how far the last comparison is; a zero value if there was none.
	ReconcileState(ctx context.Context) (RebuildState, error)
	// SaveReconcile notes how far a comparison is.
	SaveReconcile(ctx context.Context, s RebuildState) error
	// Recorded returns the record of an object; a zero value if there is none.
	Recorded(ctx context.Context, objectID string) (RecordedObject, error)
	// RecordedAfter lists the objects that have a version and are not deleted, by id.
	RecordedAfter(ctx context.Context, after string, limit int) ([]string, error)
	// TakenIDs returns those of the local ids that belong to other objects than this one.
	TakenIDs(ctx context.Context, objectID string, ids []OwnedID) ([]TakenID, error)
	// ReceiptKeys lists the public keys that the Registry knows, by first use.
	ReceiptKeys(ctx context.Context) ([]ReceiptKey, error)
	// EventHash returns the hash of an event of an object's chain; "" if it is not there.
	EventHash(ctx context.Context, objectID string, seq int64) (string, error)
	// WithdrawVersion withdraws the announced version of an object, whose place in the storages another
	// one has. Its job makes its version anew.
	WithdrawVersion(ctx context.Context, objectID string) error
	// EnterDeletion enters what a tombstone says of an object that the Registry believes to be alive. The
	// deletion's item carries it on; if it is not there any more, it is made again.
	EnterDeletion(ctx context.Context, d Deletion) error
}

// RecordedObject is the record of an object. Its Head is 0 if it is only named.
type RecordedObject struct {
	Object             // without the checks of its files
	AnnouncedBy string // the item of its announced version
	LastEvent   int64  // number of the last event of its chain
	LastHash    string // and its hash
}

// ErrRebuilt says that a Registry must not be rebuilt, because it has objects.
var ErrRebuilt = errors.New("the Registry has objects already")

// RebuildState says how far a rebuild is, or a comparison.
type RebuildState struct {
	Begun    time.Time       `json:"begun,omitzero"`
	Ended    time.Time       `json:"ended,omitzero"`
	Storages []string        `json:"storages"` // their names, in their order
	Storage  string          `json:"storage"`  // that is being read
	After    string          `json:"after"`    // the folder there up to which everything was entered
	Recorded bool            `json:"recorded"` // the storages were read: the recorded objects are looked for, after the object After
	Report   json.RawMessage `json:"report,omitempty"`
}

// Open reports whether a rebuild has begun and not ended: the Registry does not know all objects.
func (s RebuildState) Open() bool { return !s.Begun.IsZero() && s.Ended.IsZero() }

// EnteredChain is what the Registry has of an object's chain of events.
type EnteredChain struct {
	Place
	Head     int // the newest visible version; 0: none
	Gone     DeletionStatus
	Last     int64    // number of the last event; 0: none
	Hash     string   // of the event that was asked for; "": it is not there
	Storages []string // that have a version of the object
}

// Entered is what storages hold of an object, or a part of that.
type Entered struct {
	ObjectID string
	Files    []EnteredFiles
	Versions []EnteredVersion // whose files are in this part or in earlier ones
	Events   []Premis         // with their places in the object's chain
	Object   *EnteredObject   // of the last part; nil: more follows
}

// EnteredFiles are rows of files of a version: those that it changed, and those that end with it.
type EnteredFiles struct {
	Version int
	Rows    []File
	Checked time.Time // when they were verified; zero: never
}

// EnteredVersion is a version of an object as storages hold it.
type EnteredVersion struct {
	ObjectVersion
	Padding  int             // as in Place
	Receipt  *DepositReceipt // nil: it has none
	LastHash string          // of the receipt's last event
}

// EnteredObject is an object as storages hold it.
type EnteredObject struct {
	Object         // without Versions; Head 0: only its deletion is known
	MintedFor      string
	EZIDItem       string
	ProfileVersion int // of the collection's profile; 0: not known
	// Profile is what is known of the collection's, for a collection that the Registry does not know.
	Profile Profile
	IDs     []OwnedID
	// Evidence says how far its chain lies in each storage. What the Registry noted is never lowered.
	Evidence []EvidencePlace
}

// OwnedID is a local id of an owner.
type OwnedID struct {
	Owner   string `json:"owner"`
	LocalID string `json:"local_id"`
}

// TakenID is a local id that another object has.
type TakenID struct {
	OwnedID
	ObjectID string `json:"object_id"` // that has it
}

// Adopting takes objects that others made in a storage into the Registry, as they lie there. Every call may
// be repeated, and may run while the Registry serves.
type Adopting interface {
	// StoredAs returns the object that has an identifier in its storages, recorded or only named. ErrNotFound:
	// there is none.
	StoredAs(ctx context.Context, stored string) (Object, error)
	// TakenIDs is that of Reconciling.
	TakenIDs(ctx context.Context, objectID string, ids []OwnedID) ([]TakenID, error)
	// Recorded is that of Reconciling.
	Recorded(ctx context.Context, objectID string) (RecordedObject, error)
	// NameAdopted names an object of a storage, so that a repeat finds the same name. Of o it takes ID (the
	// proposed ARK), Place, Collection and Owner. It returns the ARK by which the object goes. ErrTaken: the
	// proposed one belongs to another object, or the object was named for another collection or with more
	// versions, or some of it was entered from another storage.
	NameAdopted(ctx context.Context, o Object, storage string) (ark string, err error)
	// MayAdopt says whether NameAdopted would take an object with the ARK o.ID, and changes nothing.
	MayAdopt(ctx context.Context, o Object, storage string) error
	// EnteredFiles and Enter are those of Rebuilding, but a version may come in a part before its files.
	EnteredFiles(ctx context.Context, objectID string, version int, after string, limit int) ([]File, error)
	Enter(ctx context.Context, e Entered) (taken []TakenID, err error)
	// RecordAdopted makes a named object visible, with its entered versions, its local ids, its events and a
	// receipt for each version. ErrTaken: a local id belongs to another object; then nothing changes. A repeat
	// changes nothing.
	RecordAdopted(ctx context.Context, o AdoptedObject) error
	// AdoptState returns how far the last adoption is; a zero value if there was none.
	AdoptState(ctx context.Context) (RebuildState, error)
	// SaveAdopt notes how far an adoption is.
	SaveAdopt(ctx context.Context, s RebuildState) error
}

// AdoptedObject is an object that others made.
type AdoptedObject struct {
	Object         // with all its Versions, of which each has its only replica
	ProfileVersion int
	Events         []Premis // by version
}
