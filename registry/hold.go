package registry

import (
	"context"
	"slices"
	"strings"
	"time"
)

// Holding adds and releases holds.
type Holding interface {
	// AddHold keeps the items of a scope from starting, or a worker from getting items. Running
	// steps continue. A repeat replaces reason and actor.
	AddHold(ctx context.Context, h Hold) error
	// RemoveHold releases a hold. If the hold is on a collection that releases one by one, each
	// waiting item that no other hold covers gets its own hold of scope item, with the same actor
	// and time. ErrNotFound: there is no such hold.
	RemoveHold(ctx context.Context, scope HoldScope, key, actor string) error
}

// HoldScope says what a hold covers.
type HoldScope string

// The hold scopes. A hold covers an item at the stage where it would start next; a running step
// finishes. The scopes ingest, collection and batch cover only stages that take deposits in
// ([Route.Deposit]), not acts of admins, messages and housekeeping.
const (
	HoldAll        HoldScope = "all"        // everything; no key
	HoldIngest     HoldScope = "ingest"     // every deposit that is being ingested; no key
	HoldStage      HoldScope = "stage"      // key: the stage
	HoldCollection HoldScope = "collection" // key: the mnemonic; covers its deposits
	HoldVolume     HoldScope = "volume"     // key: a storage, or the staging volume; covers the stages that write to it
	HoldBatch      HoldScope = "batch"      // key: the batch's id; covers the batch and its jobs
	HoldItem       HoldScope = "item"       // key: the item's id
	HoldWorker     HoldScope = "worker"     // key: a worker's id or host; the worker gets no items
)

// HoldScopes returns every scope in a fixed order.
func HoldScopes() []HoldScope {
	return []HoldScope{HoldAll, HoldIngest, HoldStage, HoldCollection, HoldVolume, HoldBatch, HoldItem, HoldWorker}
}

// Keyless reports whether holds of the scope have no key.
func (s HoldScope) Keyless() bool { return s == HoldAll || s == HoldIngest }

// Hold is a reason why items may not start.
type Hold struct {
	Scope     HoldScope `json:"scope"`
	Key       string    `json:"key"`
	Reason    string    `json:"reason"`
	Actor     string    `json:"actor"`
	CreatedAt time.Time `json:"created_at"`
}

// CoversStage reports whether the hold keeps every item from starting a step of the stage.
func (h Hold) CoversStage(stage Stage) bool {
	return h.Scope == HoldAll || h.Scope == HoldIngest && takesIn(stage) || h.Scope == HoldStage && h.Key == string(stage)
}

// Covers reports whether the hold keeps an item from starting its next step. That is the step of
// its stage or, while it runs, the one after. No hold covers a settled item.
func (h Hold) Covers(it WorkItem) bool {
	if it.Status.Settled() {
		return false
	}
	stage := nextStart(it)
	switch h.Scope {
	case HoldAll, HoldIngest, HoldStage:
		return h.CoversStage(stage)
	case HoldCollection:
		return takesIn(stage) && h.Key == it.Collection
	case HoldVolume:
		return h.coversVolume(it, stage)
	case HoldBatch:
		return takesIn(stage) && (h.Key == it.ID || h.Key == it.ParentID)
	case HoldItem:
		return h.Key == it.ID
	case HoldWorker:
		return false // another worker may take the item
	}
	return false
}

func (h Hold) coversVolume(it WorkItem, stage Stage) bool {
	switch writes(stage) {
	case StorageVolume:
		return len(it.Storages) > 0 && h.Key == it.Storages[0]
	case OtherStorages:
		return len(it.Storages) > 1 && slices.Contains(it.Storages[1:], h.Key)
	case AllStorages:
		return slices.Contains(it.Storages, h.Key)
	case StagingVolume:
		return h.Key == DefaultStaging
	case NoVolume:
	}
	return false
}

// nextStart returns the stage that the item would start next. A last step can only start again.
func nextStart(it WorkItem) Stage {
	if it.Status == Running {
		if route, ok := it.Route(); ok {
			if next, ok := route.Next(it.Stage); ok {
				return next
			}
		}
	}
	return it.Stage
}

// CoversWorker reports whether the hold keeps a worker from getting items. Its key is the worker's
// id, or the host in an id of the form HOST-PID-RANDOM. It ignores what follows a slash in the id.
func (h Hold) CoversWorker(id string) bool {
	if h.Scope != HoldWorker || h.Key == "" {
		return false
	}
	process, _, _ := strings.Cut(id, "/")
	if h.Key == id || h.Key == process {
		return true
	}
	rest, ok := strings.CutPrefix(process, h.Key+"-")
	return ok && strings.Count(rest, "-") == 1 // host "node" is not host "node-2"
}

// Restored is the mark of a database that was restored from a backup. Its record may be older than
// the storages: they may have objects and versions that it does not know, so it could give a second
// name to one of them, or a version's number twice.
type Restored struct {
	BackupAt     time.Time `json:"backup_at"`              // the record is as it was then
	RestoredAt   time.Time `json:"restored_at"`            //
	From         string    `json:"from"`                   // the name of the backup
	Held         bool      `json:"held,omitempty"`         // the first start has put its holds
	ReconciledAt time.Time `json:"reconciled_at,omitzero"` // zero: record and storages were not compared yet
	Accepted     string    `json:"accepted,omitempty"`     // why what disagreed then was left so; "": nothing disagreed
}

// Open reports whether record and storages are still to be compared.
func (r Restored) Open() bool { return !r.BackupAt.IsZero() && r.ReconciledAt.IsZero() }

// RestoredStages returns the stages that a restored database holds at its first start: those that name
// objects, write or delete versions, or write an object's history. The rest goes on.
func RestoredStages() []Stage {
	return []Stage{Process, Replicate, Record, Delete, Fixity, Restore}
}
