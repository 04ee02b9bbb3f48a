package registry

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"
)

// Inventory looks up what steps need of objects.
type Inventory interface {
	// Object returns an object by ARK, or ErrNotFound.
	Object(ctx context.Context, id string) (Object, error)
	// Files lists the files of an object's version by path, after a path; version 0 is the head.
	Files(ctx context.Context, objectID string, version int, after string, limit int) ([]File, error)
	// Deletions lists the deletions that wait for approval, oldest request first.
	Deletions(ctx context.Context, q DeletionQuery) (Page[Deletion], error)
	// RestorationOf returns the restore that an item carries out, or ErrNotFound. It outlives the
	// item.
	RestorationOf(ctx context.Context, itemID string) (Restoration, error)
}

// Catalog looks up what people need of objects. Lists are paged like those of [ItemReader].
type Catalog interface {
	// Objects lists objects, newest first.
	Objects(ctx context.Context, q ObjectQuery) (Page[Object], error)
	// FileChanges lists by path what differs between the files of two versions of an object.
	// ErrNotFound: there is no such version. ErrInvalid: Since is not before it.
	FileChanges(ctx context.Context, q FileChangesQuery) (Page[FileChange], error)
	// Restorations lists the restores of an object with a number below before (0: all), newest
	// first. ErrNotFound: the object is not recorded.
	Restorations(ctx context.Context, objectID string, before, limit int) ([]Restoration, error)
}

// Evidencing looks up what lies beside an object's bytes, together with its files.
type Evidencing interface {
	// DepositReceipt returns the head of a recorded version's receipt. ErrNotFound: there is no such
	// version, or it has no receipt.
	DepositReceipt(ctx context.Context, objectID string, version int) (DepositReceipt, error)
	// PremisEvents lists an object's preservation events in the order of their chain; events
	// outside any chain come first. after is the Next of the previous page, or AfterSeq.
	PremisEvents(ctx context.Context, objectID, after string, limit int) (Page[Premis], error)
}

// EventsSigning tells how far an object's events lie beside its bytes, and signs what is written there.
type EventsSigning interface {
	// EvidencePlaces returns how far an object's chain of events goes, and how far it lies in each storage
	// that has the object.
	EvidencePlaces(ctx context.Context, objectID string) (EvidencePlaces, error)
	// SignEvents returns the head of a text of events first to last of an object, which says what
	// the record says of them, signed if the Registry has a receipt key. ErrNotFound: the record lacks
	// one at an end.
	SignEvents(ctx context.Context, objectID string, first, last int64) (head []byte, err error)
}

// EvidenceKeeping is what the Registry's own processes call to write events between two versions
// beside the bytes of their object, in each storage that has it. Receipts hold all other events.
type EvidenceKeeping interface {
	// WaitingEvidence lists objects with events that some storage lacks and whose time has come: the
	// oldest waited long enough, many wait, or one of them is no routine. It leaves out objects that
	// are being deleted.
	WaitingEvidence(ctx context.Context, q WaitingQuery) (Page[WaitingEvidence], error)
	// BeginEvidence notes that events of an object are about to be written into storages. A repeat
	// changes nothing. *GoneError: it is deleted or being deleted.
	BeginEvidence(ctx context.Context, objectID string, storages []string) error
	// KeptEvidence notes up to which event an object's chain lies in storages, whose beginning was
	// noted. The object waits no longer if all storages in k.Among have all its events. A late
	// call never lowers the number. *GoneError as for BeginEvidence.
	KeptEvidence(ctx context.Context, k KeptEvidence) error
	// BegunEvidence lists the storages in which events of an object were begun to be written.
	BegunEvidence(ctx context.Context, objectID string) (storages []string, err error)
	// ForgetEvidence removes what is noted of a deleted object.
	ForgetEvidence(ctx context.Context, objectID string) error
}

// WaitingQuery asks for objects with events to be written.
type WaitingQuery struct {
	Within time.Duration // how long routine events may wait
	After  string        // Next of the page before
	Limit  int
}

// WaitingEvidence is an object with events to be written.
type WaitingEvidence struct {
	ObjectID string
	Place
	Deleted bool // nothing of it may be left in any storage
}

// EvidencePlace says how far an object's chain lies in one storage, in receipts and other files.
type EvidencePlace struct {
	Storage  string `json:"storage"`
	Version  int    `json:"version"`  // the newest that it has
	Seq      int64  `json:"seq"`      // number of the last event; 0: none
	Segments int    `json:"segments"` // files of events beside the receipts
	Begun    bool   `json:"begun"`    // see BeginEvidence
}

// EvidencePlaces says where the events of an object are.
type EvidencePlaces struct {
	Last   int64           `json:"last"` // number of the last event of its chain
	Places []EvidencePlace `json:"places"`
	// Lost are events that storages may still have in another place of the chain; see LostEvents.
	Lost []LostEvents `json:"lost,omitempty"`
	// Keys are the public keys of all receipts, if there are any such events.
	Keys []ReceiptKey `json:"keys,omitempty"`
}

// LostEvents are events of an object that a checkpoint had signed and the record lost, and whose loss two
// people accepted. Later events have their numbers.
type LostEvents struct {
	ObjectID string `json:"object_id"`
	After    int64  `json:"after"` // the last event that was left; 0: none
	To       int64  `json:"to"`
	Hash     string `json:"hash"` // of event To, as it was signed
}

// KeptEvidence says how far an object's chain lies in storages by now.
type KeptEvidence struct {
	ObjectID string
	Places   []EvidencePlace // those that have changed
	Among    []string        // storages that shall have all events
}

// Attesting looks up what PREMIS documents and those who verify receipts need.
type Attesting interface {
	// FileHistory lists the files of all recorded versions by path and version, after a row. Each
	// row holds from its version until the path's next row; a deleted row says that the file ends.
	// ErrNotFound: the object is not recorded.
	FileHistory(ctx context.Context, objectID string, after FilePlace, limit int) ([]File, error)
	// ReceiptKeys lists the public keys of all receipts by first use.
	ReceiptKeys(ctx context.Context) ([]ReceiptKey, error)
	// Tombstone returns the text that the storages keep of a deleted object; "" if it is not deleted, or
	// no text of it is known.
	Tombstone(ctx context.Context, objectID string) (string, error)
}

// File is one inventory row: a file from a version on.
type File struct {
	Path        string            `json:"path"` // logical path: producer/NAME or system/NAME
	Version     int               `json:"version"`
	ContentPath string            `json:"content_path"` // path in the OCFL object
	SizeBytes   int64             `json:"size_bytes"`
	Digests     map[string]string `json:"digests"`
	MIMEType    string            `json:"mime_type,omitempty"`
	Format      *Format           `json:"format,omitempty"`  // nil: not identified
	Deleted     bool              `json:"deleted,omitempty"` // a tombstone: the path ends with this version
	Modified    time.Time         `json:"modified,omitzero" doc:"When the producer last changed it, as its source told, or when Holdfast wrote it, of files in system/; left out when nobody knows"`
}

// FileChangesQuery asks what differs between two versions of an object.
type FileChangesQuery struct {
	ObjectID string
	Version  int    // 0: the newest
	Since    int    // the version that it is compared with; 0: with nothing, so that every file is added
	Folder   string // only paths that begin so; "": all
	After    string // the Next of the page before
	Limit    int    // 0 means 50; the most is 500
}

// FileChange says how a path differs between two versions.
type FileChange struct {
	Path   string         `json:"path"`
	Change FileChangeKind `json:"change"`
	Before *File          `json:"before,omitempty"` // in the earlier version; nil: it has no such file
	After  *File          `json:"after,omitempty"`  // in the later version; nil: it has no such file
	// From is the former path of a renamed file, in the row of the new path. To is its new path, in the
	// row of the former one.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// FileChangeKind is how a path differs between two versions.
type FileChangeKind string

// The ways in which a path differs.
const (
	FileAdded   FileChangeKind = "added"
	FileRemoved FileChangeKind = "removed"
	FileChanged FileChangeKind = "changed" // it has other bytes
	FileRenamed FileChangeKind = "renamed" // the same bytes, and only these, went from one path to another
)

// Format is a file's format in PRONOM, the registry of file formats.
type Format struct {
	PUID    string `json:"puid"`              // PRONOM's identifier, such as fmt/412
	Name    string `json:"name"`              // name of the format
	Version string `json:"version,omitempty"` // of the format, such as 1.4
	// Registry is the version of PRONOM.
	Registry string `json:"registry_version"`
	Warning  string `json:"warning,omitempty"` // why it may be wrong
}

// Replica is a version of an object in one storage.
type Replica struct {
	Storage    string    `json:"storage"`     // its name
	VerifiedAt time.Time `json:"verified_at"` // when every byte of it was last read and found right
}

// Premis is one preservation event of an object (PREMIS 3).
type Premis struct {
	ID       string    `json:"id"` // stable: a repeat has the same
	ObjectID string    `json:"object_id"`
	Version  int       `json:"version"`
	ItemID   string    `json:"item_id"`
	Type     string    `json:"type"` // a term of id.loc.gov's eventType vocabulary
	At       time.Time `json:"at"`
	Agent    string    `json:"agent"`
	Outcome  string    `json:"outcome"`
	Detail   string    `json:"detail"`
	// The Registry sets these. Seq is the event's number in the object's chain, from 1; 0: recorded
	// before there were chains. Hash covers the event and the previous hash, see docs/receipt.md.
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
}

// Object is a preserved object in the inventory.
type Object struct {
	ID         string   `json:"object_id"` // its ARK
	ARK        string   `json:"ark"`
	Tenant     string   `json:"tenant"`
	Collection string   `json:"collection"`
	Owner      string   `json:"owner"`
	LocalIDs   []string `json:"local_ids"`
	Title      string   `json:"title"`
	Creator    string   `json:"creator"`
	Date       string   `json:"date"`
	Terms      Terms    `json:"terms,omitzero" doc:"Rights, preservation level and embargo in force"`
	Head       int      `json:"version"`
	Place
	Files     int64          `json:"files"`
	SizeBytes int64          `json:"size_bytes"`
	CreatedAt time.Time      `json:"created_at"`
	UpdatedAt time.Time      `json:"updated_at"`
	Gone      DeletionStatus `json:"gone,omitempty"` // deleting or deleted: the object cannot be read
	// CheckedAt is the oldest time at which a file of the object was verified in every storage or
	// written; Unchecked is that file's path in the object's folder. Damaged counts files that are
	// damaged or missing in some storage. CheckAsked is when a check of all files was requested
	// that is not completely queued. Lists omit these fields.
	CheckedAt time.Time    `json:"checked_at,omitzero"`
	Unchecked string       `json:"unchecked,omitempty"`
	Damaged   int64        `json:"damaged,omitempty"`
	Damages   []FileDamage `json:"damages,omitempty" doc:"The first of the damaged files, each with the storages in which it is; not in lists"`
	// DamagedIn counts the damaged files by storage, by name: Located of them, of which it is known where they
	// are damaged. The check of another was deleted, or there are more than [MostLocated].
	DamagedIn  []StorageDamage `json:"damaged_in,omitempty" doc:"How many files are damaged or missing in each storage, as far as it is known; not in lists"`
	Located    int64           `json:"damaged_located,omitempty" doc:"Of how many of the damaged files it is known where they are damaged; not in lists"`
	CheckAsked *time.Time      `json:"check_asked_at,omitempty"`
	Versions   []ObjectVersion `json:"versions,omitempty"`
	// Announced is the version that is being written, or 0. Lists omit it.
	Announced int       `json:"announced_version,omitempty"`
	Deletion  *Deletion `json:"deletion,omitempty"` // the last one requested; not in lists
	// Copies are filled in by the API for one object.
	Copies *ObjectCopies `json:"copies,omitempty" doc:"How many copies it has and should have; not in lists"`
}

// FileDamage says where the last check of a stored file found it damaged or missing.
type FileDamage struct {
	File     string         `json:"file" doc:"The file's path in the object's folder"`
	Replicas []ReplicaCheck `json:"replicas" doc:"The storages in which it is damaged or missing"`
}

// StorageDamage says how many files of an object a storage has damaged, or lacks.
type StorageDamage struct {
	Storage string `json:"storage"`
	Files   int64  `json:"files"`
}

// MostDamages is how many damaged files an object names, and MostLocated of how many it says where they are.
const (
	MostDamages = 100
	MostLocated = 10_000
)

// Place says how an object lies in its storages. It is empty but for an object that others made there, and
// that was adopted.
type Place struct {
	// OCFLID is its identifier there, and in no other part of Holdfast; "": its ARK.
	OCFLID string `json:"ocfl_id,omitempty" doc:"The object's identifier in its OCFL storages, if that is not its ARK"`
	// Adopted is how many of its first versions others made.
	Adopted int `json:"adopted_versions,omitempty" doc:"How many of its first versions others made, before the object was adopted"`
	// Padding is to how many digits the numbers of its version folders are padded; 0: they are not.
	Padding int `json:"version_padding,omitempty"`
}

// Stored returns the identifier of the object in its storages, given its ARK.
func (p Place) Stored(ark string) string { return cmp.Or(p.OCFLID, ark) }

// VersionFolder returns the name of a version's folder in the object's.
func (p Place) VersionFolder(version int) string { return fmt.Sprintf("v%0*d", p.Padding, version) }

// InventoryPath returns the path of a version's own inventory in the object's folder.
func (p Place) InventoryPath(version int) string { return p.VersionFolder(version) + "/inventory.json" }

// Stored returns the object's identifier in its storages.
func (o Object) Stored() string { return o.Place.Stored(o.ID) }

// ObjectVersion is one recorded version of an object.
type ObjectVersion struct {
	Version    int       `json:"version"`
	ItemID     string    `json:"item_id"`
	Files      int64     `json:"files"`
	SizeBytes  int64     `json:"size_bytes"`
	CreatedAt  time.Time `json:"created_at"`
	RecordedAt time.Time `json:"recorded_at"`
	// Inventory is ALGORITHM:HEX of the version's OCFL inventory; "" for versions recorded before
	// it was kept.
	Inventory string    `json:"inventory,omitempty"`
	Replicas  []Replica `json:"replicas"` // by storage
}

// ObjectQuery selects objects; empty fields do not restrict.
type ObjectQuery struct {
	Collection string   `json:"collection"`
	Within     []string `json:"within"` // as in ItemQuery
	LocalID    string   `json:"local_id"`
	Text       string   `json:"text"` // text in ARK, title or creator
	After      string   `json:"after"`
	Before     string   `json:"before"` // Prev of a page: the page that ends before it; not with After
	Limit      int      `json:"limit"`
}

// DepositReceipt is the stored part of a version's receipt. The inventory has the lines of
// files and events, of which the receipt contains digests.
type DepositReceipt struct {
	ObjectID  string `json:"object_id"`
	Version   int    `json:"version"`
	KeyID     string `json:"key_id"` // key that signed; "": the Registry had none
	Head      string `json:"head"`   // the signed line
	Signature []byte `json:"signature"`
	// FirstEvent and LastEvent bound the events in the receipt, by their number in the object's
	// chain. It contains none if the last is before the first.
	FirstEvent int64 `json:"first_event"`
	LastEvent  int64 `json:"last_event"`
}

// ReceiptKey is a key that signed receipts.
type ReceiptKey struct {
	ID          string    `json:"id"`         // SHA-256 of the key's DER form
	PublicKey   string    `json:"public_key"` // in hex
	FirstUsedAt time.Time `json:"first_used_at"`
}

// FilePlace identifies a row of an object's files. The zero value is before all rows.
type FilePlace struct {
	Path    string
	Version int
}

// AfterSeq returns the cursor of PremisEvents behind the event with this number in the chain.
// AfterSeq(0) is before all events of the chain.
func AfterSeq(seq int64) string { return EventCursor(seq, math.MaxInt64, "") }

// EventCursor returns the cursor of PremisEvents behind the event with this number, time in
// microseconds and id.
func EventCursor(seq, at int64, id string) string { return fmt.Sprintf("%d.%d.%s", seq, at, id) }

// Folders of an object's files. File.Path begins with one of them.
const (
	ProducerFolder = "producer/" // what was deposited
	SystemFolder   = "system/"   // what Holdfast adds
)
