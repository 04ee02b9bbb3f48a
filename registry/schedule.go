package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Scheduling manages schedules. A schedule submits work at times that a cron expression says.
type Scheduling interface {
	// AddSchedule creates a schedule. A repeat that asks for the same returns the one that is there.
	//
	// ErrInvalid: [ScheduleRequest.Check] refuses it, or its expression or time zone is not valid.
	// ErrScheduleExists: a schedule with other contents has the name. ErrNotFound: there is no such
	// collection. *UnknownFunctionError and *ArgumentError are as for AddTask.
	AddSchedule(ctx context.Context, r ScheduleRequest) (Schedule, error)
	// EditSchedule replaces what a schedule says. Its past firings stay, and its next one is
	// computed from now. A repeat changes nothing. ErrScheduleChanged: the request's version is not the
	// schedule's. ErrNotFound: there is no such schedule; other errors are as for AddSchedule.
	EditSchedule(ctx context.Context, r ScheduleRequest) (Schedule, error)
	// RemoveSchedule deletes a schedule and its record of past firings. The items that it made stay.
	// ErrNotFound: there is none.
	RemoveSchedule(ctx context.Context, name, actor string) error
	// PauseSchedule stops a schedule until ResumeSchedule. A repeat replaces reason and actor.
	// ErrNotFound: there is none.
	PauseSchedule(ctx context.Context, name, reason, actor string) (Schedule, error)
	// ResumeSchedule ends a pause. Times that passed during the pause are not caught up. A schedule
	// that is not paused stays as it is. ErrNotFound: there is none. ErrInvalid: this process cannot
	// read its expression or time zone.
	ResumeSchedule(ctx context.Context, name, actor string) (Schedule, error)
	// RunSchedule fires a schedule now, also a paused one. Its regular times stay as they are. A
	// repeated idempotency key returns the first firing. *ScheduleBusy: it does not overlap, and an
	// item that it made has not ended. ErrNotFound: there is none; other errors are as for AddTask.
	RunSchedule(ctx context.Context, r ScheduleRun) (Firing, error)
	// Schedule returns a schedule with its next times; ErrNotFound if there is none.
	Schedule(ctx context.Context, name string) (Schedule, error)
	// Schedules lists all schedules by name, with their next times.
	Schedules(ctx context.Context) ([]Schedule, error)
	// Firings lists the past firings of a schedule, newest first. limit 0 means 50; the most is 500.
	// ErrNotFound: there is no such schedule.
	Firings(ctx context.Context, name, after string, limit int) (Page[Firing], error)
}

// SchedulesFiring is what the Registry calls by itself to fire schedules.
type SchedulesFiring interface {
	// FireSchedules fires the schedules that are due. Each firing is one transaction: its record,
	// its item and the schedule's next time. Any number of processes may call it at the same time;
	// each time of a schedule is fired once. An error of one schedule does not keep others from
	// firing; the errors are joined.
	FireSchedules(ctx context.Context) ([]Firing, error)
}

// Schedule submits work at the times of a cron expression.
type Schedule struct {
	ScheduleSpec

	ID   string `json:"id"` // a later schedule of the same name has another id
	Name string `json:"name"`
	// Version grows with each edit.
	Version int64 `json:"version"`
	// Paused says why it does not fire; nil: it does.
	Paused *SchedulePause `json:"paused,omitempty"`
	// Next are the next times at which it fires, without jitter, ten at most. It is empty while the schedule is
	// paused, and if no such time comes.
	Next []time.Time `json:"next"`
	// Last is its last firing; nil: none yet.
	Last      *Firing   `json:"last,omitempty"`
	CreatedBy string    `json:"created_by"`
	CreatedAt time.Time `json:"created_at"`
	ChangedBy string    `json:"changed_by"` // of the last edit
	ChangedAt time.Time `json:"changed_at"`
}

// SchedulePause says who paused a schedule, when and why. The Registry itself pauses a schedule
// whose next time it cannot compute any more.
type SchedulePause struct {
	Actor  string    `json:"actor"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// ScheduleSpec is what people say of a schedule.
type ScheduleSpec struct {
	// Cron has the five fields of crontab(5), minute to day of the week, or is @hourly, @daily,
	// @weekly, @monthly or @yearly. If both days are restricted, either suffices.
	Cron string `json:"cron"`
	// Zone is the IANA name of the time zone of the expression, such as Europe/Berlin or UTC.
	//
	// An expression for every hour follows the elapsed time: it fires in each hour that passes. Any
	// other expression follows the clock on the wall. A time that the clock skips fires once, when
	// the clock has skipped it. A time that the clock shows twice fires at the first one.
	Zone string `json:"zone"`
	// Task is what it submits.
	Task *ScheduledTask `json:"task"`
	// JitterSeconds delays the start of each item by a random time below it, so that many schedules
	// do not start at the same moment. The same firing always has the same delay.
	JitterSeconds int64 `json:"jitter_seconds,omitempty"`
	// Overlap says what happens while an item of an earlier firing has not ended; "" is
	// OverlapSkip.
	Overlap Overlap `json:"overlap,omitempty"`
	// CatchUp says what happens with times that passed while no Registry ran; "" is CatchUpOnce.
	CatchUp CatchUp `json:"catch_up,omitempty"`
}

// ScheduledTask is the task that a schedule submits.
type ScheduledTask struct {
	Function   string          `json:"function"`
	Args       json.RawMessage `json:"args,omitempty"`       // as in NewTask
	Title      string          `json:"title,omitempty"`      // for people; "": the function's title
	Subject    string          `json:"subject,omitempty"`    // as in NewTask
	Collection string          `json:"collection,omitempty"` // as in NewTask
	Priority   *int            `json:"priority,omitempty"`   // nil: 0; lower comes first
}

// Overlap says what a schedule does while one of its items has not ended. A failed or cancelled item
// has ended.
type Overlap string

// The ways to deal with overlap.
const (
	OverlapSkip  Overlap = "skip"  // the firing is recorded as skipped
	OverlapAllow Overlap = "allow" // the item is submitted nevertheless
)

// Overlaps returns all ways to deal with overlap.
func Overlaps() []Overlap { return []Overlap{OverlapSkip, OverlapAllow} }

// CatchUp says what a schedule does with times that it missed: those more than ScheduleLate ago.
type CatchUp string

// The ways to catch up.
const (
	CatchUpSkip CatchUp = "skip" // missed times are recorded, nothing is submitted for them
	CatchUpOnce CatchUp = "once" // of several due times only the last fires
	// CatchUpAll fires every missed time, the oldest first, but only the last MostCatchUp. If the
	// schedule does not overlap, each item waits until the one before has ended.
	CatchUpAll CatchUp = "all"
)

// CatchUps returns all ways to catch up.
func CatchUps() []CatchUp { return []CatchUp{CatchUpSkip, CatchUpOnce, CatchUpAll} }

// Bounds of schedules.
const (
	ScheduleLate = time.Minute // a time is missed when it is this long ago
	MostCatchUp  = 100         // missed times that CatchUpAll fires at most
	MostFirings  = 1000        // past firings that are kept of a schedule
	NextTimes    = 10          // next times that are shown
	// MostScheduleArgs is in bytes. Events about a schedule have its arguments.
	MostScheduleArgs = 64 << 10

	mostCron      = 200
	mostZone      = 100
	mostTaskTexts = 2000
	mostJitter    = 24 * 60 * 60 // seconds
)

// ScheduleRequest creates or edits a schedule.
type ScheduleRequest struct {
	ScheduleSpec

	Name string `json:"name"`
	// Version is that of the schedule which the editor saw; 0: edit whichever is there.
	Version int64  `json:"version,omitempty"`
	Actor   string `json:"actor"`
	// DryRun judges the request and changes nothing. The answer is the schedule as it would be, with
	// its next times even if it is paused.
	DryRun bool `json:"dry_run,omitempty"`
}

// ScheduleRun fires a schedule now.
type ScheduleRun struct {
	Name           string `json:"name"`
	Actor          string `json:"actor"`
	IdempotencyKey string `json:"idempotency_key,omitempty"`
}

// Firing records what became of a time of a schedule.
type Firing struct {
	ID       string `json:"id"`
	Schedule string `json:"schedule"` // the name
	// Tick is the time of the schedule, or of the request to run it.
	Tick    time.Time     `json:"tick"`
	Outcome FiringOutcome `json:"outcome"`
	// ItemID is the item that was submitted; it may have been purged since.
	ItemID string `json:"item_id,omitempty"`
	// Reason says why nothing was submitted.
	Reason string `json:"reason,omitempty"`
	// Missed is how many times this record stands for, from First to Tick; 0 if the outcome is another.
	Missed int64      `json:"missed,omitempty"`
	First  *time.Time `json:"first,omitempty"`
	// Actor is who asked for a run; "registry" for the schedule's own times.
	Actor string    `json:"actor"`
	At    time.Time `json:"at"` // when it fired
}

// FiringOutcome is what became of a time of a schedule.
type FiringOutcome string

// The outcomes of firings.
const (
	FiringSubmitted FiringOutcome = "submitted"
	FiringSkipped   FiringOutcome = "skipped" // an earlier item has not ended, or submissions are not accepted
	FiringMissed    FiringOutcome = "missed"  // no Registry ran, and the schedule does not catch up
	FiringFailed    FiringOutcome = "failed"  // nothing could be submitted: the function is unknown, or its arguments do not fit any more
)

// Types of events about schedules. Their item_id is the ScheduleOwner of the name.
const (
	EventScheduleSet     = "schedule-set"
	EventScheduleRemoved = "schedule-removed"
	EventSchedulePaused  = "schedule-paused"
	EventScheduleResumed = "schedule-resumed"
	EventScheduleRun     = "schedule-run"
	EventScheduleFired   = "schedule-fired"
	EventScheduleSkipped = "schedule-skipped"
	EventScheduleMissed  = "schedule-missed"
	EventScheduleFailed  = "schedule-failed"
)

// scheduleOwner distinguishes schedules from items in events and causes.
const scheduleOwner = "schedule:"

// ScheduleOwner returns what represents a schedule in the item_id of events.
func ScheduleOwner(name string) string { return scheduleOwner + name }

// ScheduleCause returns the cause of the item that a schedule makes at a time.
func ScheduleCause(name string, tick time.Time) string {
	return scheduleOwner + name + "@" + tick.UTC().Format(time.RFC3339Nano)
}

// ScheduledBy is the inverse of [ScheduleCause]; ok is false for another cause.
func ScheduledBy(cause string) (name string, tick time.Time, ok bool) {
	rest, ok := strings.CutPrefix(cause, scheduleOwner)
	name, at, found := strings.Cut(rest, "@")
	tick, err := time.Parse(time.RFC3339Nano, at)
	if !ok || !found || err != nil {
		return "", time.Time{}, false
	}
	return name, tick, true
}

// Errors of schedules.
var (
	// ErrScheduleExists: another schedule has the name.
	ErrScheduleExists = errors.New("a schedule with other contents has this name")
	// ErrScheduleChanged: somebody changed the schedule since it was read.
	ErrScheduleChanged = errors.New("the schedule was changed since it was read")
)

// ScheduleBusy says that an item of a schedule has not ended.
type ScheduleBusy struct {
	Schedule string `json:"schedule"`
	ItemID   string `json:"item_id"`
}

// Error names the item.
func (e *ScheduleBusy) Error() string {
	return fmt.Sprintf("schedule %s does not overlap, and its item %s has not ended", e.Schedule, e.ItemID)
}

// NewTask returns the task that a firing submits, without actor, start time and requirements.
func (s ScheduledTask) NewTask() NewTask {
	return NewTask{Function: s.Function, Args: s.Args, Title: s.Title, Subject: s.Subject, Collection: s.Collection, Priority: s.Priority}
}

// Normal returns the spec with its defaults filled in.
func (s ScheduleSpec) Normal() ScheduleSpec {
	s.Cron = strings.Join(strings.Fields(s.Cron), " ")
	if s.Overlap == "" {
		s.Overlap = OverlapSkip
	}
	if s.CatchUp == "" {
		s.CatchUp = CatchUpOnce
	}
	if s.Zone == "" {
		s.Zone = "UTC"
	}
	return s
}

// CheckScheduleName returns ErrInvalid unless name can name a schedule: 1 to 64 letters, digits,
// dots, hyphens and underscores.
func CheckScheduleName(name string) error {
	return InField("name", checkWord("a schedule's name", name))
}

// Check returns ErrInvalid, with the reason, for an impossible schedule. It judges neither the
// expression nor the time zone.
func (r ScheduleRequest) Check() error {
	if err := CheckScheduleName(r.Name); err != nil {
		return err
	}
	s := r.Normal()
	switch {
	case s.Cron == "":
		return InField("cron", fmt.Errorf("%w: the cron expression is missing", ErrInvalid))
	case len(s.Cron) > mostCron:
		return InField("cron", fmt.Errorf("%w: a cron expression has at most %d bytes", ErrInvalid, mostCron))
	case len(s.Zone) > mostZone:
		return InField("zone", fmt.Errorf("%w: the name of a time zone has at most %d bytes", ErrInvalid, mostZone))
	case s.JitterSeconds < 0 || s.JitterSeconds > mostJitter:
		return InField("jitter_seconds", fmt.Errorf("%w: jitter is 0 to 24 hours", ErrInvalid))
	case s.Overlap != OverlapSkip && s.Overlap != OverlapAllow:
		return InField("overlap", fmt.Errorf("%w: overlap is %s or %s, not %.100q", ErrInvalid, OverlapSkip, OverlapAllow, s.Overlap))
	case s.CatchUp != CatchUpSkip && s.CatchUp != CatchUpOnce && s.CatchUp != CatchUpAll:
		return InField("catch_up", fmt.Errorf("%w: catch-up is %s, %s or %s, not %.100q", ErrInvalid, CatchUpSkip, CatchUpOnce, CatchUpAll, s.CatchUp))
	case s.Task == nil:
		return fmt.Errorf("%w: the schedule submits nothing; name a task", ErrInvalid)
	case len(s.Task.Title)+len(s.Task.Subject)+len(s.Task.Collection) > mostTaskTexts:
		return fmt.Errorf("%w: title, subject and collection are too long together", ErrInvalid)
	}
	if len(s.Task.Args) > MostScheduleArgs {
		return InField("task.args", fmt.Errorf("%w: the arguments take %s; the limit of a schedule is %s", ErrInvalid, SizeText(int64(len(s.Task.Args))), SizeText(MostScheduleArgs)))
	}
	return s.Task.NewTask().Check()
}
