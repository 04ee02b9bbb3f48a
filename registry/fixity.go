package registry

import (
	"context"
	"time"
)

// Checking is how a stored file is checked.
type Checking interface {
	// StoredFile returns the file that the item is to check; ErrNotFound when the object does not
	// have it any more.
	StoredFile(ctx context.Context, l Lease) (StoredFile, error)
	// RecordCheck notes what a check of the item's file found, with its preservation events: the
	// file is right in every storage, or damaged. A step may record several, one after the other:
	// what it found, and what it mended. ErrNotFound as for StoredFile.
	RecordCheck(ctx context.Context, l Lease, r CheckRecord) error
}

// Rechecking says when stored files are checked.
type Rechecking interface {
	// Recheck makes items of action fixity for stored files whose last check is older than Every,
	// or that somebody asked to have checked, in this order, the longest unchecked first. Files
	// that are late stay due; one has a single check at a time, and none while a failed one waits
	// for review. It also purges completed checks. It may run in several processes, and does a
	// bounded amount at a time.
	Recheck(ctx context.Context, r RecheckRequest) (Rechecked, error)
	// AskForCheck has every stored file of an object checked that was not since now, as Recheck
	// gets round to it. A repeat asks anew. ErrNotFound for an unknown object.
	AskForCheck(ctx context.Context, objectID, reason, actor string) error
}

// StoredFile is one file as it lies in an object's folder in every storage that has the object:
// content, however many names it has in how many versions, or the inventory of a version. It is
// what is read again to see whether it is still what was stored.
type StoredFile struct {
	ObjectID  string            `json:"object_id"`
	File      []byte            `json:"file"`    // below the object's folder, such as v1/content/a.txt; bytes, as names are
	Version   int               `json:"version"` // that it came with
	SizeBytes int64             `json:"size_bytes"`
	Digests   map[string]string `json:"digests"`  // by algorithm; none of an inventory that was recorded before they were
	Head      int               `json:"head"`     // the object's newest version
	Storages  []string          `json:"storages"` // that have the version, by name
	// CheckedAt is when it was last read in every storage and found right, or written and read
	// back.
	CheckedAt time.Time  `json:"checked_at"`
	DamagedAt *time.Time `json:"damaged_at,omitempty"` // since when it is known not to be right somewhere
}

// CheckOutcome is what became of a stored file in one storage.
type CheckOutcome string

// The outcomes of a check.
const (
	CheckGood     CheckOutcome = "good"
	CheckDamaged  CheckOutcome = "damaged"  // it is there, with other bytes
	CheckMissing  CheckOutcome = "missing"  // the storage is there, and the file is not
	CheckRepaired CheckOutcome = "repaired" // it was put right and read back
)

// Right says whether the file is what was stored.
func (o CheckOutcome) Right() bool { return o == CheckGood || o == CheckRepaired }

// ReplicaCheck is what a check found in one storage.
type ReplicaCheck struct {
	Storage string       `json:"storage"`
	Outcome CheckOutcome `json:"outcome"`
}

// CheckRecord is what a check of a stored file found.
type CheckRecord struct {
	Replicas []ReplicaCheck `json:"replicas"`
	Events   []Premis       `json:"events"`
}

// Right says whether the file is right in every storage.
func (r CheckRecord) Right() bool {
	for _, c := range r.Replicas {
		if !c.Outcome.Right() {
			return false
		}
	}
	return len(r.Replicas) > 0
}

// RecheckRequest bounds what [Rechecking.Recheck] does.
type RecheckRequest struct {
	Every       time.Duration `json:"every"`       // how old a check may get; 0: only what was asked for is due
	Outstanding int           `json:"outstanding"` // checks that may wait or run at the same time
	Keep        time.Duration `json:"keep"`        // for how long a completed check is kept as an item
}

// Rechecked is what it did.
type Rechecked struct {
	Queued  int   `json:"queued"`
	Purged  int   `json:"purged"`
	Damaged int64 `json:"damaged"` // files that are known not to be right somewhere
}

// Types of events of checks.
const (
	EventFileDamaged   = "file-damaged"
	EventFileRight     = "file-right" // again
	EventCheckAskedFor = "check-asked"
)
