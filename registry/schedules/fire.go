package schedules

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/holdfast/holdfast/metrics"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/tasks"
	"github.com/holdfast/holdfast/registry/work"
)

// mostTicks is how many times of a schedule one transaction looks at. After a long downtime the next
// transactions look at the others.
const mostTicks = 10_000

// FireSchedules implements registry.SchedulesFiring.
func (s *Calendar) FireSchedules(ctx context.Context) (out []registry.Firing, err error) {
	defer metrics.Scan.Since(time.Now(), "schedule")
	// The transaction looks again, with its own time.
	due, err := s.db.Column(ctx, `SELECT id FROM schedule WHERE paused_at IS NULL AND next_at <= $1 ORDER BY next_at, id`, sqldb.Micros(s.db.Now()))
	if err != nil {
		return nil, fmt.Errorf("look for due schedules: %w", err)
	}
	var errs []error
	for _, id := range due {
		if ctx.Err() != nil {
			break
		}
		var fired []registry.Firing
		err := s.work.Write(ctx, func(t *work.Tx) (err error) {
			fired, err = fire(t, id)
			return err
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("fire schedule %s: %w", id, err))
			continue
		}
		out = append(out, fired...)
	}
	return out, errors.Join(errs...)
}

// fire fires the times of a schedule up to now, and stores the next one. It does nothing if another
// process was faster, or if the schedule was paused or removed.
func fire(t *work.Tx, id string) ([]registry.Firing, error) {
	s, next, err := scan(t.Row(selectSchedule+`WHERE id = $1`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil || s.Paused != nil || next == nil || sqldb.Micros(*next) > t.Now {
		return nil, err
	}
	at, err := parse(s.Cron, s.Zone)
	if err != nil {
		// A program with another time zone database may have stored it.
		return nil, pause(t, s, "the next time cannot be computed: "+err.Error(), work.ActorRegistry)
	}
	due, then := dueTimes(at, *next, sqldb.FromMicros(t.Now))
	more := !then.IsZero() && sqldb.Micros(then) <= t.Now
	if due, err = unfired(t, s.ID, due); err != nil {
		return nil, err
	}
	missed, firing := split(s.CatchUp, due, sqldb.FromMicros(t.Now).Add(-registry.ScheduleLate), more)
	if more && len(firing) > 0 { // of the last times, which the next transaction fires, with those after them
		then, firing = firing[0], nil
	}
	var out []registry.Firing
	if len(missed) > 0 {
		f := registry.Firing{Tick: missed[len(missed)-1], Outcome: registry.FiringMissed, Missed: int64(len(missed)), First: &missed[0], Reason: missedWhy(s.CatchUp)}
		if out, err = record(t, s, out, f); err != nil {
			return nil, err
		}
	}
	for _, tick := range firing {
		f, err := submitted(t, s, tick)
		if err != nil {
			return nil, err
		}
		if out, err = record(t, s, out, f); err != nil {
			return nil, err
		}
	}
	if err := t.Do(`UPDATE schedule SET next_at = $2 WHERE id = $1`, s.ID, nullable(then)); err != nil {
		return nil, err
	}
	return out, prune(t, s.ID)
}

// dueTimes returns the times from first until now, and the one after them. If they are more than
// one transaction looks at, that is also a due one.
func dueTimes(at times, first, now time.Time) (due []time.Time, then time.Time) {
	for then = first; !then.IsZero() && !then.After(now) && len(due) < mostTicks; then = at.next(then) {
		due = append(due, then)
	}
	return due, then
}

// unfired returns the times that have no record. A time has one if the clock was set back, and then
// the schedule was edited or resumed: its next time was computed from the present.
func unfired(t *work.Tx, scheduleID string, due []time.Time) (out []time.Time, err error) {
	fired := map[int64]bool{}
	err = sqldb.Each(t.Ask(`SELECT tick FROM schedule_firing WHERE schedule_id = $1 AND own = 1 AND tick >= $2`, scheduleID, sqldb.Micros(due[0])), "look for past firings",
		func(row sqldb.Scanner) error {
			var tick int64
			err := row.Scan(&tick)
			fired[tick] = true
			return err
		})
	for _, tick := range due {
		if !fired[sqldb.Micros(tick)] {
			out = append(out, tick)
		}
	}
	return out, err
}

// split says which of the due times are only recorded as missed, and which fire. late is the time
// before which a time is missed; more says that later ones are due, too.
func split(c registry.CatchUp, due []time.Time, late time.Time, more bool) (missed, firing []time.Time) {
	n := 0 // how many are missed
	switch c {
	case registry.CatchUpSkip:
		for n < len(due) && due[n].Before(late) {
			n++
		}
	case registry.CatchUpAll:
		n = max(0, len(due)-registry.MostCatchUp)
	case registry.CatchUpOnce:
		if n = max(0, len(due)-1); more {
			n = len(due)
		}
	}
	return due[:n], due[n:]
}

func missedWhy(c registry.CatchUp) string {
	switch c {
	case registry.CatchUpOnce:
		return "it was too late, and a later time fires"
	case registry.CatchUpAll:
		return fmt.Sprintf("it was too late; at most %d times are caught up", registry.MostCatchUp)
	case registry.CatchUpSkip:
	}
	return "it was too late; the schedule does not catch up"
}

// submitted submits the item of a time, or says why it does not.
func submitted(t *work.Tx, s registry.Schedule, tick time.Time) (f registry.Firing, err error) {
	f = registry.Firing{Tick: tick, Outcome: registry.FiringSubmitted}
	now := sqldb.FromMicros(t.Now)
	late := tick.Before(now.Add(-registry.ScheduleLate))
	n := s.Task.NewTask()
	n.Actor, n.Cause = work.ActorRegistry, registry.ScheduleCause(s.Name, tick)
	if s.Overlap == registry.OverlapSkip {
		open, err := openItem(t, s.ID)
		switch {
		case err != nil:
			return f, err
		case open != "" && late && s.CatchUp == registry.CatchUpAll:
			n.Requires = []registry.Requirement{{ItemID: open, WaitFor: registry.WaitSettled}}
		case open != "":
			f.Outcome, f.Reason = registry.FiringSkipped, "item "+open+" of an earlier firing has not ended"
			return f, nil
		}
	}
	if start := tick; s.JitterSeconds > 0 {
		if late {
			start = now
		}
		n.NotBefore = start.Add(jitter(s, tick))
	}
	f.ItemID, err = tasks.Add(t, n)
	var closed *registry.NotAccepting
	switch {
	case errors.As(err, &closed):
		f.Outcome, f.Reason = registry.FiringSkipped, err.Error()
	case errors.Is(err, registry.ErrNotFound), errors.Is(err, registry.ErrInvalid):
		f.Outcome, f.Reason = registry.FiringFailed, err.Error()
	case err != nil:
		return f, err
	}
	return f, nil
}

// jitter returns the delay of a time: the same for a repeat after a rollback.
func jitter(s registry.Schedule, tick time.Time) time.Duration {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s %d", s.ID, tick.Unix())
	return time.Duration(h.Sum64()%uint64(s.JitterSeconds)) * time.Second //nolint:gosec // it is less than a day
}

// openItem returns the last item of a schedule that has not ended, or "".
func openItem(t *work.Tx, scheduleID string) (id string, err error) {
	err = t.Get(`SELECT f.item_id FROM schedule_firing f JOIN work_item i ON i.id = f.item_id
		WHERE f.schedule_id = $1 AND f.item_id <> '' AND i.status IN ('prepare', 'pending', 'running')
		ORDER BY f.at DESC, f.id DESC LIMIT 1`, []any{scheduleID}, &id)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return id, err
}

// kinds are the types of events by outcome.
var kinds = map[registry.FiringOutcome]string{
	registry.FiringSubmitted: registry.EventScheduleFired, registry.FiringSkipped: registry.EventScheduleSkipped,
	registry.FiringMissed: registry.EventScheduleMissed, registry.FiringFailed: registry.EventScheduleFailed,
}

// record records a firing of the schedule's own time, with its event, and appends it to out.
func record(t *work.Tx, s registry.Schedule, out []registry.Firing, f registry.Firing) ([]registry.Firing, error) {
	f.Actor = work.ActorRegistry
	f, err := insert(t, s, f, true)
	if err != nil {
		return out, err
	}
	return append(out, f), note(t, s, kinds[f.Outcome], f.Actor, event{Tick: &f.Tick, ItemID: f.ItemID, Reason: f.Reason, Missed: f.Missed, First: f.First})
}

func insert(t *work.Tx, s registry.Schedule, f registry.Firing, own bool) (registry.Firing, error) {
	f.ID, f.Schedule, f.At = sqldb.NewID(), s.Name, sqldb.FromMicros(t.Now)
	f.Reason, f.Actor = sqldb.Clean(f.Reason), sqldb.Clean(f.Actor)
	var first sql.NullInt64
	if f.First != nil {
		first = nullable(*f.First)
	}
	err := t.Do(`INSERT INTO schedule_firing (id, schedule_id, tick, own, outcome, item_id, reason, missed, first_tick, actor, at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
		f.ID, s.ID, sqldb.Micros(f.Tick), sqldb.Bit(own), f.Outcome, f.ItemID, f.Reason, f.Missed, first, f.Actor, t.Now)
	return f, err
}

// prune deletes the oldest records, but none of an item that has not ended: whether the schedule
// overlaps depends on them.
func prune(t *work.Tx, scheduleID string) error {
	return t.Do(`DELETE FROM schedule_firing WHERE schedule_id = $1
		AND at < (SELECT k.at FROM schedule_firing k WHERE k.schedule_id = $1 ORDER BY k.at DESC, k.id DESC LIMIT 1 OFFSET $2)
		AND NOT EXISTS (SELECT 1 FROM work_item i WHERE i.id = schedule_firing.item_id AND i.status IN ('prepare', 'pending', 'running'))`,
		scheduleID, registry.MostFirings-1)
}

// RunSchedule implements registry.Scheduling.
func (s *Calendar) RunSchedule(ctx context.Context, r registry.ScheduleRun) (f registry.Firing, err error) {
	err = s.work.Write(ctx, func(t *work.Tx) (err error) {
		f, err = run(t, r)
		return err
	})
	if err != nil {
		return registry.Firing{}, fmt.Errorf("run schedule %.100s: %w", r.Name, err)
	}
	return f, nil
}

func run(t *work.Tx, r registry.ScheduleRun) (f registry.Firing, err error) {
	print, err := work.Fingerprint(struct{ Run string }{r.Name})
	if err != nil {
		return f, err
	}
	itemID, repeated, err := t.Keyed(r.IdempotencyKey, print)
	if err != nil {
		return f, err
	}
	if repeated {
		f, err = scanFiring(t.Row(selectFiring+`WHERE f.item_id = $1`, itemID))
		return f, missing(err)
	}
	have, err := of(t, r.Name)
	if err != nil {
		return f, err
	}
	if have.Overlap == registry.OverlapSkip {
		open, err := openItem(t, have.ID)
		if err == nil && open != "" {
			err = &registry.ScheduleBusy{Schedule: have.Name, ItemID: open}
		}
		if err != nil {
			return f, err
		}
	}
	f = registry.Firing{Tick: sqldb.FromMicros(t.Now), Outcome: registry.FiringSubmitted, Actor: r.Actor}
	n := have.Task.NewTask()
	n.Actor, n.Cause = r.Actor, registry.ScheduleCause(have.Name, f.Tick)
	if f.ItemID, err = tasks.Add(t, n); err != nil {
		return f, err
	}
	if f, err = insert(t, have, f, false); err != nil {
		return f, err
	}
	if err := t.Answer(r.IdempotencyKey, print, f.ItemID, registry.ActSubmit, r.Actor); err != nil {
		return f, err
	}
	if err := prune(t, have.ID); err != nil {
		return f, err
	}
	return f, note(t, have, registry.EventScheduleRun, r.Actor, event{Tick: &f.Tick, ItemID: f.ItemID})
}
