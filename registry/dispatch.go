package registry

import (
	"context"
	"time"
)

// Dispatching is what the relay asks: which items are due, and that their messages get lost
// sometimes.
type Dispatching interface {
	// Due returns items whose message is due, per stage shared out among its collections and by
	// rank, at most window[stage] of them outstanding, and notes that they were offered: committed
	// before it returns, so that the caller publishes after (R19).
	Due(ctx context.Context, d DueRequest) ([]Wake, error)
	// Undo makes the wakes of a failed publish due again at once.
	Undo(ctx context.Context, wakes []Wake) error
	// Reoffer makes every item due at once that was offered and not answered: what is to be called
	// when messages were lost in bulk, since the queue or this process began anew (R19). What is
	// delivered twice costs a refused claim.
	Reoffer(ctx context.Context) error
	// Woken delivers a value soon after a commit that made a message due. It is a hint; polling is
	// the fallback.
	Woken() <-chan struct{}
}

// Sweeping takes back and clears away what nobody else would.
type Sweeping interface {
	// Sweep takes away attempts whose lease ran out or that made no progress for their StuckAfter.
	// It is idempotent and may run in several processes. After a gap in its own heartbeat it waits
	// one lease first (R14). It also finds the causes of failures that have none yet, a bounded
	// number at a time.
	Sweep(ctx context.Context, lease time.Duration) (lost []Lease, err error)
	// PurgeExpired purges what has been kept for its time, as an admin's purge would: batches that
	// completed, when the retention of the profile that they were submitted under is over, and no
	// earlier than the same content would not repeat them, and completed items that only carried
	// out something for others (action tidy, deliver) after 30 days. A batch waits that is covered
	// by a hold on everything, on its collection, on itself or on one of its jobs, of which
	// somebody is still to be told, or that cannot be purged now; it is looked at again a day
	// later. It returns how many batches it purged or began to, those with many jobs by a bulk act.
	// It may run in several processes, and does a bounded amount at a time.
	PurgeExpired(ctx context.Context) (batches int, err error)
}

// DueRequest bounds what the relay offers.
type DueRequest struct {
	Window  int           `json:"window"`  // outstanding messages a live slot of a stage, and at least this many a stage
	Renudge time.Duration `json:"renudge"` // first repeat of an unanswered message; doubles up to RenudgeMax
	// RenudgeMax is the longest wait between repeats.
	RenudgeMax time.Duration `json:"renudge_max"`
}

// Wake is a message for a stage's topic: a hint that an item is ready.
type Wake struct {
	Action Action `json:"action"`
	Stage  Stage  `json:"stage"`
	ItemID string `json:"item_id"`
}
