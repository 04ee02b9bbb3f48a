package registry

import (
	"context"
	"fmt"
	"math"
	"time"
)

// Inventory is what a step looks up of an object.
type Inventory interface {
	// Object returns an object by ARK, or ErrNotFound.
	Object(ctx context.Context, id string) (Object, error)
	// Files lists the state of an object's version by path, after a path; version 0 is the head.
	Files(ctx context.Context, objectID string, version int, after string, limit int) ([]File, error)
	// Deletions lists the deletions that are asked for, and wait for another person to approve
	// them: those that were asked for first come first.
	Deletions(ctx context.Context, q DeletionQuery) (Page[Deletion], error)
	// RestorationOf returns the restore that an item carries out, or ErrNotFound. It outlives the
	// item.
	RestorationOf(ctx context.Context, itemID string) (Restoration, error)
}

// Catalog is what people look up of objects. Lists are paged as those of [ItemReader].
type Catalog interface {
	// Objects lists objects, newest first.
	Objects(ctx context.Context, q ObjectQuery) (Page[Object], error)
	// PremisEvents lists an object's preservation events in the order of their chain, those that
	// are in none first. after is the Next of the page before, or AfterSeq.
	PremisEvents(ctx context.Context, objectID, after string, limit int) (Page[Premis], error)
	// Restorations lists the restores of an object, the newest first, those with a number below
	// before; 0: all. ErrNotFound for an object that is not recorded.
	Restorations(ctx context.Context, objectID string, before, limit int) ([]Restoration, error)
}

// Attesting is what receipts and PREMIS documents are made of, beside what is looked up in any
// case.
type Attesting interface {
	// FileHistory lists the files of all recorded versions by path and version, after a row: each
	// row is a file from its version on until the path's next row, and a deleted one says that
	// there is none. ErrNotFound for an object that is not recorded.
	FileHistory(ctx context.Context, objectID string, after FilePlace, limit int) ([]File, error)
	// DepositReceipt returns what is signed of a recorded version, or ErrNotFound: there is no such
	// version, or it has no receipt.
	DepositReceipt(ctx context.Context, objectID string, version int) (DepositReceipt, error)
	// ReceiptKeys lists the public keys of all receipts, in the order of their first use.
	ReceiptKeys(ctx context.Context) ([]ReceiptKey, error)
}

// File is one inventory row: a file as it is from version on.
type File struct {
	Path        string            `json:"path"` // logical path: producer/NAME or system/NAME
	Version     int               `json:"version"`
	ContentPath string            `json:"content_path"` // in the OCFL object
	SizeBytes   int64             `json:"size_bytes"`
	Digests     map[string]string `json:"digests"`
	MIMEType    string            `json:"mime_type,omitempty"`
	Format      *Format           `json:"format,omitempty"`  // nil: nobody asked, or nothing fitted
	Deleted     bool              `json:"deleted,omitempty"` // a tombstone: the path ends with this version
	Modified    time.Time         `json:"modified,omitzero" doc:"When the producer last changed it, as its source told, or when Holdfast wrote it, of files in system/; left out when nobody knows"`
}

// Format is what a file is in PRONOM, the registry of file formats.
type Format struct {
	PUID    string `json:"puid"`              // PRONOM's identifier, such as fmt/412
	Name    string `json:"name"`              // the format's
	Version string `json:"version,omitempty"` // of the format, such as 1.4
	// Registry is the version of PRONOM that it was found in.
	Registry string `json:"registry_version"`
	Warning  string `json:"warning,omitempty"` // why it should not be relied on
}

// Replica is a version of an object in one storage.
type Replica struct {
	Storage    string    `json:"storage"`     // its name
	VerifiedAt time.Time `json:"verified_at"` // when every byte of it was last read there and found right
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
	// The Registry sets these. Seq is the event's number in the object's chain of events, from 1
	// on; 0: it was recorded before there were chains. Hash is of the event and of the hash before
	// it, as docs/receipt.md says.
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
}

// Object is a preserved object as the inventory knows it.
type Object struct {
	ID         string         `json:"object_id"` // its ARK
	ARK        string         `json:"ark"`
	Tenant     string         `json:"tenant"`
	Collection string         `json:"collection"`
	Owner      string         `json:"owner"`
	LocalIDs   []string       `json:"local_ids"`
	Title      string         `json:"title"`
	Creator    string         `json:"creator"`
	Date       string         `json:"date"`
	Head       int            `json:"version"`
	Files      int64          `json:"files"`
	SizeBytes  int64          `json:"size_bytes"`
	CreatedAt  time.Time      `json:"created_at"`
	UpdatedAt  time.Time      `json:"updated_at"`
	Gone       DeletionStatus `json:"gone,omitempty"` // deleting or deleted: nobody can read it any more
	// CheckedAt says since when every stored file of the object was read again, or first written,
	// and found right in every storage; Unchecked is the file that was not for longest, below the
	// object's folder; Damaged is how many are known not to be right somewhere. CheckAsked is since
	// when a check of all of them is asked for and not all queued. Lists leave these out.
	CheckedAt  time.Time       `json:"checked_at,omitzero"`
	Unchecked  string          `json:"unchecked,omitempty"`
	Damaged    int64           `json:"damaged,omitempty"`
	CheckAsked *time.Time      `json:"check_asked_at,omitempty"`
	Versions   []ObjectVersion `json:"versions,omitempty"`
	// Announced is the version that is being written and not recorded yet, 0 when there is none.
	// Lists leave it out.
	Announced int       `json:"announced_version,omitempty"`
	Deletion  *Deletion `json:"deletion,omitempty"` // the last one that was asked for; not in lists
}

// ObjectVersion is one recorded version of an object.
type ObjectVersion struct {
	Version    int       `json:"version"`
	ItemID     string    `json:"item_id"`
	Files      int64     `json:"files"`
	SizeBytes  int64     `json:"size_bytes"`
	CreatedAt  time.Time `json:"created_at"`
	RecordedAt time.Time `json:"recorded_at"`
	// Inventory is ALGORITHM:HEX of the version's OCFL inventory, as recorded; "" of one that was
	// recorded before it was noted.
	Inventory string    `json:"inventory,omitempty"`
	Replicas  []Replica `json:"replicas"` // by storage
}

// ObjectQuery selects objects; empty fields do not restrict.
type ObjectQuery struct {
	Collection string   `json:"collection"`
	Within     []string `json:"within"` // as in ItemQuery
	LocalID    string   `json:"local_id"`
	Text       string   `json:"text"` // part of ARK, title or creator
	After      string   `json:"after"`
	Limit      int      `json:"limit"`
}

// DepositReceipt is the part of a version's signed receipt that is kept. The lines of files and
// events, which it holds the digests of, are those of the inventory.
type DepositReceipt struct {
	ObjectID  string `json:"object_id"`
	Version   int    `json:"version"`
	KeyID     string `json:"key_id"` // of the key that signed
	Head      string `json:"head"`   // the signed line
	Signature []byte `json:"signature"`
	// FirstEvent and LastEvent bound the events of the object's chain that it holds. It holds none
	// when the last is before the first.
	FirstEvent int64 `json:"first_event"`
	LastEvent  int64 `json:"last_event"`
}

// ReceiptKey is a key that receipts were signed with.
type ReceiptKey struct {
	ID          string    `json:"id"`         // SHA-256 of the key's DER form
	PublicKey   string    `json:"public_key"` // in hex
	FirstUsedAt time.Time `json:"first_used_at"`
}

// FilePlace names a row of an object's files; the zero value is before all of them.
type FilePlace struct {
	Path    string
	Version int
}

// AfterSeq is the cursor of PremisEvents behind the event with this number in the chain; behind 0
// are all that are in it.
func AfterSeq(seq int64) string { return EventCursor(seq, math.MaxInt64, "") }

// EventCursor is the cursor of PremisEvents behind the event with this number, time (microseconds)
// and id.
func EventCursor(seq, at int64, id string) string { return fmt.Sprintf("%d.%d.%s", seq, at, id) }

// Folders of an object's files, as File.Path begins with one of them.
const (
	ProducerFolder = "producer/" // what was deposited
	SystemFolder   = "system/"   // what Holdfast says of it
)
