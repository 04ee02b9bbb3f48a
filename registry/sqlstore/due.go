package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// workerAlive is how long a worker counts after its last renewal.
const workerAlive = time.Minute

// Due implements registry.Housekeeping.
func (s *Store) Due(ctx context.Context, d registry.DueRequest) ([]registry.Wake, error) {
	found, err := s.anyDue(ctx)
	if err != nil || !found {
		return nil, err // the usual answer costs no write
	}
	var wakes []registry.Wake
	err = s.write(ctx, func(t *tx) error {
		wakes = nil
		for _, stage := range registry.Stages() {
			ws, err := t.due(stage, d)
			if err != nil {
				return fmt.Errorf("stage %s: %w", stage, err)
			}
			wakes = append(wakes, ws...)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("offer due items: %w", err)
	}
	return wakes, nil
}

func (s *Store) anyDue(ctx context.Context) (found bool, err error) {
	err = s.read.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM work_item WHERE nudge_at <= $1)`,
		micros(s.now())).Scan(&found)
	if err != nil {
		return false, fmt.Errorf("look for due items: %w", err)
	}
	return found, nil
}

// due offers a stage's items by rank while its window has room. Outstanding is counted from rows (R19): items that
// were offered and not yet claimed or refused. Held and locked rows are skipped (R20); unhold and unlock ring again.
func (t *tx) due(stage registry.Stage, d registry.DueRequest) ([]registry.Wake, error) {
	var capacity, outstanding int
	err := t.get(`SELECT COALESCE(SUM(capacity), 0) FROM worker_stage WHERE stage = $1 AND seen_at > $2`,
		[]any{stage, t.now - workerAlive.Microseconds()}, &capacity)
	if err != nil {
		return nil, err
	}
	err = t.get(`SELECT COUNT(*) FROM work_item WHERE stage = $1 AND status = 'pending' AND nudges > 0 AND nudge_at > $2`,
		[]any{stage, t.now}, &outstanding)
	if err != nil {
		return nil, err
	}
	// A stage without workers gets messages too: what waits there is what such a fleet is started for.
	room := d.Window*max(capacity, 1) - outstanding
	if room <= 0 {
		return nil, nil
	}
	return t.offer(stage, d, room)
}

func (t *tx) offer(stage registry.Stage, d registry.DueRequest, room int) (wakes []registry.Wake, err error) {
	rows, err := t.query(`UPDATE work_item SET nudges = nudges + 1,
			nudge_at = CAST($2 AS BIGINT) + CASE WHEN nudges >= 10 OR CAST($3 AS BIGINT) << CAST(nudges AS INTEGER) > CAST($4 AS BIGINT)
				THEN CAST($4 AS BIGINT) ELSE CAST($3 AS BIGINT) << CAST(nudges AS INTEGER) END
		WHERE id IN (SELECT i.id FROM work_item i WHERE i.stage = $1 AND i.status = 'pending' AND i.nudge_at <= $2
			AND i.run_at <= $2 AND NOT `+blocked+` AND NOT `+heldBy+` AND NOT `+lockedOut+`
			ORDER BY i.rank, i.id LIMIT $5)
		RETURNING id, action, rank`, stage, t.now, d.Renudge.Microseconds(), d.RenudgeMax.Microseconds(), min(room, groupWrites))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	type ranked struct {
		registry.Wake
		rank int64
	}
	var found []ranked // RETURNING has no order
	for rows.Next() {
		w := ranked{Wake: registry.Wake{Stage: stage}}
		if err := rows.Scan(&w.ItemID, &w.Action, &w.rank); err != nil {
			return nil, err
		}
		found = append(found, w)
	}
	slices.SortFunc(found, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), strings.Compare(a.ItemID, b.ItemID))
	})
	for _, w := range found {
		wakes = append(wakes, w.Wake)
	}
	return wakes, rows.Err()
}

// Undo implements registry.Housekeeping.
func (s *Store) Undo(ctx context.Context, wakes []registry.Wake) error {
	err := s.write(ctx, func(t *tx) error {
		for _, w := range wakes {
			_, err := t.exec(`UPDATE work_item SET nudge_at = $3, nudges = 0 WHERE id = $1 AND stage = $2 AND status = 'pending'`,
				w.ItemID, w.Stage, t.now)
			if err != nil {
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

// Reoffer implements registry.Housekeeping.
func (s *Store) Reoffer(ctx context.Context) error {
	err := s.write(ctx, func(t *tx) error {
		for _, stage := range registry.Stages() {
			n, err := t.exec(`UPDATE work_item SET nudge_at = $2, nudges = 0 WHERE stage = $1 AND status = 'pending' AND nudges > 0`,
				stage, t.now)
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
