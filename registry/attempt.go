package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Working is what a worker calls while it works on an item.
type Working interface {
	// Claim starts a new attempt at the stage's best ready item, nearly always the hinted one
	// (R20). Express items (priority below 0) are best. Next comes the collection that was served
	// longest ago in the stage, and its first item by age and priority.
	//
	// *NotClaimable says why the hinted item cannot be claimed. A repeated RequestID returns the
	// same claim while its attempt is live. A held worker gets nothing, for the reason held; the
	// hinted item gets another message a moment later. ErrWorkerTaken: another token has announced
	// r.Worker. ErrClaimLost: the caller's token was revoked.
	Claim(ctx context.Context, r ClaimRequest) (Claim, error)
	// Renew extends the named attempts by r.Lease from now, and records their progress and the
	// worker's capacity. It returns the attempts that are no longer live: their work must stop and
	// write nothing more. It also reports whether a hold covers the worker; such a worker's
	// capacity counts as 0. ErrWorkerTaken: another token has announced the worker's id, and
	// nothing was renewed.
	Renew(ctx context.Context, r RenewRequest) (Renewal, error)
	// Withdrawn returns a worker's attempts that were withdrawn after a cursor, and the next
	// cursor. It returns only attempts that the calling token claimed. It waits for one until ctx
	// ends, and then returns none and no error. It may return an attempt twice.
	Withdrawn(ctx context.Context, q WithdrawnQuery) (taken []Lease, next int64, err error)
	// Settle closes an attempt and decides in the same transaction what comes next. A repeat with
	// the same outcome returns the recorded verdict (R9). ErrClaimLost: the attempt was closed
	// otherwise.
	Settle(ctx context.Context, s Settlement) (Verdict, error)
	// SaveResult sets results[name] to value unless it is set already, and returns the value that
	// holds. ErrInvalid: [CheckResults] refuses the item's results.
	SaveResult(ctx context.Context, l Lease, name string, value json.RawMessage) (json.RawMessage, error)
	// SetState replaces the state of the item, a JSON value that later attempts read. It is the
	// result [ResultState]. ErrInvalid: the value is no JSON, or takes more than [MostState].
	SetState(ctx context.Context, l Lease, value json.RawMessage) error
	// Reserve reserves bytes of a volume for the item until it completes, in place of its earlier
	// reservation. *NoSpaceError: the volume would be filled beyond r.Threshold. An item at
	// download also gets it if it asks for more than it has while an earlier item that holds room
	// waits for more. No free space is reserved twice (R24).
	Reserve(ctx context.Context, l Lease, r Reservation) error
	// ReleaseUpload is RetireUpload for an item: for a batch at its report, a tidy item of such a
	// batch, or a search for orphans that removes uploads older than its limit. ErrInvalid: any
	// other item or upload.
	ReleaseUpload(ctx context.Context, l Lease, uploadID string) (released bool, err error)
	// ApplyNext carries out a bulk act on its next items, at most 100, in one transaction with the
	// cursor. So a kill neither skips nor repeats an item. Refusals are counted and do not stop the
	// act. Done reports that no item is left.
	ApplyNext(ctx context.Context, l Lease) (BulkProgress, error)
}

// Continuing is implemented by a Registry in the process of its workers. It saves the message and
// the claim between two stages of an item whose workers run in the same process.
type Continuing interface {
	// SettleAndClaim is Settle. If the item goes on to next.Stage, and a claim for that stage would
	// get it, the same transaction starts its next attempt and returns the claim. Otherwise, and
	// for every unusual item, it returns nil: the item waits for a message. A repeat returns the
	// same claim while that attempt is live (R9). next.Worker must be the worker that settles.
	SettleAndClaim(ctx context.Context, s Settlement, next ClaimRequest) (Verdict, *Claim, error)
}

// AttemptReader lists attempts and workers.
type AttemptReader interface {
	// Attempts lists an item's attempts, oldest first.
	Attempts(ctx context.Context, itemID string) ([]Attempt, error)
	// Log lists what the attempts of an item logged. ErrNotFound: the cursor is not valid.
	Log(ctx context.Context, q LogQuery) (Page[LogLine], error)
	// Workers lists the workers that renewed within the last minute.
	Workers(ctx context.Context) ([]WorkerInfo, error)
}

// Lease identifies one attempt of one item. It is the fencing token of a worker's writes.
type Lease struct {
	ItemID string `json:"item_id"`
	N      int64  `json:"n"`
	// Token is the id of the token with which the API authenticated the write; it must be the one
	// that claimed the attempt. "" means a process that contains the Registry, or an admin, and is
	// not checked. Token is not transmitted.
	Token string `json:"-"`
}

// WorkerInfo is a live worker process and the stages it serves. It is renewed with its leases.
type WorkerInfo struct {
	// ID is unique per process start (R9). While the worker is alive, it belongs to the token that
	// announced it first.
	ID       string        `json:"id"`
	Version  string        `json:"version"`
	Capacity map[Stage]int `json:"capacity"` // slots by stage
	Free     map[Stage]int `json:"free"`
	// Spare is the part of Capacity that is kept for other collections and for uploads, even if
	// none wait. In stages that wait for sources, one collection gets at most the slots that are
	// not spare; see [SourceKind].
	Spare    map[Stage]int `json:"spare,omitempty"`
	Draining bool          `json:"draining"`
	SeenAt   time.Time     `json:"seen_at"`
	// Clock is the time of the worker's own clock when it announced itself; at SeenAt the Registry
	// noted it. Zero for programs that do not tell it.
	Clock time.Time `json:"clock,omitzero"`
	// What the Registry says of it: how many of its attempts run by stage, which Free tells only as
	// of SeenAt; when it was first seen, and how long its leases are.
	Running      map[Stage]int `json:"running,omitempty"`
	Since        time.Time     `json:"since,omitzero"`
	LeaseSeconds int64         `json:"lease_seconds,omitempty"`
}

// ProgramKind is what kind of program announces itself as a worker.
type ProgramKind string

// The kinds.
const (
	KindWorker   ProgramKind = "worker"   // of Holdfast
	KindFunction ProgramKind = "function" // of others, with functions or processes; its version is their own
)

// ClaimRequest requests one item of a stage.
type ClaimRequest struct {
	RequestID   string        `json:"request_id"` // a repeated request returns the same attempt (R9)
	Stage       Stage         `json:"stage"`
	Hint        string        `json:"hint"` // the item id in the message
	Worker      string        `json:"worker"`
	Version     string        `json:"version"`
	Lease       time.Duration `json:"lease"`
	MaxAttempts int           `json:"max_attempts"` // number of counted failures after which a lost attempt fails the item
	StuckAfter  time.Duration `json:"stuck_after"`  // the sweep takes the step away after this long without progress (R29)
	Token       string        `json:"-"`            // the id of the token that asks, as in [Lease]
}

// Bounds of workers' requests. Configuration stays below them.
const (
	MostLease = 24 * time.Hour      // longest lease
	MostStuck = 30 * 24 * time.Hour // longest time without progress

	MostResult  = 4 << 20 // bytes of one durable result with its name
	MostResults = 8 << 20 // bytes of all results of an item
	MostState   = 1 << 20 // bytes of an item's state
)

// ResultState is what [Working.SetState] set last.
const ResultState = "state"

// CheckResults returns ErrInvalid if an item's results are too large. They are read and written as
// a whole, so larger data belong into staging.
func CheckResults(results map[string]json.RawMessage) error {
	sum := 0
	for name, value := range results {
		size := len(name) + len(value)
		if sum += size; size > MostResult {
			return fmt.Errorf("%w: result %.100q takes %s; the limit is %s", ErrInvalid, name, SizeText(int64(size)), SizeText(MostResult))
		}
	}
	if sum > MostResults {
		return fmt.Errorf("%w: the item's results take %s; the limit is %s", ErrInvalid, SizeText(int64(sum)), SizeText(MostResults))
	}
	return nil
}

// Claim is an item that now runs under Lease.
type Claim struct {
	Item  WorkItem `json:"item"`
	Lease Lease    `json:"lease"`
	// NoteKey authenticates the item's interim data. It is the same for all attempts of the item
	// and differs between items. Only the item's workers get it.
	NoteKey []byte `json:"note_key,omitempty"`
	// RoomWait is how long the item has waited for room on its volume, over several attempts. For
	// an item that holds no room it starts anew whenever another item gets some.
	RoomWait time.Duration `json:"room_wait,omitempty"`
}

// Beat is the news of one running attempt, sent with a renewal.
type Beat struct {
	Lease     Lease      `json:"lease"`
	Progress  []Progress `json:"progress,omitempty"` // nil: unchanged
	Advanced  bool       `json:"advanced"`           // there was progress since the last beat
	DoneBytes int64      `json:"done_bytes"`         // -1: unchanged
	DoneFiles int64      `json:"done_files"`         // -1: unchanged
	// Log are lines that were logged and may not be kept yet. A repeat of a line changes nothing.
	Log []LogLine `json:"log,omitempty"`
}

// RenewRequest renews the attempts that a worker still runs.
type RenewRequest struct {
	Worker WorkerInfo    `json:"worker"`
	Lease  time.Duration `json:"lease"`
	Beats  []Beat        `json:"beats"`
	Token  string        `json:"-"` // the id of the token that asks, as in [Lease]
}

// WithdrawnQuery asks for a worker's withdrawn attempts.
type WithdrawnQuery struct {
	Worker string `json:"worker"`
	After  int64  `json:"after"` // cursor from the previous call; 0 at first
	Token  string `json:"-"`     // the id of the token that asks, as in [Lease]
}

// Renewal answers a renewal.
type Renewal struct {
	Lost []Lease `json:"lost"` // no longer live: their work must stop and write nothing more
	// Held reports that a hold covers the worker: it gets no more items, and running ones continue.
	Held bool `json:"held"`
	// Drain reports that everything is drained, see [Commanding]: the worker's steps must stop at
	// their next safe point, and be released.
	Drain bool `json:"drain,omitempty"`
}

// Outcome says how an attempt ended.
type Outcome string

// The outcomes. Workers settle with one of the first six; only the Registry uses the last two.
const (
	OutcomeDone      Outcome = "done"      // next stage, or completed
	OutcomeRetry     Outcome = "retry"     // a system fault: retried after Delay, or failed if no try is left
	OutcomeSnooze    Outcome = "snooze"    // waits for Delay; not counted
	OutcomeReleased  Outcome = "cancelled" // the worker is stopping: pending at once, not counted
	OutcomeFailed    Outcome = "failed"    // no retry helps
	OutcomeSentBack  Outcome = "sent-back" // a system fault that only an earlier stage can fix
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
	Remedy  string        `json:"remedy,omitempty"` // for people: what else helps besides waiting; "" if unknown
	Class   ErrorClass    `json:"class"`            // failed, retry, sent back
	Code    string        `json:"code,omitempty"`   // failed, retry, sent back: the failure's code, and the host that caused it; see CauseOf
	Host    string        `json:"host,omitempty"`

	MaxAttempts int `json:"max_attempts"` // retry: the item fails when its tries reach it; sent back: when it was sent back so often

	Results     map[string]json.RawMessage `json:"results,omitempty"`    // merged into the item's results
	SizeBytes   *int64                     `json:"size_bytes,omitempty"` // the item's known size; -1: unknown
	Files       *int64                     `json:"files,omitempty"`
	DoneBytes   *int64                     `json:"done_bytes,omitempty"`
	DoneFiles   *int64                     `json:"done_files,omitempty"`
	PriorityAdd int                        `json:"priority_add"`
	Progress    []Progress                 `json:"progress,omitempty"`
	Events      []NewEvent                 `json:"events,omitempty"` // other events of the attempt
	Log         []LogLine                  `json:"log,omitempty"`    // as in [Beat]
}

// NewEvent is an event that a worker writes with its settlement.
type NewEvent struct {
	Type string          `json:"type"`
	Data json.RawMessage `json:"data,omitempty"`
}

// Verdict is the result of a settlement.
type Verdict struct {
	Stage  Stage  `json:"stage"`
	Status Status `json:"status"`
	Tries  int    `json:"tries"`
}

// Reservation requests room on a volume.
type Reservation struct {
	Volume    string  `json:"volume"`
	Bytes     int64   `json:"bytes"`
	Used      int64   `json:"used"`      // bytes used on the volume, as measured now
	Total     int64   `json:"total"`     // bytes the volume holds
	Threshold float64 `json:"threshold"` // share of Total that may be used and reserved, 0..1
	// Staged is the part of Bytes that lies on the volume already; it becomes the item's
	// done_bytes. 0: done_bytes stays.
	Staged int64 `json:"staged,omitempty"`
}

// Attempt is one claim of an item by a worker. While it is open, it is the lease.
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
	Unit     string `json:"unit"`            // files, bytes, rows
	Start    int64  `json:"start,omitempty"` // where the step began to count
	Position int64  `json:"position"`
	End      int64  `json:"end"`            // -1 unknown
	Kept     bool   `json:"kept,omitempty"` // the next attempt continues here, see remedy.ResumePoint
}

// Bounds of logs. Lines beyond them are dropped, the oldest first.
const (
	MostLogLines = 1000 // newest lines of an attempt
	MostLogs     = 20   // newest attempts of an item
)

// LogLine is one line that a step logged.
type LogLine struct {
	N       int64     `json:"n"`                 // the attempt; the Registry sets it
	Seq     int64     `json:"seq"`               // in the attempt, from 1
	At      time.Time `json:"at"`                // by the clock of the Registry, as its worker knows it; zero: when it is kept
	Level   string    `json:"level"`             // DEBUG, INFO, WARN or ERROR
	Text    string    `json:"text"`              // at most 2,000 bytes, without control characters
	Dropped int64     `json:"dropped,omitempty"` // lines of the attempt that were dropped right before this one
}

// LogQuery asks for lines of an item's attempts.
type LogQuery struct {
	ItemID string
	Newest bool   // newest first
	After  string // next of the previous page
	Limit  int
}

// LogCursor returns the cursor of a page that ends with line seq of attempt n.
func LogCursor(n, seq int64) string { return fmt.Sprintf("%d.%d", n, seq) }

// Cursor returns what LogCursor made q.After of; zeros for "". ErrNotFound: it is no such cursor.
func (q LogQuery) Cursor() (n, seq int64, err error) {
	if q.After == "" {
		return 0, 0, nil
	}
	first, second, _ := strings.Cut(q.After, ".")
	n, err = strconv.ParseInt(first, 10, 64)
	if err == nil {
		seq, err = strconv.ParseInt(second, 10, 64)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("%w: %.40q is not a cursor of a log", ErrNotFound, q.After)
	}
	return n, seq, nil
}
