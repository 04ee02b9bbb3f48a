package registry

import (
	"context"
	"time"
)

// Checking carries out fixity checks of stored files.
type Checking interface {
	// StoredFile returns the file that the item checks. ErrNotFound: the object no longer has it.
	StoredFile(ctx context.Context, l Lease) (StoredFile, error)
	// RecordCheck records the result of a fixity check with its preservation events. A step may
	// record several results, such as what it found and what it mended. ErrNotFound as for
	// StoredFile.
	RecordCheck(ctx context.Context, l Lease, r CheckRecord) error
}

// Rechecking schedules fixity checks of stored files.
type Rechecking interface {
	// Recheck creates items of action fixity for stored files whose check was requested or whose
	// last check is older than Every, longest unchecked first. Files that are late stay due. A file
	// has one check at a time, and none while a failed one waits for review. Recheck also purges
	// completed checks. It may run in several processes and does a bounded amount at a time.
	Recheck(ctx context.Context, r RecheckRequest) (Rechecked, error)
	// AskForCheck requests a check of every stored file of an object that was not checked since
	// now. Recheck creates the checks. A repeat makes a new request, but not with the same idempotency
	// key (ErrIdempotencyConflict: with other arguments). ErrNotFound: the object is unknown.
	AskForCheck(ctx context.Context, r CheckRequest) error
}

// CheckRequest requests a check of every stored file of an object.
type CheckRequest struct{ ObjectID, Reason, Actor, IdempotencyKey string }

// HoldingsReader adds up what is kept.
type HoldingsReader interface {
	// Holdings counts stored files by when they were last checked, and versions by their copies.
	// These counts are at most ten minutes old, and new while there is no file; reservations are as of now.
	Holdings(ctx context.Context) (Holdings, error)
}

// Holdings is what is kept, and how well.
type Holdings struct {
	Files   int64           `json:"files"` // stored files of all objects
	Checked []CheckedWithin `json:"checked"`
	// FixityDays is the period of scheduled checks; 0: there is no schedule. Late counts the stored files
	// whose last check is older than that and a tenth of it.
	FixityDays float64     `json:"fixity_days,omitempty"`
	Late       int64       `json:"late,omitempty"`
	Copies     []CopyCount `json:"copies"` // by number, the smallest first
	At         time.Time   `json:"at"`     // when files and versions were counted
	Rooms      []Room      `json:"rooms"`  // by volume
}

// Percent returns how much of all stored files some of them are, rounded down: 100 is all of them.
func (h Holdings) Percent(files int64) int64 {
	if h.Files <= 0 {
		return 0
	}
	return files * 100 / h.Files
}

// CheckedDays are the times of [Holdings], the shortest first.
func CheckedDays() []int { return []int{30, 90, 365} }

// CheckedWithin is how many stored files were found right within some days in every storage.
type CheckedWithin struct {
	Days  int   `json:"days"`
	Files int64 `json:"files"`
}

// CopyCount is how many versions are kept in a number of storages.
type CopyCount struct {
	Copies   int   `json:"copies"`
	Versions int64 `json:"versions"`
}

// Room is what items have reserved on a volume.
type Room struct {
	Volume string `json:"volume"`
	Items  int64  `json:"items"`  // with a reservation
	Coming int64  `json:"coming"` // bytes that are reserved and not there yet
	Kept   int64  `json:"kept"`   // bytes that failed and cancelled items keep for a requeue
}

// StoredFile is one file in an object's folder in every storage that has the object: content under
// any number of names and versions, or the inventory of a version. A fixity check reads it again.
type StoredFile struct {
	ObjectID string `json:"object_id"`
	Place
	File      []byte            `json:"file"`    // path in the object's folder, such as v1/content/a.txt; bytes, like all names
	Version   int               `json:"version"` // version that added it
	SizeBytes int64             `json:"size_bytes"`
	Digests   map[string]string `json:"digests"`  // by algorithm; none for inventories recorded before they had any
	Head      int               `json:"head"`     // the object's newest version
	Storages  []string          `json:"storages"` // storages that have the version
	// CheckedAt is when the file was last read and found right in every storage, or was written and
	// read back.
	CheckedAt time.Time  `json:"checked_at"`
	DamagedAt *time.Time `json:"damaged_at,omitempty"` // since when it is known to be damaged or missing in some storage
}

// CheckOutcome is the result of a fixity check in one storage.
type CheckOutcome string

// The outcomes of a check.
const (
	CheckGood     CheckOutcome = "good"
	CheckDamaged  CheckOutcome = "damaged"  // it exists with other bytes
	CheckMissing  CheckOutcome = "missing"  // it does not exist in the storage
	CheckRepaired CheckOutcome = "repaired" // it was mended and read back
)

// Right reports whether the file is what was stored.
func (o CheckOutcome) Right() bool { return o == CheckGood || o == CheckRepaired }

// ReplicaCheck is the result of a fixity check in one storage.
type ReplicaCheck struct {
	Storage string       `json:"storage"`
	Outcome CheckOutcome `json:"outcome"`
}

// CheckRecord is the result of a fixity check of a stored file.
type CheckRecord struct {
	Replicas []ReplicaCheck `json:"replicas"`
	Events   []Premis       `json:"events"`
}

// Right reports whether the file is right in every storage.
func (r CheckRecord) Right() bool {
	for _, c := range r.Replicas {
		if !c.Outcome.Right() {
			return false
		}
	}
	return len(r.Replicas) > 0
}

// RecheckRequest configures [Rechecking.Recheck].
type RecheckRequest struct {
	Every       time.Duration `json:"every"`       // age at which a check is repeated; 0: only requested checks are due
	Outstanding int           `json:"outstanding"` // checks that may wait or run at a time
	Keep        time.Duration `json:"keep"`        // how long a completed check is kept as an item
}

// Rechecked is the result of [Rechecking.Recheck].
type Rechecked struct {
	Queued  int   `json:"queued"`
	Purged  int   `json:"purged"`
	Damaged int64 `json:"damaged"` // files known to be damaged or missing in some storage
}

// Types of events about fixity checks.
const (
	EventFileDamaged   = "file-damaged"
	EventFileRight     = "file-right" // again
	EventCheckAskedFor = "check-asked"
)
