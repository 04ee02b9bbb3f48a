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
