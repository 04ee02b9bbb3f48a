package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// Backoff of an item whose attempts are lost again and again (I11).
const (
	lostBackoff    = time.Minute
	lostBackoffCap = time.Hour
)

// Sweep implements registry.Housekeeping.
func (s *Store) Sweep(ctx context.Context, lease time.Duration) ([]registry.Lease, error) {
	var lost []registry.Lease
	err := s.write(ctx, func(t *tx) error {
		lost = nil
		quiet, err := t.pulse("sweep", lease.Microseconds())
		if err != nil || quiet {
			return err
		}
		lost, err = t.takeAway(`(lease_until < $1 OR (stuck_after > 0 AND progress_at + stuck_after < $1))`, t.now)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("sweep leases: %w", err)
	}
	return lost, nil
}

// Reclaim takes away every live attempt at once. Only a process that knows that no worker is left may call it: the
// embedded default at start, when it has just taken the lock on its folder.
func (s *Store) Reclaim(ctx context.Context) ([]registry.Lease, error) {
	var lost []registry.Lease
	err := s.write(ctx, func(t *tx) (err error) {
		lost, err = t.takeAway(`$1 = $1`, t.now)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reclaim leases: %w", err)
	}
	return lost, nil
}

// pulse notes that the sweep ran, and tells whether it must be quiet: after a gap of over half a lease workers could
// not renew either, so they get one lease first (R14).
func (t *tx) pulse(name string, lease int64) (quiet bool, err error) {
	var at, quietUntil int64
	err = t.get(`SELECT at, quiet_until FROM pulse WHERE name = $1`, []any{name}, &at, &quietUntil)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return false, fmt.Errorf("read pulse: %w", err)
	}
	if err == nil && t.now-at > lease/2 {
		quietUntil = t.now + lease
	}
	_, err = t.exec(`INSERT INTO pulse (name, at, quiet_until) VALUES ($1, $2, $3)
		ON CONFLICT (name) DO UPDATE SET at = $2, quiet_until = $3`, name, t.now, quietUntil)
	if err != nil {
		return false, fmt.Errorf("write pulse: %w", err)
	}
	return t.now < quietUntil, nil
}

type lapsed struct {
	lease    registry.Lease
	worker   string
	max      int
	advanced bool
	losses   int
	started  int64
}

// takeAway closes the live attempts that match a condition on table attempt as lost.
func (t *tx) takeAway(condition string, args ...any) ([]registry.Lease, error) {
	found, err := t.lapsed(`SELECT a.item_id, a.n, a.worker, a.max_attempts, a.advanced = 1, i.losses, a.started_at
		FROM attempt a JOIN work_item i ON i.id = a.item_id
		WHERE a.finished_at IS NULL AND `+condition+` ORDER BY a.item_id LIMIT 500`, args...)
	if err != nil {
		return nil, fmt.Errorf("find lapsed leases: %w", err)
	}
	leases := make([]registry.Lease, 0, len(found))
	for _, l := range found {
		if err := t.lose(l); err != nil {
			return nil, fmt.Errorf("take attempt %d of item %s away: %w", l.lease.N, l.lease.ItemID, err)
		}
		leases = append(leases, l.lease)
	}
	return leases, nil
}

func (t *tx) lapsed(query string, args ...any) (out []lapsed, err error) {
	rows, err := t.query(query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var l lapsed
		if err := rows.Scan(&l.lease.ItemID, &l.lease.N, &l.worker, &l.max, &l.advanced, &l.losses, &l.started); err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	return out, rows.Err()
}

// lose ends one attempt without its worker. A loss after progress is not charged (R13): it is the machine's.
func (t *tx) lose(l lapsed) error {
	it, err := t.item(l.lease.ItemID)
	if err != nil {
		return err
	}
	c := change{
		act: registry.ActLose, stage: it.Stage, status: registry.Pending, tries: it.Tries, losses: l.losses + 1,
		n: l.lease.N, actor: actorRegistry,
		note: fmt.Sprintf("worker %s was lost; it had held the item since %s", l.worker, fromMicros(l.started).Format(time.RFC3339)),
	}
	if !l.advanced {
		c.tries++
		c.class = registry.SystemFault
		c.delay = lostDelay(c.tries).Microseconds()
	}
	if c.tries >= l.max {
		c.status = registry.Failed
		c.note = fmt.Sprintf("%d attempts used up: %s", c.tries, c.note)
	}
	if err := t.move(it, c); err != nil {
		return err
	}
	v, err := json.Marshal(registry.Verdict{Stage: c.stage, Status: c.status, Tries: c.tries})
	if err != nil {
		return fmt.Errorf("encode verdict: %w", err)
	}
	_, err = t.exec(`UPDATE attempt SET finished_at = $3, outcome = 'lost', error = $4, response = $5
		WHERE item_id = $1 AND n = $2`, l.lease.ItemID, l.lease.N, t.now, c.note, string(v))
	return err
}

// lostDelay lets an item go on at once after its first charged loss (I4) and backs off after more.
func lostDelay(tries int) time.Duration {
	if tries <= 1 {
		return 0
	}
	d := lostBackoff
	for range tries - 2 {
		d = min(2*d, lostBackoffCap)
	}
	return d
}
