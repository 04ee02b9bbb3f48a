package registry

import (
	"context"
	"slices"
	"strings"
	"time"
)

// Holding keeps items from starting.
type Holding interface {
	// AddHold stops items of a scope from starting, or a worker from being given any; what runs
	// goes on. A repeat replaces reason and actor.
	AddHold(ctx context.Context, h Hold) error
	// RemoveHold lets go what no other hold covers, unless the hold is on a collection that
	// releases one by one: then every item of it that waits and that the hold covered alone gets a
	// hold of its own instead, of scope item, with the same actor and time. ErrNotFound when there
	// is no such hold.
	RemoveHold(ctx context.Context, scope HoldScope, key, actor string) error
}

// HoldScope is what a hold covers.
type HoldScope string

// The hold scopes. A hold covers an item at whatever stage it would next start; a running step goes
// on. Those of ingest, collection and batch cover what takes deposits in ([Route.Deposit]). Acts of
// admins, messages and housekeeping go on under them.
const (
	HoldAll        HoldScope = "all"        // everything; its key is ""
	HoldIngest     HoldScope = "ingest"     // every deposit that is being taken in; its key is ""
	HoldStage      HoldScope = "stage"      // key: the stage
	HoldCollection HoldScope = "collection" // key: the mnemonic; covers its deposits
	HoldVolume     HoldScope = "volume"     // key: a storage volume, or the staging volume; covers the stages that write to it
	HoldBatch      HoldScope = "batch"      // key: the batch's id; covers it and its jobs
	HoldItem       HoldScope = "item"       // key: the item's id
	HoldWorker     HoldScope = "worker"     // key: a worker's id, or its host; it is given nothing more
)

// HoldScopes returns every scope in a fixed order.
func HoldScopes() []HoldScope {
	return []HoldScope{HoldAll, HoldIngest, HoldStage, HoldCollection, HoldVolume, HoldBatch, HoldItem, HoldWorker}
}

// Keyless says that the scope is one thing, so that a hold of it has no key.
func (s HoldScope) Keyless() bool { return s == HoldAll || s == HoldIngest }

// Hold is a reason why items may not start.
type Hold struct {
	Scope     HoldScope `json:"scope"`
	Key       string    `json:"key"`
	Reason    string    `json:"reason"`
	Actor     string    `json:"actor"`
	CreatedAt time.Time `json:"created_at"`
}

// Covers says whether the hold keeps an item from starting its next step: that of the stage where
// it stands, or, while it runs, the one after it, since a running step goes on. Nothing covers a
// settled item.
func (h Hold) Covers(it WorkItem) bool {
	if it.Status.Settled() {
		return false
	}
	stage := nextStart(it)
	switch h.Scope {
	case HoldAll:
		return true
	case HoldIngest:
		return takesIn(stage)
	case HoldStage:
		return h.Key == string(stage)
	case HoldCollection:
		return takesIn(stage) && h.Key == it.Collection
	case HoldVolume:
		return h.coversVolume(it, stage)
	case HoldBatch:
		return takesIn(stage) && (h.Key == it.ID || h.Key == it.ParentID)
	case HoldItem:
		return h.Key == it.ID
	case HoldWorker:
		return false // the item may go to another one
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

// nextStart is the stage of the step that an item would start next. A last step can only start
// again.
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

// CoversWorker says whether the hold keeps a worker from being given anything: its key is the
// worker's id, or the host in an id of the form HOST-PID-RANDOM. What follows a slash in an id is
// not looked at.
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
