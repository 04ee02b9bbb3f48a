package registry

import (
	"encoding/json"
	"fmt"
	"time"
)

// Lease names one attempt of one item: the fencing token of every write of a worker.
type Lease struct {
	ItemID string `json:"item_id"`
	N      int64  `json:"n"`
	// Token is the id of the token by which a write is asked for over the API: the attempt must have been claimed by the same one. "" is
	// a process that has the Registry in itself, or an admin, and asks nothing. It does not travel.
	Token string `json:"-"`
}

// WorkerInfo is a live worker process and what it serves, renewed with its leases.
type WorkerInfo struct {
	// ID is unique per process start (R9). It belongs to the token that announced it first, while it is alive.
	ID       string        `json:"id"`
	Version  string        `json:"version"`
	Capacity map[Stage]int `json:"capacity"` // slots per stage
	Free     map[Stage]int `json:"free"`
	// Spare are those slots of Capacity that are kept for other collections and for uploads, whether or not any wait. Where sources
	// are waited for, a collection gets no more of the workers' slots than those that are not spare; see [SourceKind] for what counts.
	Spare    map[Stage]int `json:"spare,omitempty"`
	Draining bool          `json:"draining"`
	SeenAt   time.Time     `json:"seen_at"`
}

// ClaimRequest asks for one item of a stage.
type ClaimRequest struct {
	RequestID   string        `json:"request_id"` // a repeat of the same request returns the same attempt (R9)
	Stage       Stage         `json:"stage"`
	Hint        string        `json:"hint"` // the id a message carried
	Worker      string        `json:"worker"`
	Version     string        `json:"version"`
	Lease       time.Duration `json:"lease"`
	MaxAttempts int           `json:"max_attempts"` // counted failures after which a lost attempt fails the item
	StuckAfter  time.Duration `json:"stuck_after"`  // no progress for this long: the step is taken away (R29)
	Token       string        `json:"-"`            // the id of the token that asks, as in [Lease]
}

// Bounds of what a worker asks for. Configuration stays below them.
const (
	MostLease = 24 * time.Hour      // how long a claim may outlive the last news of its process
	MostStuck = 30 * 24 * time.Hour // how long a step may go without progress

	MostResult  = 4 << 20 // bytes of one durable result, its name included
	MostResults = 8 << 20 // bytes of all results of an item
)

// CheckLease returns ErrInvalid for a lease that is longer than any worker needs: an item must not stay with a process that is gone.
func CheckLease(lease time.Duration) error {
	if lease < 0 || lease > MostLease {
		return fmt.Errorf("%w: a lease of %s; it may last up to %s", ErrInvalid, lease, MostLease)
	}
	return nil
}

// Check returns ErrInvalid when a claim asks for more than it may.
func (r ClaimRequest) Check() error {
	if r.StuckAfter < 0 || r.StuckAfter > MostStuck {
		return fmt.Errorf("%w: %s without progress; a step may go up to %s", ErrInvalid, r.StuckAfter, MostStuck)
	}
	return CheckLease(r.Lease)
}

// CheckResults returns ErrInvalid when an item's results take more than they may. They are read and written as a whole, again and again: what is
// larger belongs into staging.
func CheckResults(results map[string]json.RawMessage) error {
	sum := 0
	for name, value := range results {
		size := len(name) + len(value)
		if sum += size; size > MostResult {
			return fmt.Errorf("%w: result %.100q takes %s; one may take up to %s", ErrInvalid, name, SizeText(int64(size)), SizeText(MostResult))
		}
	}
	if sum > MostResults {
		return fmt.Errorf("%w: the item's results take %s; all together may take up to %s", ErrInvalid, SizeText(int64(sum)), SizeText(MostResults))
	}
	return nil
}

// Claim is an item that is now running under Lease.
type Claim struct {
	Item  WorkItem `json:"item"`
	Lease Lease    `json:"lease"`
	// NoteKey authenticates the item's interim data: the same for every attempt of the item, and no other item's. It goes to nobody but the
	// item's workers.
	NoteKey []byte `json:"note_key,omitempty"`
	// RoomWait is how long the item has waited for room on its volume, attempt after attempt. For one that holds none yet it begins anew
	// whenever another item gets some.
	RoomWait time.Duration `json:"room_wait,omitempty"`
}

// Beat is the news of one running attempt, sent with a renewal.
type Beat struct {
	Lease     Lease      `json:"lease"`
	Progress  []Progress `json:"progress,omitempty"` // nil: unchanged
	Advanced  bool       `json:"advanced"`           // progress moved since the last beat
	DoneBytes int64      `json:"done_bytes"`         // -1: unchanged
	DoneFiles int64      `json:"done_files"`         // -1: unchanged
}

// RenewRequest renews exactly the attempts that a worker really runs.
type RenewRequest struct {
	Worker WorkerInfo    `json:"worker"`
	Lease  time.Duration `json:"lease"`
	Beats  []Beat        `json:"beats"`
	Token  string        `json:"-"` // the id of the token that asks, as in [Lease]
}

// Renewal answers a renewal.
type Renewal struct {
	Lost []Lease `json:"lost"` // no longer live: their work must stop and write nothing more
	// Held says that a hold on this worker keeps it from being given anything more; what runs goes on.
	Held bool `json:"held"`
}

// Outcome is how an attempt ended.
type Outcome string

// The outcomes. A worker settles with one of the first six; the last two are the Registry's.
const (
	OutcomeDone      Outcome = "done"      // next stage, or completed
	OutcomeRetry     Outcome = "retry"     // a system fault: again after Delay, or failed when tries are used up
	OutcomeSnooze    Outcome = "snooze"    // waits Delay, not counted
	OutcomeReleased  Outcome = "cancelled" // the worker is stopping: pending at once, not counted
	OutcomeFailed    Outcome = "failed"    // no retry helps
	OutcomeSentBack  Outcome = "sent-back" // a system fault that only an earlier stage can mend
	OutcomeLost      Outcome = "lost"      // the lease ran out
	OutcomeWithdrawn Outcome = "withdrawn" // an admin took the item away
)

// Settlement is a worker's verdict on an attempt.
type Settlement struct {
	Lease   Lease         `json:"lease"`
	Outcome Outcome       `json:"outcome"`
	Delay   time.Duration `json:"delay"`            // retry, snooze
	Reason  Reason        `json:"reason"`           // snooze: what it waits for
	Back    Stage         `json:"back,omitempty"`   // sent back: the earlier stage of the item's route
	Error   string        `json:"error"`            // for people
	Remedy  string        `json:"remedy,omitempty"` // what lets the item go on, beside waiting, for people; "" when nothing is known
	Class   ErrorClass    `json:"class"`            // failed, retry, sent back
	Code    string        `json:"code,omitempty"`   // failed, retry, sent back: what happened in one word, and with which host; see CauseOf
	Host    string        `json:"host,omitempty"`

	MaxAttempts int `json:"max_attempts"` // retry: failed when tries reach it; sent back: when it was so often

	Results     map[string]json.RawMessage `json:"results,omitempty"`    // merged into the item's results
	SizeBytes   *int64                     `json:"size_bytes,omitempty"` // the item's size as now known; -1 unknown
	Files       *int64                     `json:"files,omitempty"`
	DoneBytes   *int64                     `json:"done_bytes,omitempty"`
	DoneFiles   *int64                     `json:"done_files,omitempty"`
	PriorityAdd int                        `json:"priority_add"`
	Progress    []Progress                 `json:"progress,omitempty"`
	Events      []NewEvent                 `json:"events,omitempty"` // what else happened in the attempt
}

// NewEvent is an event that a worker wants written with its settlement.
type NewEvent struct {
	Type string          `json:"type"`
	Data json.RawMessage `json:"data,omitempty"`
}

// Verdict is what a settlement came to.
type Verdict struct {
	Stage  Stage  `json:"stage"`
	Status Status `json:"status"`
	Tries  int    `json:"tries"`
}

// Wake is a message for a stage's topic: a hint that an item is ready.
type Wake struct {
	Action Action `json:"action"`
	Stage  Stage  `json:"stage"`
	ItemID string `json:"item_id"`
}
