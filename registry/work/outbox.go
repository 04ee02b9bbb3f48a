package work

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// workerAlive is how long a worker counts after its last renewal.
const workerAlive = time.Minute

// Due implements registry.Dispatching.
func (e *Engine) Due(ctx context.Context, d registry.DueRequest) ([]registry.Wake, error) {
	found, err := e.anyDue(ctx)
	if err != nil || !found {
		return nil, err // the usual answer costs no write
	}
	var wakes []registry.Wake
	err = e.Write(ctx, func(t *Tx) error {
		wakes = nil
		if err := t.promote(); err != nil {
			return err
		}
		var err error
		wakes, err = t.allDue(d)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("offer due items: %w", err)
	}
	return wakes, nil
}

// MessageSent is true for the rows for which a message is on its way at the time $2.
const MessageSent = `status = 'pending' AND nudges > 0 AND nudge_at > $2`

func (e *Engine) anyDue(ctx context.Context) (found bool, err error) {
	err = e.db.Read.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM work_item WHERE nudge_at <= $1) OR EXISTS (SELECT 1 FROM putback)`,
		sqldb.Micros(e.db.Now())).Scan(&found)
	if err != nil {
		return false, fmt.Errorf("look for due items: %w", err)
	}
	return found, nil
}

// allDue offers items of every stage that has any, while its window has room. Outstanding is
// counted from rows (R19): items that were offered and not yet claimed or refused. Held and locked
// rows are skipped (R20); unhold and unlock ring again.
func (t *Tx) allDue(d registry.DueRequest) (wakes []registry.Wake, err error) {
	open, err := t.Numbers(`SELECT stage, COUNT(*) FROM lane WHERE active = 1 GROUP BY stage`)
	if err != nil || len(open) == 0 {
		return nil, err
	}
	capacity, err := t.Numbers(`SELECT stage, SUM(capacity) FROM worker_stage WHERE seen_at > $1 GROUP BY stage`,
		t.Now-workerAlive.Microseconds())
	if err != nil {
		return nil, err
	}
	for _, stage := range registry.Stages() {
		if open[string(stage)] == 0 {
			continue
		}
		var outstanding int
		err := t.Get(`SELECT COUNT(*) FROM work_item WHERE stage = $1 AND `+MessageSent, []any{stage, t.Now}, &outstanding)
		if err != nil {
			return nil, fmt.Errorf("stage %s: %w", stage, err)
		}
		// A stage without workers gets messages too: what waits there is what such a fleet is
		// started for.
		room := d.Window*max(int(capacity[string(stage)]), 1) - outstanding
		if room <= 0 {
			continue
		}
		ws, err := t.offer(stage, d, room)
		if err != nil {
			return nil, fmt.Errorf("stage %s: %w", stage, err)
		}
		wakes = append(wakes, ws...)
	}
	return wakes, nil
}

// offer shares the window's room out among the lanes, those whose turn is next first. Which items
// bear the messages decides nothing: every claim takes the item whose turn it is. So a collection
// whose ten thousand items fill the window keeps nobody waiting.
func (t *Tx) offer(stage registry.Stage, d registry.DueRequest, room int) ([]registry.Wake, error) {
	lanes, err := t.lanes(stage, mostLooked)
	if err != nil {
		return nil, err
	}
	room = min(room, sqldb.GroupWrites)
	var all []offered
	for room > 0 && len(lanes) > 0 {
		var more []string
		share := max(1, room/len(lanes))
		for _, collection := range lanes {
			found, err := t.offerLane(stage, collection, d, min(share, room))
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
			if room -= len(found); room == 0 {
				break
			}
			if len(found) == share {
				more = append(more, collection)
			}
		}
		lanes = more
	}
	slices.SortFunc(all, func(a, b offered) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), strings.Compare(a.ItemID, b.ItemID))
	})
	var wakes []registry.Wake
	for _, o := range all {
		wakes = append(wakes, o.Wake)
	}
	return wakes, nil
}

// offered is an item that a message is sent for.
type offered struct {
	registry.Wake
	rank    int64
	nudges  int
	waiting bool
}

// offerLane offers a lane's first items whose message is due, at most n.
func (t *Tx) offerLane(stage registry.Stage, collection string, d registry.DueRequest, n int) ([]offered, error) {
	found, err := t.firstDue(stage, collection, n)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(found, func(o offered) bool { return o.waiting }) {
		aside, err := t.setAside(stage, collection, false)
		if err != nil {
			return nil, err
		}
		t.wake = t.wake || aside > 0 // there may be more of them than were looked at
		if found, err = t.firstDue(stage, collection, n); err != nil {
			return nil, err
		}
		found = slices.DeleteFunc(found, func(o offered) bool { return o.waiting })
	}
	for _, o := range found {
		err := t.Do(`UPDATE work_item SET nudges = nudges + 1, nudge_at = $2 WHERE id = $1`, o.ItemID, t.Now+renudge(d, o.nudges))
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

func (t *Tx) firstDue(stage registry.Stage, collection string, n int) (out []offered, err error) {
	rows, err := t.Query(`SELECT i.id, i.action, i.rank, i.nudges, CASE WHEN `+waits+` THEN 1 ELSE 0 END FROM work_item i
		WHERE i.stage = $1 AND i.collection = $2 AND i.ready = 1 AND i.nudge_at <= $3 ORDER BY i.rank, i.id`+sqldb.Limit(sqldb.Doubled(n)),
		stage, collection, t.Now)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() && len(out) < n {
		o := offered{Wake: registry.Wake{Stage: stage}}
		if err := rows.Scan(&o.ItemID, &o.Action, &o.rank, &o.nudges, &o.waiting); err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, rows.Err()
}

// renudge is how long a message that was sent n times before is waited for, in microseconds.
func renudge(d registry.DueRequest, n int) int64 {
	wait := d.Renudge
	for range n {
		if wait = min(2*wait, d.RenudgeMax); wait == d.RenudgeMax {
			break
		}
	}
	return wait.Microseconds()
}

// Undo implements registry.Dispatching.
func (e *Engine) Undo(ctx context.Context, wakes []registry.Wake) error {
	err := e.Write(ctx, func(t *Tx) error {
		for _, w := range wakes {
			n, err := t.Exec(`UPDATE work_item SET nudges = 0 WHERE id = $1 AND stage = $2 AND status = 'pending'`, w.ItemID, w.Stage)
			if err != nil {
				return err
			}
			if n == 0 {
				continue // the message arrived after all
			}
			if err := t.refreshReady(w.ItemID); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("take back %d wake-ups: %w", len(wakes), err)
	}
	return nil
}

// Reoffer implements registry.Dispatching.
func (e *Engine) Reoffer(ctx context.Context) error {
	err := e.Write(ctx, func(t *Tx) error {
		for _, stage := range registry.Stages() {
			n, err := t.Exec(`UPDATE work_item SET nudge_at = $2, nudges = 0 WHERE stage = $1 AND status = 'pending' AND nudges > 0`,
				stage, t.Now)
			if err != nil {
				return err
			}
			t.wake = t.wake || n > 0
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("offer unanswered items again: %w", err)
	}
	return nil
}
