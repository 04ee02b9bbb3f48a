package registry

import "time"

// HoldScope is what a hold covers.
type HoldScope string

// The hold scopes. A hold covers an item at whatever stage it would next start; a running step goes on.
const (
	HoldAll        HoldScope = "all"        // everything; its key is ""
	HoldStage      HoldScope = "stage"      // key: the stage
	HoldCollection HoldScope = "collection" // key: the mnemonic
	HoldVolume     HoldScope = "volume"     // key: a storage volume; covers the stages that write to it
	HoldBatch      HoldScope = "batch"      // key: the batch's id; covers it and its jobs
	HoldItem       HoldScope = "item"       // key: the item's id
	HoldWorker     HoldScope = "worker"     // key: a worker's id, or its host; it is given nothing more
)

// HoldScopes returns every scope in a fixed order.
func HoldScopes() []HoldScope {
	return []HoldScope{HoldAll, HoldStage, HoldCollection, HoldVolume, HoldBatch, HoldItem, HoldWorker}
}

// Hold is a reason why items may not start.
type Hold struct {
	Scope     HoldScope `json:"scope"`
	Key       string    `json:"key"`
	Reason    string    `json:"reason"`
	Actor     string    `json:"actor"`
	CreatedAt time.Time `json:"created_at"`
}
