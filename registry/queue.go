package registry

import (
	"context"
	"time"
)

// Queue describes what waits, and the holds.
type Queue interface {
	// QueueStatus counts the waiting and running items of each stage.
	QueueStatus(ctx context.Context) (QueueStatus, error)
	// Holds lists all holds.
	Holds(ctx context.Context) ([]Hold, error)
}

// QueueStatus is the state of the whole queue.
type QueueStatus struct {
	Accepting Accepting `json:"accepting"`
	Paused    *Hold     `json:"paused,omitempty"` // the hold on everything, or on all deposits
	Running   int64     `json:"running"`
	Holds     int       `json:"holds"`
	Damaged   int64     `json:"damaged"` // stored files known to be damaged or missing in some storage
	// Strays is the failed search that found files in storages which belong to no object; "" if
	// there is none.
	Strays  string       `json:"strays,omitempty"`
	OneCopy int64        `json:"one_copy"` // collections with only one storage, and so without a second copy
	Stages  []StageQueue `json:"stages"`   // every stage, in route order; then every function, by name
	// Failing are the subscriptions whose receivers do not acknowledge events.
	Failing []Subscription `json:"failing,omitempty"`
}

// StageQueue is the state of one stage.
type StageQueue struct {
	Stage       Stage      `json:"stage"`
	Ready       int64      `json:"ready"`   // can be claimed as soon as there is a free slot
	Waiting     int64      `json:"waiting"` // for time, room, a lock or other items
	Held        int64      `json:"held"`
	Running     int64      `json:"running"`
	Rung        int64      `json:"rung"`     // messages sent and not answered; at most two for each slot
	Capacity    int        `json:"capacity"` // slots of live workers that are neither held nor stopping
	Free        int        `json:"free"`
	OldestReady *time.Time `json:"oldest_ready,omitempty"` // since when the longest waiting item could run
}
