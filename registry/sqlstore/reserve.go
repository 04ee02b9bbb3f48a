package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
)

// roomWoken is how many of those who wait for room are woken when some comes free.
const roomWoken = 8

// Reserve implements registry.Working. What is staged already is counted by the volume itself, so a reservation counts
// for what is still to come: max(0, reserved - staged) (R24).
func (s *Store) Reserve(ctx context.Context, l registry.Lease, r registry.Reservation) error {
	var full *registry.NoSpaceError
	err := s.write(ctx, func(t *tx) (err error) {
		it, err := t.live(l)
		if err != nil {
			return err
		}
		full, err = t.reserve(it, r)
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

func (t *tx) reserve(it registry.WorkItem, r registry.Reservation) (*registry.NoSpaceError, error) {
	var reserved, own int64 // by others, and by the item itself
	err := t.get(`SELECT COALESCE((SELECT bytes FROM promised WHERE volume = $1), 0),
		COALESCE((SELECT remaining FROM reservation WHERE item_id = $2 AND volume = $1), 0)`, []any{r.Volume, it.ID}, &reserved, &own)
	if err != nil {
		return nil, fmt.Errorf("look up reservations: %w", err)
	}
	reserved -= own
	need := max(0, r.Bytes-it.DoneBytes)
	// What gives room back is never refused, however full the volume is.
	gives := need < own
	if !gives && r.Total > 0 && float64(r.Used)+float64(reserved)+float64(need) > r.Threshold*float64(r.Total) {
		return &registry.NoSpaceError{
			Volume: r.Volume, Need: need, Used: r.Used, Total: r.Total, Reserved: reserved, ThresholdFactor: r.Threshold,
		}, nil
	}
	if _, err := t.dropReservation(it.ID); err != nil {
		return nil, err
	}
	err = t.do(`INSERT INTO reservation (item_id, volume, bytes, remaining) VALUES ($1, $2, $3, $4)`,
		it.ID, r.Volume, r.Bytes, need)
	if err != nil {
		return nil, err
	}
	return nil, t.promise(r.Volume, need)
}

// promise keeps the sum of what is still to come to a volume, so that nobody has to add up thousands of reservations.
func (t *tx) promise(volume string, more int64) error {
	err := t.do(`INSERT INTO promised (volume, bytes) VALUES ($1, $2)
		ON CONFLICT (volume) DO UPDATE SET bytes = promised.bytes + $2`, volume, more)
	if err != nil {
		return fmt.Errorf("add up reservations of %s: %w", volume, err)
	}
	return nil
}

// staged brings an item's reservation up to date with what is staged of it. It is to be called after each change of
// done_bytes.
func (t *tx) staged(itemID string) error {
	var volume string
	var was, is int64
	err := t.get(`SELECT r.volume, r.remaining, CASE WHEN r.bytes > i.done_bytes THEN r.bytes - i.done_bytes ELSE 0 END
		FROM reservation r JOIN work_item i ON i.id = r.item_id WHERE r.item_id = $1`, []any{itemID}, &volume, &was, &is)
	if errors.Is(err, sql.ErrNoRows) || err == nil && is == was {
		return nil
	} else if err != nil {
		return fmt.Errorf("look up reservation of %s: %w", itemID, err)
	}
	if err := t.do(`UPDATE reservation SET remaining = $2 WHERE item_id = $1`, itemID, is); err != nil {
		return fmt.Errorf("update reservation of %s: %w", itemID, err)
	}
	return t.promise(volume, is-was)
}

func (t *tx) dropReservation(itemID string) (had bool, err error) {
	var volume string
	var remaining int64
	err = t.get(`DELETE FROM reservation WHERE item_id = $1 RETURNING volume, remaining`, []any{itemID}, &volume, &remaining)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("release reservation of %s: %w", itemID, err)
	}
	return true, t.promise(volume, -remaining)
}

// unreserve gives a completed item's room back and rings for those that wait for some, best first. Its staging is gone
// by now. They are few at a time, so that a long queue costs little; the rest look again when their snooze ends.
func (t *tx) unreserve(itemID string) error {
	freed, err := t.dropReservation(itemID)
	if err != nil || !freed {
		return err
	}
	woken, err := t.strings(`UPDATE work_item SET run_at = $1 WHERE id IN (
		SELECT id FROM work_item WHERE stage IN ('provision', 'restore') AND status = 'pending' AND wait_reason = 'no-space' ORDER BY rank, id`+limit(roomWoken)+`)
		RETURNING id`, t.now)
	if err != nil {
		return fmt.Errorf("wake those who wait for room: %w", err)
	}
	for _, id := range woken {
		if err := t.place(id); err != nil {
			return err
		}
	}
	return nil
}
