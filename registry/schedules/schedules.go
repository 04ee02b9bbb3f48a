// Package schedules keeps schedules and fires them. A firing is one transaction: the record of the
// time, its item, and the schedule's next time. So each time fires once, however many processes
// look, and whenever one of them dies.
package schedules

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/tasks"
	"github.com/holdfast/holdfast/registry/work"
)

// Calendar keeps schedules. Its methods may be called concurrently.
type Calendar struct {
	db   *sqldb.DB
	work *work.Engine
}

// New returns the schedules of a Registry.
func New(db *sqldb.DB, engine *work.Engine) *Calendar { return &Calendar{db, engine} }

const selectSchedule = `SELECT id, name, spec, version, paused_at, paused_by, paused_why, created_by, created_at, changed_by, changed_at, next_at FROM schedule `

// scan reads a schedule, and the next time that is stored.
func scan(row sqldb.Scanner) (s registry.Schedule, next *time.Time, err error) {
	var spec, pausedBy, pausedWhy string
	var pausedAt, nextAt sql.NullInt64
	var created, changed int64
	err = row.Scan(&s.ID, &s.Name, &spec, &s.Version, &pausedAt, &pausedBy, &pausedWhy, &s.CreatedBy, &created, &s.ChangedBy, &changed, &nextAt)
	if err != nil {
		return s, nil, err
	}
	if err := json.Unmarshal([]byte(spec), &s.ScheduleSpec); err != nil {
		return s, nil, fmt.Errorf("decode schedule %s: %w", s.Name, err)
	}
	s.CreatedAt, s.ChangedAt = sqldb.FromMicros(created), sqldb.FromMicros(changed)
	if at := sqldb.Optional(pausedAt); at != nil {
		s.Paused = &registry.SchedulePause{Actor: pausedBy, Reason: pausedWhy, At: *at}
	}
	return s, sqldb.Optional(nextAt), nil
}

// scanShown reads a schedule with its next times.
func scanShown(row sqldb.Scanner) (registry.Schedule, error) {
	s, next, err := scan(row)
	if err != nil || s.Paused != nil {
		next = nil
	}
	s.Next = upcoming(s.ScheduleSpec, next)
	return s, err
}

// upcoming returns the next times of a schedule, from the first one on.
func upcoming(s registry.ScheduleSpec, first *time.Time) []time.Time {
	out := []time.Time{}
	if first == nil {
		return out
	}
	at, err := parse(s.Cron, s.Zone)
	if err != nil {
		return out // its firing will pause it, and say why
	}
	for t := *first; !t.IsZero() && len(out) < registry.NextTimes; t = at.next(t) {
		out = append(out, t.UTC())
	}
	return out
}

// of returns a schedule by name, or ErrNotFound.
func of(t *work.Tx, name string) (registry.Schedule, error) {
	s, _, err := scan(t.Row(selectSchedule+`WHERE name = $1`, sqldb.Clean(name)))
	return s, missing(err)
}

func missing(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return registry.ErrNotFound
	}
	return err
}

// change runs a person's change of a schedule, and returns the schedule as it is afterwards.
func (s *Calendar) change(ctx context.Context, what, name string, fn func(*work.Tx) error) (registry.Schedule, error) {
	return s.changeOrTry(ctx, what, name, false, fn)
}

// changeOrTry is as change. A dry run is undone, and shows the next times of a paused schedule, too.
func (s *Calendar) changeOrTry(ctx context.Context, what, name string, dryRun bool, fn func(*work.Tx) error) (out registry.Schedule, err error) {
	err = s.work.WriteOrTry(ctx, dryRun, func(t *work.Tx) error {
		if err := fn(t); err != nil {
			return err
		}
		var next *time.Time
		if out, next, err = scan(t.Row(selectSchedule+`WHERE name = $1`, name)); err != nil {
			return err
		}
		if out.Paused != nil && !dryRun {
			next = nil
		}
		out.Next = upcoming(out.ScheduleSpec, next)
		out.Last, err = last(t, out.ID)
		return err
	})
	if err != nil {
		return registry.Schedule{}, fmt.Errorf("%s schedule %.100s: %w", what, name, err)
	}
	return out, nil
}

// last returns the last firing of a schedule, or nil.
func last(t *work.Tx, id string) (*registry.Firing, error) {
	f, err := scanFiring(t.Row(selectFiring+`WHERE f.schedule_id = $1 ORDER BY f.at DESC, f.id DESC LIMIT 1`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil //nolint:nilnil // it has not fired yet
	}
	return &f, err
}

// judged returns a request's spec as it is stored, and its first time after now. The expression must
// be valid, and its task must be one that could be submitted now.
func judged(t *work.Tx, r registry.ScheduleRequest) (spec string, next sql.NullInt64, err error) {
	normal := r.Normal()
	at, err := parse(normal.Cron, normal.Zone)
	if err != nil {
		return "", next, err
	}
	first := at.next(sqldb.FromMicros(t.Now))
	if first.IsZero() {
		return "", next, fmt.Errorf("%w: cron expression %.100q never comes true: no such date in the next %d years", registry.ErrInvalid, normal.Cron, searchYears)
	}
	if _, err := tasks.Item(t, normal.Task.NewTask()); err != nil {
		return "", next, err
	}
	text, err := json.Marshal(normal)
	if err != nil {
		return "", next, fmt.Errorf("encode it: %w", err)
	}
	return string(text), nullable(first), nil
}

func nullable(at time.Time) sql.NullInt64 {
	if at.IsZero() {
		return sql.NullInt64{}
	}
	return sql.NullInt64{Int64: sqldb.Micros(at), Valid: true}
}

// event is the data of an event about a schedule.
type event struct {
	Spec    *registry.ScheduleSpec `json:"spec,omitempty"`
	Version int64                  `json:"version,omitempty"`
	Reason  string                 `json:"reason,omitempty"`
	Tick    *time.Time             `json:"tick,omitempty"`
	ItemID  string                 `json:"item_id,omitempty"`
	Missed  int64                  `json:"missed,omitempty"`
	First   *time.Time             `json:"first,omitempty"`
}

func note(t *work.Tx, s registry.Schedule, kind, actor string, data event) error {
	e := work.Entry{ItemID: registry.ScheduleOwner(s.Name), Kind: kind, Actor: actor, Data: data}
	if s.Task != nil {
		e.Collection = s.Task.Collection
	}
	return t.Note(e)
}

// AddSchedule implements registry.Scheduling.
func (s *Calendar) AddSchedule(ctx context.Context, r registry.ScheduleRequest) (registry.Schedule, error) {
	if err := r.Check(); err != nil {
		return registry.Schedule{}, fmt.Errorf("create schedule: %w", err)
	}
	return s.changeOrTry(ctx, "create", r.Name, r.DryRun, func(t *work.Tx) error {
		spec, next, err := judged(t, r)
		if err != nil {
			return err
		}
		have, err := of(t, r.Name)
		switch {
		case err == nil:
			if stored, err := json.Marshal(have.ScheduleSpec); err != nil || string(stored) == spec {
				return err
			}
			return registry.ErrScheduleExists
		case !errors.Is(err, registry.ErrNotFound):
			return err
		}
		err = t.Do(`INSERT INTO schedule (id, name, spec, version, next_at, paused_by, paused_why, created_by, created_at, changed_by, changed_at)
			VALUES ($1, $2, $3, 1, $4, '', '', $5, $6, $5, $6)`, sqldb.NewID(), r.Name, spec, next, sqldb.Clean(r.Actor), t.Now)
		if err != nil {
			return err
		}
		return note(t, registry.Schedule{Name: r.Name, ScheduleSpec: r.ScheduleSpec}, registry.EventScheduleSet, r.Actor, event{Spec: specOf(r), Version: 1})
	})
}

func specOf(r registry.ScheduleRequest) *registry.ScheduleSpec {
	normal := r.Normal()
	return &normal
}

// EditSchedule implements registry.Scheduling.
func (s *Calendar) EditSchedule(ctx context.Context, r registry.ScheduleRequest) (registry.Schedule, error) {
	if err := r.Check(); err != nil {
		return registry.Schedule{}, fmt.Errorf("edit schedule: %w", err)
	}
	return s.changeOrTry(ctx, "edit", r.Name, r.DryRun, func(t *work.Tx) error {
		have, err := of(t, r.Name)
		if err != nil {
			return err
		}
		spec, next, err := judged(t, r)
		if err != nil {
			return err
		}
		if stored, err := json.Marshal(have.ScheduleSpec); err != nil || bytes.Equal(stored, []byte(spec)) {
			return err
		}
		if r.Version != 0 && r.Version != have.Version {
			return registry.ErrScheduleChanged
		}
		err = t.Do(`UPDATE schedule SET spec = $2, version = version + 1, next_at = $3, changed_by = $4, changed_at = $5 WHERE id = $1`,
			have.ID, spec, next, sqldb.Clean(r.Actor), t.Now)
		if err != nil {
			return err
		}
		return note(t, registry.Schedule{Name: r.Name, ScheduleSpec: r.ScheduleSpec}, registry.EventScheduleSet, r.Actor, event{Spec: specOf(r), Version: have.Version + 1})
	})
}

// RemoveSchedule implements registry.Scheduling.
func (s *Calendar) RemoveSchedule(ctx context.Context, name, actor string) error {
	err := s.work.Write(ctx, func(t *work.Tx) error {
		have, err := of(t, name)
		if err != nil {
			return err
		}
		if err := t.Do(`DELETE FROM schedule_firing WHERE schedule_id = $1`, have.ID); err != nil {
			return err
		}
		if err := t.Do(`DELETE FROM schedule WHERE id = $1`, have.ID); err != nil {
			return err
		}
		return note(t, have, registry.EventScheduleRemoved, actor, event{Spec: &have.ScheduleSpec, Version: have.Version})
	})
	if err != nil {
		return fmt.Errorf("remove schedule %.100s: %w", name, err)
	}
	return nil
}

// PauseSchedule implements registry.Scheduling.
func (s *Calendar) PauseSchedule(ctx context.Context, name, reason, actor string) (registry.Schedule, error) {
	return s.change(ctx, "pause", name, func(t *work.Tx) error {
		have, err := of(t, name)
		if err != nil {
			return err
		}
		return pause(t, have, reason, actor)
	})
}

func pause(t *work.Tx, s registry.Schedule, reason, actor string) error {
	err := t.Do(`UPDATE schedule SET paused_at = COALESCE(paused_at, $2), paused_by = $3, paused_why = $4 WHERE id = $1`,
		s.ID, t.Now, sqldb.Clean(actor), sqldb.Clean(reason))
	if err != nil {
		return err
	}
	return note(t, s, registry.EventSchedulePaused, actor, event{Reason: sqldb.Clean(reason)})
}

// ResumeSchedule implements registry.Scheduling.
func (s *Calendar) ResumeSchedule(ctx context.Context, name, actor string) (registry.Schedule, error) {
	return s.change(ctx, "resume", name, func(t *work.Tx) error {
		have, err := of(t, name)
		if err != nil || have.Paused == nil {
			return err
		}
		at, err := parse(have.Cron, have.Zone)
		if err != nil {
			return err
		}
		err = t.Do(`UPDATE schedule SET paused_at = NULL, paused_by = '', paused_why = '', next_at = $2 WHERE id = $1`,
			have.ID, nullable(at.next(sqldb.FromMicros(t.Now))))
		if err != nil {
			return err
		}
		return note(t, have, registry.EventScheduleResumed, actor, event{})
	})
}

// Schedule implements registry.Scheduling.
func (s *Calendar) Schedule(ctx context.Context, name string) (registry.Schedule, error) {
	all, err := s.list(ctx, `WHERE name = $1`, sqldb.Clean(name))
	if err == nil && len(all) == 0 {
		err = registry.ErrNotFound
	}
	if err != nil {
		return registry.Schedule{}, fmt.Errorf("read schedule %.100s: %w", name, err)
	}
	return all[0], nil
}

// Schedules implements registry.Scheduling.
func (s *Calendar) Schedules(ctx context.Context) ([]registry.Schedule, error) {
	all, err := s.list(ctx, `ORDER BY name`)
	if err != nil {
		return nil, fmt.Errorf("list schedules: %w", err)
	}
	return all, nil
}

func (s *Calendar) list(ctx context.Context, which string, args ...any) ([]registry.Schedule, error) {
	all, err := sqldb.Collect(s.db.Read.Ask(ctx, selectSchedule+which, args...), "", scanShown)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	firings, err := sqldb.Collect(s.db.Read.Ask(ctx, selectFiring+`WHERE f.id = (SELECT l.id FROM schedule_firing l WHERE l.schedule_id = s.id ORDER BY l.at DESC, l.id DESC LIMIT 1)`), "", scanFiring)
	if err != nil {
		return nil, err
	}
	byName := map[string]*registry.Firing{}
	for i := range firings {
		byName[firings[i].Schedule] = &firings[i]
	}
	for i := range all {
		all[i].Last = byName[all[i].Name]
	}
	return all, nil
}

const selectFiring = `SELECT f.id, s.name, f.tick, f.outcome, f.item_id, f.reason, f.missed, f.first_tick, f.actor, f.at
	FROM schedule s JOIN schedule_firing f ON f.schedule_id = s.id `

func scanFiring(row sqldb.Scanner) (f registry.Firing, err error) {
	var tick, at int64
	var first sql.NullInt64
	err = row.Scan(&f.ID, &f.Schedule, &tick, &f.Outcome, &f.ItemID, &f.Reason, &f.Missed, &first, &f.Actor, &at)
	f.Tick, f.At, f.First = sqldb.FromMicros(tick), sqldb.FromMicros(at), sqldb.Optional(first)
	return f, err
}

// Firings implements registry.Scheduling.
func (s *Calendar) Firings(ctx context.Context, name, after string, limit int) (page registry.Page[registry.Firing], err error) {
	if _, err := s.Schedule(ctx, name); err != nil {
		return page, err
	}
	var w sqldb.Where
	w.Add("s.name = ?", name)
	if after != "" {
		at, id, err := sqldb.ParseCursor(after)
		if err != nil {
			return page, err
		}
		w.Add("(f.at < ? OR f.at = ? AND f.id < ?)", at, at, id)
	}
	limit = sqldb.PageSize(limit)
	rows, err := sqldb.Collect(s.db.Read.Ask(ctx, selectFiring+w.String()+fmt.Sprintf(" ORDER BY f.at DESC, f.id DESC LIMIT %d", limit+1), w.Args...),
		"list the firings of schedule "+name, scanFiring)
	if err != nil {
		return page, err
	}
	return sqldb.PageOf(rows, limit, func(f registry.Firing) string { return sqldb.Cursor(sqldb.Micros(f.At), f.ID) }), nil
}
