package registry

import (
	"context"
	"time"
)

// Queue is what waits in the queues, and what keeps it there.
type Queue interface {
	// QueueStatus adds up, per stage, what waits and runs.
	QueueStatus(ctx context.Context) (QueueStatus, error)
	// Holds lists all holds.
	Holds(ctx context.Context) ([]Hold, error)
}

// QueueStatus is the whole queue at a glance.
type QueueStatus struct {
	Accepting Accepting `json:"accepting"`
	Paused    *Hold     `json:"paused,omitempty"` // the hold on everything, or on all deposits
	Running   int64     `json:"running"`
	Holds     int       `json:"holds"`
	Damaged   int64     `json:"damaged"` // stored files that are known not to be right in some storage
	// Strays is the failed search that found files in storages which belong to no object; "" when
	// there is none.
	Strays  string       `json:"strays,omitempty"`
	OneCopy int64        `json:"one_copy"` // collections whose objects are kept in one storage only: there is no second copy
	Stages  []StageQueue `json:"stages"`   // every stage, in route order
	// Failing are the subscriptions whose receivers do not acknowledge what they are sent.
	Failing []Subscription `json:"failing,omitempty"`
}

// StageQueue is what stands in one stage.
type StageQueue struct {
	Stage       Stage      `json:"stage"`
	Ready       int64      `json:"ready"`   // would be claimed if there were a slot
	Waiting     int64      `json:"waiting"` // for time, room, a lock or other items
	Held        int64      `json:"held"`
	Running     int64      `json:"running"`
	Rung        int64      `json:"rung"`     // messages sent to NSQ for them and not answered yet; at most two for each slot
	Capacity    int        `json:"capacity"` // slots of live workers that are neither held nor stopping
	Free        int        `json:"free"`
	OldestReady *time.Time `json:"oldest_ready,omitempty"` // since when the one that waits longest could run
}
