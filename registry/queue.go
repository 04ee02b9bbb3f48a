package registry

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Queue describes what waits, and the holds.
type Queue interface {
	// QueueStatus counts the waiting and running items of each stage.
	QueueStatus(ctx context.Context) (QueueStatus, error)
	// Holds lists all holds.
	Holds(ctx context.Context) ([]Hold, error)
}

// Limiting limits how many items run at once.
type Limiting interface {
	// SetLimit sets the limit of a stage or collection, in place of an earlier one. It holds from
	// the next claim on, in all processes; what runs continues, even if that is more. ErrInvalid:
	// see [Limit.Check].
	SetLimit(ctx context.Context, l Limit) error
	// RemoveLimit removes a limit that was set. What programs announced then holds again. ErrNotFound:
	// none was set.
	RemoveLimit(ctx context.Context, scope HoldScope, key, actor string) error
	// Limits lists all limits by scope and key, with those that programs announced.
	Limits(ctx context.Context) ([]Limit, error)
}

// Limit limits what runs at once of a stage or of a collection, in all processes together. A
// function is a stage. No item starts beyond a limit, not even an express one.
type Limit struct {
	Scope HoldScope `json:"scope"` // HoldStage or HoldCollection
	Key   string    `json:"key"`   // the stage, or the collection's mnemonic
	// Most is how many items may run at once; 0: any number. Of a collection it counts the items of
	// all stages.
	Most int `json:"most"`
	// Announced is how many items of the stage may run at once as its programs announced it
	// ([FunctionPolicy.AtOnce]); 0: any number. It holds while Most is 0.
	Announced int `json:"announced,omitempty"`
	// Weight is how many items of the collection start in a row when it is the collection's turn in
	// a stage; 0: one, as for every collection without a weight. A stage has none.
	Weight int       `json:"weight,omitempty"`
	Actor  string    `json:"actor"` // "": it was announced
	At     time.Time `json:"at"`    // when it was set or announced
}

// AtOnce returns how many items may run at once; 0: any number.
func (l Limit) AtOnce() int {
	if l.Most > 0 {
		return l.Most
	}
	return l.Announced
}

// Bounds of limits.
const (
	MostLimit  = 1_000_000
	MostWeight = 100
)

// Check returns ErrInvalid, with the reason, for a limit that would be without effect or cannot be
// kept.
func (l Limit) Check() error {
	switch {
	case l.Scope != HoldStage && l.Scope != HoldCollection:
		return fmt.Errorf("%w: %q has no limits; a limit is for a stage or a collection", ErrInvalid, l.Scope)
	case l.Scope == HoldStage && !IsStage(Stage(l.Key)):
		near := Nearest(l.Key, stageNames())
		if near != "" {
			near = "; did you mean " + near + "?"
		}
		return InField("key", fmt.Errorf("%w: %.100q is not a stage%s", ErrInvalid, l.Key, near))
	case l.Key == "":
		return InField("key", fmt.Errorf("%w: the limit names no collection", ErrInvalid))
	case l.Most < 0 || l.Most > MostLimit:
		return InField("most", fmt.Errorf("%w: at most %d items may run; want 0 to %d, and 0 means any number", ErrInvalid, l.Most, MostLimit))
	case l.Weight < 0 || l.Weight > MostWeight:
		return InField("weight", fmt.Errorf("%w: the weight %d is not from 0 to %d", ErrInvalid, l.Weight, MostWeight))
	case l.Scope == HoldStage && l.Weight > 0:
		return fmt.Errorf("%w: a stage has no weight; collections take turns in it", ErrInvalid)
	case l.Most == 0 && l.Weight == 0:
		return fmt.Errorf("%w: the limit limits nothing; to end a limit, remove it", ErrInvalid)
	}
	return nil
}

// stageNames returns the names of all stages that are no function's.
func stageNames() (names []string) {
	for _, s := range Stages() {
		names = append(names, string(s))
	}
	return names
}

// Drain says that nothing starts, until the hold on everything is removed, and what still runs.
type Drain struct {
	// Until is when attempts that still live are withdrawn; running steps are asked to stop before.
	// Zero: they may go on to their end.
	Until  time.Time `json:"until,omitzero"`
	Reason string    `json:"reason"`
	Actor  string    `json:"actor"`
	At     time.Time `json:"at"` // when it began
	// Left counts the attempts that still live, and Done is when the last one ends: by the rate of
	// its progress, else by the mean time of its stage, and at Until at the latest. Done is nil if
	// none is left, or if it is not known of one.
	Left int64      `json:"left"`
	Done *time.Time `json:"done,omitempty"`
}

// QueueStatus is the state of the whole queue.
type QueueStatus struct {
	Accepting Accepting `json:"accepting"`
	Paused    *Hold     `json:"paused,omitempty"` // the hold on everything, or on all deposits
	Drain     *Drain    `json:"drain,omitempty"`  // while everything is paused
	// Restored is the mark of a restored database whose record was not compared with the storages yet.
	Restored *Restored `json:"restored,omitempty"`
	Running  int64     `json:"running"`
	Holds    int       `json:"holds"`
	Damaged  int64     `json:"damaged"` // stored files known to be damaged or missing in some storage
	// Strays is the failed search that found files in storages which belong to no object; "" if
	// there is none.
	Strays  string       `json:"strays,omitempty"`
	OneCopy int64        `json:"one_copy"` // collections with only one storage, and so without a second copy
	Stages  []StageQueue `json:"stages"`   // every stage, in route order; then every function, by name
	// Failing are the subscriptions whose receivers do not acknowledge events.
	Failing []Subscription `json:"failing,omitempty"`
	// Deliveries are callbacks and mails that were tried and are not delivered.
	Deliveries OpenDeliveries `json:"deliveries"`
	OldestDue  *time.Time     `json:"oldest_due,omitempty"` // since when the first item waits for the relay; nil: none does
	SweptAt    *time.Time     `json:"swept_at,omitempty"`   // the last search for expired leases; nil: none was made
}

// OpenDeliveries counts messages that were tried and are not delivered, each up to
// MostFailedCounted.
type OpenDeliveries struct {
	Retrying int64 `json:"retrying"` // tried again by themselves
	Failed   int64 `json:"failed"`   // they wait for somebody's decision
}

// MostFailedCounted bounds the count of a stage's failed items: failed items stay until somebody acts.
const MostFailedCounted = 10_000

// StageQueue is the state of one stage.
type StageQueue struct {
	Stage   Stage `json:"stage"`
	Ready   int64 `json:"ready"`   // can be claimed as soon as there is a free slot
	Waiting int64 `json:"waiting"` // for time, room, a lock or other items
	// WaitsFor says for what: not-due (a time), no-space, locked, or blocked (other items or a lock).
	WaitsFor map[Reason]int64 `json:"waits_for,omitempty"`
	// AtLimit are the ready items that a limit of the stage or of their collection keeps from starting.
	AtLimit     int64      `json:"at_limit,omitempty"`
	Held        int64      `json:"held"`
	Paused      bool       `json:"paused,omitempty"` // a hold keeps everything of the stage from starting
	Running     int64      `json:"running"`
	Failed      int64      `json:"failed"`          // failed items; from MostFailedCounted on, there may be more
	Limit       int        `json:"limit,omitempty"` // how many may run at once, see [Limit]; 0: any number
	Rung        int64      `json:"rung"`            // messages sent and not answered; at most two for each slot
	Capacity    int        `json:"capacity"`        // slots of live workers that are neither held nor stopping
	Free        int        `json:"free"`
	Workers     int        `json:"workers"`                // live workers that are not stopping; held ones count
	OldestReady *time.Time `json:"oldest_ready,omitempty"` // since when the longest waiting item could run
	// ServiceSeconds is the mean time of an attempt that was done, over about the last 200; 0: none
	// was.
	ServiceSeconds float64 `json:"service_seconds,omitempty"`
}

// DefaultSlots is the least number of slots that a worker has in a stage by default.
const DefaultSlots = 32

// serviceUnknown stands for the mean time of a stage in which nothing was done yet.
const serviceUnknown = time.Second

// Startable returns how many items start as soon as there are slots for them. What is held, kept by
// a limit, not due, or waits for room, a lock or other items does not count.
func (s StageQueue) Startable() int64 { return max(0, s.Ready-s.AtLimit) }

// Backlog returns how many seconds of work wait for each slot of live workers: the startable items,
// times their mean time, divided by the slots. Without slots it is as for one worker with
// [DefaultSlots]. It is 0 exactly if nothing is startable.
func (s StageQueue) Backlog() time.Duration {
	mean := s.ServiceSeconds
	if mean <= 0 {
		mean = serviceUnknown.Seconds()
	}
	slots := s.Capacity
	if slots == 0 {
		slots = DefaultSlots
	}
	wait := time.Duration(float64(s.Startable()) * mean / float64(slots) * float64(time.Second))
	if s.Startable() > 0 {
		wait = max(wait, 1) // not rounded to 0
	}
	return wait
}

// Utilization returns the share of the slots of live workers that are busy: 0 to 1, and 0 without
// slots. It is above 0 while a step runs in a live worker. So a stage can have no workers when both
// Backlog and Utilization are 0, and needs one again when Backlog is above 0.
func (s StageQueue) Utilization() float64 {
	if s.Capacity <= 0 {
		return 0
	}
	return min(1, float64(s.Running)/float64(s.Capacity))
}

// Needed reports whether a stage needs at least one worker: something of it is startable or runs, or,
// for a stage that each deposit passes, something of another stage of deposits does. So the stages of
// a deposit get their first workers together, instead of one after the other when it arrives, and a
// stage keeps one until the last stage has nothing to do. A stage that a hold keeps from starting anything
// needs no first worker.
func (q QueueStatus) Needed(stage Stage) bool {
	step, _ := StepOf(stage)
	if slices.ContainsFunc(q.Stages, func(s StageQueue) bool { return s.Stage == stage && s.Paused && s.Workers == 0 }) {
		return false
	}
	follows := takesIn(stage) && !step.Optional
	return slices.ContainsFunc(q.Stages, func(s StageQueue) bool {
		return (s.Stage == stage || follows && takesIn(s.Stage)) && (s.Startable() > 0 || s.Running > 0)
	})
}

// Wakes reports whether a stage shall get its first worker: it is needed, and has no live one.
func (q QueueStatus) Wakes(stage Stage) bool {
	return q.Needed(stage) && slices.ContainsFunc(q.Stages, func(s StageQueue) bool { return s.Stage == stage && s.Workers == 0 })
}

// ThroughputReader reads what was preserved and failed over time.
type ThroughputReader interface {
	// Throughput returns what happened in the last hour, day or month. ErrInvalid: the span is not
	// one of [ThroughputSpans].
	Throughput(ctx context.Context, span ThroughputSpan) (Throughput, error)
}

// ThroughputNoting counts what was preserved and failed, minute by minute.
type ThroughputNoting interface {
	// NoteThroughput counts what happened since the last call, if a minute has ended since. Any
	// number of processes may call it at the same time; each event is counted once. A call after
	// days without one counts what was missed, in several transactions. Each event is counted in its
	// own minute, but how much waited in such a minute stays unknown.
	NoteThroughput(ctx context.Context) error
}

// ThroughputSpan is how far a [Throughput] goes back.
type ThroughputSpan string

// The spans.
const (
	ThroughputHour  ThroughputSpan = "hour"  // by minutes
	ThroughputDay   ThroughputSpan = "day"   // by quarters of an hour
	ThroughputMonth ThroughputSpan = "month" // 30 days, by quarters of a day
)

// ThroughputSpans returns every span, the shortest first.
func ThroughputSpans() []ThroughputSpan {
	return []ThroughputSpan{ThroughputHour, ThroughputDay, ThroughputMonth}
}

// Intervals returns the length of the span's intervals, and their number. Both are 0 for an unknown
// span.
func (s ThroughputSpan) Intervals() (step time.Duration, n int) {
	switch s {
	case ThroughputHour:
		return time.Minute, 60
	case ThroughputDay:
		return 15 * time.Minute, 96
	case ThroughputMonth:
		return 6 * time.Hour, 120
	}
	return 0, 0
}

// Throughput is what was preserved and failed in the intervals of a span, oldest first. An interval
// that is missing was not noted: no Registry ran, or it is older than the notes.
type Throughput struct {
	Span ThroughputSpan    `json:"span"`
	Step int64             `json:"step"` // length of an interval, in seconds
	From time.Time         `json:"from"` // beginning of the first interval
	To   time.Time         `json:"to"`   // end of the last one
	Rows []ThroughputPoint `json:"rows"`
	// NotedTo is up to when everything is counted. The interval that contains it is not complete.
	NotedTo time.Time `json:"noted_to"`
	// Stages are the steps done in the last ThroughputRecent.
	Stages []StageThroughput `json:"stages"`
}

// ThroughputRecent is the time of which a [Throughput] counts the steps done of each stage.
const ThroughputRecent = 10 * time.Minute

// ThroughputPoint is one interval.
type ThroughputPoint struct {
	At        time.Time `json:"at"`        // its beginning
	Preserved int64     `json:"preserved"` // jobs whose object was recorded
	Bytes     int64     `json:"bytes"`     // of their versions
	Failed    int64     `json:"failed"`    // jobs that failed; a job that fails again counts again
	// Waiting and Running are the most jobs that did so at the end of one of its minutes; nil: not known.
	Waiting *int64 `json:"waiting,omitempty"`
	Running *int64 `json:"running,omitempty"`
}

// StageThroughput is how many steps of a stage were done recently.
type StageThroughput struct {
	Stage Stage `json:"stage"`
	Done  int64 `json:"done"`
}

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
