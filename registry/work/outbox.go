package work

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast/holdfast/metrics"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// workerAlive is how long a worker counts as alive after its last renewal.
const workerAlive = time.Minute

// Due implements registry.Dispatching.
func (e *Engine) Due(ctx context.Context, d registry.DueRequest) ([]registry.Wake, error) {
	defer metrics.Scan.Since(time.Now(), "due")
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

// MessageSent is an SQL condition: at the time $1 a message for the row is on its way.
const MessageSent = `status = 'pending' AND nudges > 0 AND nudge_at > $1`

func (e *Engine) anyDue(ctx context.Context) (found bool, err error) {
	err = e.db.Read.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM work_item WHERE nudge_at <= $1) OR EXISTS (SELECT 1 FROM putback)`,
		sqldb.Micros(e.db.Now())).Scan(&found)
	if err != nil {
		return false, fmt.Errorf("look for due items: %w", err)
	}
	return found, nil
}

// messageStages are the stages whose workers get messages.
var messageStages = sqldb.Names(registry.Stages())

// allDue offers items of every stage while the stage's window has room. It counts the messages on
// their way from rows (R19): items that were offered and neither claimed nor refused. It skips held
// and locked rows (R20); releasing the hold or lock makes them due again.
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
	outstanding, err := t.Numbers(`SELECT stage, COUNT(*) FROM work_item WHERE stage IN `+messageStages+` AND `+MessageSent+` GROUP BY stage`, t.Now)
	if err != nil {
		return nil, err
	}
	for _, stage := range registry.Stages() {
		if open[string(stage)] == 0 {
			continue
		}
		// A stage without workers gets messages too: autoscaling starts workers because messages
		// wait.
		room := d.Window*max(int(capacity[string(stage)]), 1) - int(outstanding[string(stage)])
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

// offer divides the window's room among the lanes, longest unserved lane first. The choice does not
// decide what is worked on, because every claim takes the item whose turn it is. It only keeps one
// collection's many items from filling the window.
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

// offered is an item for which a message will be sent.
type offered struct {
	registry.Wake
	rank    int64
	nudges  int
	waiting bool
}

// offerLane offers at most n of a lane's first items that are due.
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
		t.wake = t.wake || aside > 0 // there may be more of them than were read
		if found, err = t.firstDue(stage, collection, n); err != nil {
			return nil, err
		}
		found = slices.DeleteFunc(found, func(o offered) bool { return o.waiting })
	}
	again := sqldb.IDsByKey[int64]{} // by the time until the next message
	for _, o := range found {
		again.Add(renudge(d, o.nudges), o.ItemID)
	}
	for wait, ids := range again.All() {
		err := t.Do(`UPDATE work_item SET nudges = nudges + 1, nudge_at = $2 WHERE `+t.Among("id"), t.List(ids), t.Now+wait)
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

func (t *Tx) firstDue(stage registry.Stage, collection string, n int) (out []offered, err error) {
	rows, err := t.Query(`SELECT i.id, i.action, i.rank, i.nudges, CASE WHEN `+waits+` THEN 1 ELSE 0 END FROM work_item i
		WHERE i.stage = $1 AND i.collection = $2 AND i.ready = 1 AND i.nudge_at <= $3 ORDER BY i.rank, i.id`+sqldb.Limit(sqldb.PowerOfTwo(n)),
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

// renudge returns the time in microseconds until a message is sent again that was sent n times
// before. It doubles each time, up to a maximum.
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
				continue // the message was delivered after all
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
