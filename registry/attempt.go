package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Working is the life of an attempt: what a worker asks while it works on an item.
type Working interface {
	// Claim gives the stage's best ready item, nearly always the hinted one (R20), running under a
	// new attempt; or *NotClaimable with the reason why the hinted item cannot be had. Best is
	// first what an operator put in front of everything (a priority below 0), then the collection
	// that was served longest ago in the stage, and of that the item that comes first by age and
	// priority. A repeated RequestID returns the same claim while that attempt is live. A worker
	// that is held gets nothing, for the reason held, and the hinted item is rung for again a
	// moment later, for another worker. ErrWorkerTaken when another token has announced r.Worker;
	// ErrClaimLost when the token that asks was revoked.
	Claim(ctx context.Context, r ClaimRequest) (Claim, error)
	// Renew extends the named attempts by r.Lease from now, notes their progress and the worker's
	// capacity, and returns those that are no longer live: their work must stop and write nothing
	// more. It also says whether a hold keeps the worker from being given anything; the capacity of
	// such a worker counts as 0. ErrWorkerTaken, and nothing is renewed, when another token has
	// announced the worker's id.
	Renew(ctx context.Context, r RenewRequest) (Renewal, error)
	// Withdrawn returns the attempts of a worker that admins have taken away since a cursor, and
	// the cursor to go on with: those that the asking token has claimed. It waits for one until ctx
	// ends, and then returns none and no error; an attempt may be told twice.
	Withdrawn(ctx context.Context, q WithdrawnQuery) (taken []Lease, next int64, err error)
	// Settle closes an attempt and decides in the same transaction what comes next. A repeat with
	// the same outcome returns the recorded verdict (R9); ErrClaimLost when somebody else closed
	// it.
	Settle(ctx context.Context, s Settlement) (Verdict, error)
	// SaveResult sets results[name] = value unless it is set already, and returns the value that
	// holds. ErrInvalid when [CheckResults] refuses what the item would have.
	SaveResult(ctx context.Context, l Lease, name string, value json.RawMessage) (json.RawMessage, error)
	// Reserve promises bytes of a volume to the item until it completes, replacing what it had;
	// *NoSpaceError when the volume would be filled beyond r.Threshold, and for an item at download
	// that asks for more than it has while an earlier one that holds room waits for more. Two items
	// are never promised the same free space (R24).
	Reserve(ctx context.Context, l Lease, r Reservation) error
	// ReleaseUpload is RetireUpload for an item: a batch at its report, which needs its upload no
	// more itself, a tidy item of such a batch, or a search for orphans that removes what is older
	// than it says. ErrInvalid for any other item or upload.
	ReleaseUpload(ctx context.Context, l Lease, uploadID string) (released bool, err error)
	// ApplyNext carries a bulk act out on its next at most 100 items, in one transaction with the
	// cursor, so that a kill neither skips nor repeats one. What an item refuses is counted and
	// told, and does not keep the others from it. Done says that there were no more.
	ApplyNext(ctx context.Context, l Lease) (BulkProgress, error)
}

// AttemptReader is who works, and has worked, on what.
type AttemptReader interface {
	// Attempts lists an item's attempts, oldest first.
	Attempts(ctx context.Context, itemID string) ([]Attempt, error)
	// Workers lists the workers that renewed within the last minute.
	Workers(ctx context.Context) ([]WorkerInfo, error)
}

// Lease names one attempt of one item: the fencing token of every write of a worker.
type Lease struct {
	ItemID string `json:"item_id"`
	N      int64  `json:"n"`
	// Token is the id of the token by which a write is asked for over the API: the attempt must
	// have been claimed by the same one. "" is a process that has the Registry in itself, or an
	// admin, and asks nothing. It does not travel.
	Token string `json:"-"`
}

// WorkerInfo is a live worker process and what it serves, renewed with its leases.
type WorkerInfo struct {
	// ID is unique per process start (R9). It belongs to the token that announced it first, while
	// it is alive.
	ID       string        `json:"id"`
	Version  string        `json:"version"`
	Capacity map[Stage]int `json:"capacity"` // slots per stage
	Free     map[Stage]int `json:"free"`
	// Spare are those slots of Capacity that are kept for other collections and for uploads,
	// whether or not any wait. Where sources are waited for, a collection gets no more of the
	// workers' slots than those that are not spare; see [SourceKind] for what counts.
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

// CheckResults returns ErrInvalid when an item's results take more than they may. They are read and
// written as a whole, again and again: what is larger belongs into staging.
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
	// NoteKey authenticates the item's interim data: the same for every attempt of the item, and no
	// other item's. It goes to nobody but the item's workers.
	NoteKey []byte `json:"note_key,omitempty"`
	// RoomWait is how long the item has waited for room on its volume, attempt after attempt. For
	// one that holds none yet it begins anew whenever another item gets some.
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

// WithdrawnQuery asks which attempts of a worker admins have taken away.
type WithdrawnQuery struct {
	Worker string `json:"worker"`
	After  int64  `json:"after"` // the cursor that the call before returned; 0 at first
	Token  string `json:"-"`     // the id of the token that asks, as in [Lease]
}

// Renewal answers a renewal.
type Renewal struct {
	Lost []Lease `json:"lost"` // no longer live: their work must stop and write nothing more
	// Held says that a hold on this worker keeps it from being given anything more; what runs goes
	// on.
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

// Reservation asks for room on a volume.
type Reservation struct {
	Volume    string  `json:"volume"`
	Bytes     int64   `json:"bytes"`
	Used      int64   `json:"used"`      // bytes used on the volume, as measured now
	Total     int64   `json:"total"`     // bytes the volume holds
	Threshold float64 `json:"threshold"` // share of Total that may be used and promised, 0..1
	// Staged is what lies on the volume of Bytes already, and becomes the item's done_bytes; 0:
	// what these say.
	Staged int64 `json:"staged,omitempty"`
}

// Attempt is one claim of one item by one worker; while it is open it is the lease.
type Attempt struct {
	ItemID     string     `json:"item_id"`
	N          int64      `json:"n"`
	Stage      Stage      `json:"stage"`
	Worker     string     `json:"worker"`
	StartedAt  time.Time  `json:"started_at"`
	LeaseUntil time.Time  `json:"lease_until"`
	FinishedAt *time.Time `json:"finished_at,omitempty"`
	Outcome    Outcome    `json:"outcome,omitempty"`
	Error      string     `json:"error,omitempty"`
	Progress   []Progress `json:"progress,omitempty"`
}

// Progress is one measure of a running step. A step may have several, told apart by title.
type Progress struct {
	Title    string `json:"title"`
	Unit     string `json:"unit"` // files, bytes, rows
	Position int64  `json:"position"`
	End      int64  `json:"end"`            // -1 unknown
	Kept     bool   `json:"kept,omitempty"` // a later attempt goes on where this one stood, see remedy.ResumePoint
}
