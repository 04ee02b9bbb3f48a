package registry

import "time"

// StoredFile is one file as it lies in an object's folder in every storage that has the object: content, however many
// names it has in how many versions, or the inventory of a version. It is what is read again to see whether it is still
// what was stored.
type StoredFile struct {
	ObjectID  string            `json:"object_id"`
	File      []byte            `json:"file"`    // below the object's folder, such as v1/content/a.txt; bytes, as names are
	Version   int               `json:"version"` // that it came with
	SizeBytes int64             `json:"size_bytes"`
	Digests   map[string]string `json:"digests"`  // by algorithm; none of an inventory that was recorded before they were
	Head      int               `json:"head"`     // the object's newest version
	Storages  []string          `json:"storages"` // that have the version, by name
	// CheckedAt is when it was last read in every storage and found right, or written and read back.
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

// RecheckRequest bounds what [Housekeeping.Recheck] does.
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
