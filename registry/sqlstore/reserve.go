package sqlstore

import (
	"context"
	"fmt"

	"github.com/holdfast/holdfast/registry"
)

// Reserve implements registry.Working. What is staged already is counted by the volume itself, so a reservation counts
// for what is still to come: max(0, reserved - staged) (R24).
func (s *Store) Reserve(ctx context.Context, l registry.Lease, r registry.Reservation) error {
	var full *registry.NoSpaceError
	err := s.write(ctx, func(t *tx) error {
		full = nil
		if _, err := t.live(l); err != nil {
			return err
		}
		var reserved, staged int64
		err := t.get(`SELECT COALESCE(SUM(CASE WHEN r.bytes > i.done_bytes THEN r.bytes - i.done_bytes ELSE 0 END), 0)
			FROM reservation r JOIN work_item i ON i.id = r.item_id WHERE r.volume = $1 AND r.item_id <> $2`,
			[]any{r.Volume, l.ItemID}, &reserved)
		if err != nil {
			return fmt.Errorf("add up reservations: %w", err)
		}
		if err := t.get(`SELECT done_bytes FROM work_item WHERE id = $1`, []any{l.ItemID}, &staged); err != nil {
			return fmt.Errorf("look up what is staged: %w", err)
		}
		need := max(0, r.Bytes-staged)
		if r.Total > 0 && float64(r.Used)+float64(reserved)+float64(need) > r.Threshold*float64(r.Total) {
			full = &registry.NoSpaceError{
				Volume: r.Volume, Need: need, Used: r.Used, Total: r.Total, Reserved: reserved, ThresholdFactor: r.Threshold,
			}
			return nil
		}
		_, err = t.exec(`INSERT INTO reservation (item_id, volume, bytes) VALUES ($1, $2, $3)
			ON CONFLICT (item_id) DO UPDATE SET volume = $2, bytes = $3`, l.ItemID, r.Volume, r.Bytes)
		return err
	})
	if err == nil && full != nil {
		err = full
	}
	if err != nil {
		return fmt.Errorf("reserve for item %s: %w", l.ItemID, err)
	}
	return nil
}

// unreserve gives a completed item's room back and rings for those that wait for some, best first. Its staging is gone
// by now. They are few at a time, so that a long queue costs little; the rest look again when their snooze ends.
func (t *tx) unreserve(itemID string) error {
	freed, err := t.exec(`DELETE FROM reservation WHERE item_id = $1`, itemID)
	if err != nil {
		return fmt.Errorf("release reservation of %s: %w", itemID, err)
	}
	if freed == 0 {
		return nil
	}
	woken, err := t.exec(`UPDATE work_item SET run_at = $1, nudge_at = $1, nudges = 0 WHERE id IN (
		SELECT id FROM work_item WHERE stage = 'provision' AND status = 'pending' AND wait_reason = 'no-space'
		ORDER BY rank, id LIMIT 8)`, t.now)
	if err != nil {
		return fmt.Errorf("wake those who wait for room: %w", err)
	}
	t.wake = t.wake || woken > 0
	return nil
}
