package work

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

const (
	selectAccepting = `SELECT value = 'on', reason, actor, at FROM setting WHERE name = 'accepting'`
	eventAccepting  = "accepting"
)

// scanAccepting reads the row of selectAccepting. Without a row, submissions are accepted.
func scanAccepting(row sqldb.Scanner) (registry.Accepting, error) {
	var a registry.Accepting
	var at int64
	err := row.Scan(&a.On, &a.Reason, &a.Actor, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return registry.Accepting{On: true}, nil
	} else if err != nil {
		return a, fmt.Errorf("look up whether submissions are accepted: %w", err)
	}
	a.Since = sqldb.FromMicros(at)
	return a, nil
}

// Accepting implements registry.Submitting.
func (e *Engine) Accepting(ctx context.Context) (registry.Accepting, error) {
	return scanAccepting(e.db.Read.QueryRowContext(ctx, selectAccepting))
}

// Accepting returns a *registry.NotAccepting while submissions are not accepted. Everything that
// admits one calls it.
func (t *Tx) Accepting() error {
	a, err := scanAccepting(t.Row(selectAccepting))
	if err != nil {
		return err
	}
	if !a.On {
		return &registry.NotAccepting{Accepting: a}
	}
	return nil
}

// A drain is the row of setting with this name: its value is until when, in microseconds. It begins
// and ends together with the hold on everything.
const (
	selectDrain = `SELECT value, reason, actor, at FROM setting WHERE name = 'drain'`
	eventDrain  = "drain"
)

// scanDrain reads the row of selectDrain; nil: there is no drain.
func scanDrain(row sqldb.Scanner) (*registry.Drain, error) {
	var d registry.Drain
	var until string
	var at int64
	err := row.Scan(&until, &d.Reason, &d.Actor, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil //nolint:nilnil // there is none
	}
	var micros int64
	if err == nil {
		micros, err = strconv.ParseInt(until, 10, 64)
	}
	if err != nil {
		return nil, fmt.Errorf("look up whether everything is drained: %w", err)
	}
	d.Until, d.At = sqldb.FromMicros(micros), sqldb.FromMicros(at)
	return &d, nil
}

// Drain implements registry.Commanding.
func (e *Engine) Drain(ctx context.Context, d registry.Drain) error {
	d.Reason, d.Actor = sqldb.Clean(d.Reason), sqldb.Clean(d.Actor)
	if d.Until.IsZero() || d.Reason == "" {
		return fmt.Errorf("drain everything: %w: it needs a time and a reason", registry.ErrInvalid)
	}
	err := e.Write(ctx, func(t *Tx) error {
		if err := t.addHold(registry.Hold{Scope: registry.HoldAll, Reason: d.Reason, Actor: d.Actor}); err != nil {
			return err
		}
		until := sqldb.Micros(d.Until)
		err := t.Do(`INSERT INTO setting (name, value, reason, actor, at) VALUES ('drain', $1, $2, $3, $4)
			ON CONFLICT (name) DO UPDATE SET value = $1, reason = $2, actor = $3`, strconv.FormatInt(until, 10), d.Reason, d.Actor, t.Now)
		if err != nil {
			return err
		}
		return t.Event("", 0, eventDrain, d.Actor, map[string]string{"until": d.Until.UTC().Format(time.RFC3339), "reason": d.Reason})
	})
	if err != nil {
		return fmt.Errorf("drain everything: %w", err)
	}
	return nil
}

// withdrawDrained takes away attempts that did not stop in time, a bounded number at a time.
func (t *Tx) withdrawDrained() error {
	d, err := scanDrain(t.Row(selectDrain))
	if err != nil || d == nil || t.Now < sqldb.Micros(d.Until) {
		return err
	}
	ids, err := t.Strings(`SELECT item_id FROM attempt WHERE finished_at IS NULL ORDER BY lease_until LIMIT 500`)
	if err != nil {
		return fmt.Errorf("find what runs in spite of the drain: %w", err)
	}
	slices.Sort(ids) // items are locked by ascending id everywhere (R11)
	why := "everything is drained: " + d.Reason
	for _, id := range ids {
		it, err := t.Item(id)
		if err == nil && it.Status == registry.Running {
			err = t.withdraw(it, why, registry.Pending)
		}
		if err == nil && it.Status == registry.Running {
			err = t.Move(it, Change{act: registry.ActRelease, Stage: it.Stage, Status: registry.Pending, tries: it.Tries, n: it.Attempt, Actor: d.Actor, Reason: why})
		}
		if err != nil {
			return fmt.Errorf("withdraw item %s, which did not stop: %w", id, err)
		}
	}
	return nil
}

// Drained returns what is left while everything is held, whether running steps are stopped or not;
// nil: not everything is held. usual is the mean time of a step in seconds, by stage.
func (e *Engine) Drained(ctx context.Context, usual map[registry.Stage]float64) (*registry.Drain, error) {
	d, err := scanDrain(e.db.Read.QueryRowContext(ctx, selectDrain))
	if err == nil && d == nil {
		d, err = e.pausedAll(ctx)
	}
	if err != nil || d == nil {
		return nil, err
	}
	now, known := e.db.Now(), true
	err = sqldb.Each(e.db.Read.Ask(ctx, `SELECT stage, started_at, progress FROM attempt WHERE finished_at IS NULL`), "list what still runs", func(row sqldb.Scanner) error {
		var stage registry.Stage
		var began int64
		var text string
		if err := row.Scan(&stage, &began, &text); err != nil {
			return err
		}
		var progress []registry.Progress
		if err := json.Unmarshal([]byte(text), &progress); err != nil {
			return fmt.Errorf("decode progress: %w", err)
		}
		d.Left++
		started := sqldb.FromMicros(began)
		end := endOf(started, now, progress)
		if by := started.Add(time.Duration(usual[stage] * float64(time.Second))); end.IsZero() && by.After(now) {
			end = by
		}
		if !d.Until.IsZero() && (end.IsZero() || end.After(d.Until)) {
			end = d.Until
		}
		known = known && !end.IsZero()
		if d.Done == nil || end.After(*d.Done) {
			d.Done = &end
		}
		return nil
	})
	if !known {
		d.Done = nil
	}
	return d, err
}

// pausedAll returns the hold on everything as a drain that stops no step; nil: there is none.
func (e *Engine) pausedAll(ctx context.Context) (*registry.Drain, error) {
	h, err := ScanHold(e.db.Read.QueryRowContext(ctx, SelectHold+`WHERE scope = 'all'`))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil //nolint:nilnil // there is none
	} else if err != nil {
		return nil, fmt.Errorf("look up whether everything is held: %w", err)
	}
	return &registry.Drain{Reason: h.Reason, Actor: h.Actor, At: h.CreatedAt}, nil
}

// endOf returns when an attempt ends if it goes on as fast as it did; zero: that is not known.
func endOf(started, now time.Time, progress []registry.Progress) (end time.Time) {
	for _, p := range progress {
		if p.Position <= 0 || p.End < p.Position {
			return time.Time{}
		}
		left := float64(now.Sub(started)) * float64(p.End-p.Position) / float64(p.Position)
		if at := now.Add(time.Duration(min(left, float64(365*24*time.Hour)))); at.After(end) {
			end = at
		}
	}
	return end
}

// SetAccepting implements registry.Commanding.
func (e *Engine) SetAccepting(ctx context.Context, a registry.Accepting) error {
	value := "off"
	if a.On {
		value = "on"
	}
	a.Reason, a.Actor = sqldb.Clean(a.Reason), sqldb.Clean(a.Actor)
	err := e.Write(ctx, func(t *Tx) error {
		// A repeated command keeps the time of the first.
		err := t.Do(`INSERT INTO setting (name, value, reason, actor, at) VALUES ('accepting', $1, $2, $3, $4)
			ON CONFLICT (name) DO UPDATE SET value = $1, reason = $2, actor = $3,
				at = CASE WHEN setting.value = $1 THEN setting.at ELSE $4 END`, value, a.Reason, a.Actor, t.Now)
		if err != nil {
			return err
		}
		return t.Event("", 0, eventAccepting, a.Actor, map[string]string{"value": value, "reason": a.Reason})
	})
	if err != nil {
		return fmt.Errorf("turn accepting submissions %s: %w", value, err)
	}
	return nil
}
