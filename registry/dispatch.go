package registry

import (
	"context"
	"time"
)

// Dispatching is what the relay calls. It lists due items, whose messages may get lost.
type Dispatching interface {
	// Due returns items whose message is due and records that they were offered. Each stage's
	// collections share its window; items come by rank. At most d.Window messages for each live
	// slot are on their way. Due commits before it returns, so that the caller publishes afterwards
	// (R19).
	Due(ctx context.Context, d DueRequest) ([]Wake, error)
	// Undo makes the items of a failed publish due again at once.
	Undo(ctx context.Context, wakes []Wake) error
	// Reoffer makes every item due at once whose message was not answered. Call it when messages
	// were lost in bulk, because the queue or this process restarted (R19). A duplicate message
	// costs a refused claim.
	Reoffer(ctx context.Context) error
	// Woken delivers a value soon after a commit that made a message due. It is a hint; polling is
	// the fallback.
	Woken() <-chan struct{}
}

// Sweeping takes back lost attempts and purges old items.
type Sweeping interface {
	// Sweep takes away attempts whose lease has expired, or that made no progress for their
	// StuckAfter. It is idempotent and may run in several processes. After a gap in its own runs it
	// waits one lease first (R14). It also withdraws what a drain did not stop in time, and computes
	// missing causes of failures, a bounded number at a time.
	Sweep(ctx context.Context, lease time.Duration) (lost []Lease, err error)
	// PurgeExpired purges completed items whose retention has ended, as an admin's purge would.
	// Batches are kept for the retention of the profile of their submission, and at least while
	// duplicates may refer to them. Tidy and delivery items are kept for 30 days.
	//
	// A batch is tried again a day later if it cannot be purged now. So is one with an undelivered
	// message, or if a hold covers everything, its collection, itself or one of its jobs.
	// PurgeExpired returns how many batches it purged or began to purge; a bulk act purges those
	// with many jobs. It may run in several processes and does a bounded amount at a time.
	PurgeExpired(ctx context.Context) (batches int, err error)
}

// DueRequest bounds what the relay offers.
type DueRequest struct {
	Window  int           `json:"window"`  // messages on their way for each live slot of a stage, and at least this many for each stage
	Renudge time.Duration `json:"renudge"` // wait before an unanswered message is repeated; doubles up to RenudgeMax
	// RenudgeMax is the longest wait between repeats.
	RenudgeMax time.Duration `json:"renudge_max"`
}

// Wake is a message for a stage's topic: a hint that an item is ready.
type Wake struct {
	Action Action `json:"action"`
	Stage  Stage  `json:"stage"`
	ItemID string `json:"item_id"`
}
