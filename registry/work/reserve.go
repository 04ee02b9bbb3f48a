package work

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/bounds"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// roomWoken is how many items that wait for room are woken when some becomes free.
const roomWoken = 8

// Reserve implements registry.Working. The volume's own usage already includes staged bytes. So a
// reservation counts only what is still to come: max(0, reserved - staged) (R24).
func (e *Engine) Reserve(ctx context.Context, l registry.Lease, r registry.Reservation) error {
	if err := bounds.Check(l, r); err != nil {
		return err
	}
	var full *registry.NoSpaceError
	err := e.Write(ctx, func(t *Tx) (err error) {
		it, err := t.Live(l)
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

// mostPromised bounds the sum of a volume's reservations, so that it cannot overflow.
const mostPromised = 1 << 62

func (t *Tx) reserve(it registry.WorkItem, r registry.Reservation) (*registry.NoSpaceError, error) {
	if r.Total == 0 {
		r.Bytes = 0 // a volume without a limit has room for all, so nothing is reserved
	}
	if r.Staged > 0 && r.Staged != it.DoneBytes { // its last renewal reported less
		it.DoneBytes = r.Staged
		err := t.Do(`UPDATE work_item SET done_bytes = $2 WHERE id = $1`, it.ID, it.DoneBytes)
		if err == nil {
			err = t.staged(it.ID)
		}
		if err != nil {
			return nil, fmt.Errorf("record the staged bytes of item %s: %w", it.ID, err)
		}
	}
	var reserved, own, had int64 // by others; this item's outstanding bytes; all of this item's bytes
	err := t.Get(`SELECT COALESCE((SELECT bytes FROM promised WHERE volume = $1), 0),
		COALESCE((SELECT remaining FROM reservation WHERE item_id = $2 AND volume = $1), 0),
		COALESCE((SELECT bytes FROM reservation WHERE item_id = $2 AND volume = $1), 0)`, []any{r.Volume, it.ID}, &reserved, &own, &had)
	if err != nil {
		return nil, fmt.Errorf("look up reservations: %w", err)
	}
	reserved -= own
	need := max(0, r.Bytes-it.DoneBytes)
	// A request that gives room back is granted however full the volume is. But staged bytes may
	// have to be fetched again, so the whole reservation must fit, too.
	limit := r.Threshold * float64(r.Total)
	gives := need < own && float64(r.Bytes) <= max(float64(had), limit)
	full := !gives && r.Total > 0 && (float64(r.Used)+float64(reserved)+float64(need) > limit || float64(r.Bytes) > limit || reserved+need > mostPromised)
	var kept int64
	if !gives && need > own && r.Total > 0 {
		if kept, err = t.keptBy(it.Collection, r.Volume); err != nil {
			return nil, err
		}
		if float64(kept) <= limit*mostKept {
			kept = 0
		}
		full = full || kept > 0
	}
	if full || !gives && need > own && it.Stage == registry.Download {
		first, alone, err := t.holders(it.ID, r.Volume)
		if err != nil {
			return nil, err
		}
		if full || !first {
			return &registry.NoSpaceError{
				Volume: r.Volume, Need: need, Used: r.Used, Total: r.Total, Reserved: reserved, ThresholdFactor: r.Threshold,
				Yield: !first || alone, Kept: kept,
				Never: it.Stage == registry.Download && r.Total > 0 && float64(r.Bytes) > limit,
			}, nil
		}
	}
	if _, err := t.dropReservation(it.ID); err != nil {
		return nil, err
	}
	err = t.Do(`INSERT INTO reservation (item_id, volume, bytes, remaining) VALUES ($1, $2, $3, $4)`,
		it.ID, r.Volume, r.Bytes, need)
	if err != nil {
		return nil, err
	}
	if err := t.promise(r.Volume, need); err != nil {
		return nil, err
	}
	if gives && r.Bytes == 0 {
		return nil, t.wakeForRoom()
	}
	if !gives {
		err = t.Do(`UPDATE promised SET given_at = $2 WHERE volume = $1`, r.Volume, t.Now)
	}
	return nil, err
}

// mostKept is the share of a volume's limit that one collection's failed items may keep before its
// other items wait.
const mostKept = 0.5

// keptBy returns the bytes that a collection's failed and cancelled items keep on a volume for a
// requeue. Only people free them, so without a bound one collection's failures would fill the
// volume.
func (t *Tx) keptBy(collection, volume string) (bytes int64, err error) {
	var sum float64
	err = t.Get(`SELECT COALESCE(`+sqldb.Sum("r.bytes")+`, 0) FROM reservation r WHERE r.volume = $1
		AND EXISTS (SELECT 1 FROM work_item i WHERE i.id = r.item_id AND i.collection = $2 AND i.status IN ('failed', 'cancelled'))`, []any{volume, collection}, &sum)
	if err != nil {
		return 0, fmt.Errorf("add up what failed items of %s keep on %s: %w", collection, volume, err)
	}
	return sqldb.Whole(sum), nil
}

// roomSoon is how soon an item that waits for room must look again to have precedence. An item that
// waits longer does not keep others from growing.
const roomSoon = 10 * time.Minute

// holders looks at the other active items that hold room on a volume. first reports that no older
// one waits for more room; alone, that there are no others.
func (t *Tx) holders(itemID, volume string) (first, alone bool, err error) {
	const others = `EXISTS (SELECT 1 FROM reservation r JOIN work_item i ON i.id = r.item_id
		WHERE r.volume = $1 AND r.bytes > 0 AND i.id <> $2 AND i.status IN ('running', 'pending')`
	err = t.Get(`SELECT NOT `+others+` AND i.id < $2 AND i.status = 'pending' AND i.wait_reason = 'no-space' AND i.run_at <= $3), NOT `+others+`)`,
		[]any{volume, itemID, t.Now + roomSoon.Microseconds()}, &first, &alone)
	if err != nil {
		return first, alone, fmt.Errorf("look for items that hold room on %s: %w", volume, err)
	}
	return first, alone, nil
}

// roomWait adds the wait that just ended to the item's earlier waits for room in this stage. It
// returns their sum in microseconds. For an item that holds no room yet, the sum starts anew
// whenever another item gets room: a long queue that moves is no reason to fail.
func (t *Tx) roomWait(it registry.WorkItem) (waited int64, err error) {
	err = t.Get(`SELECT CASE WHEN i.wait_reason = 'no-space' THEN i.room_waited + $2 - COALESCE(a.finished_at, $2) ELSE 0 END
		FROM work_item i JOIN attempt a ON a.item_id = i.id AND a.n = i.attempt WHERE i.id = $1`, []any{it.ID, t.Now}, &waited)
	if err == nil && waited > 0 && (it.Stage == registry.Provision || it.Stage == registry.Restore) {
		var given int64
		if err = t.Get(`SELECT COALESCE(MAX(given_at), 0) FROM promised`, nil, &given); given > 0 {
			waited = min(waited, t.Now-given)
		}
	}
	if err == nil && waited > 0 {
		err = t.Do(`UPDATE work_item SET room_waited = $2 WHERE id = $1`, it.ID, waited)
	}
	if err != nil {
		return 0, fmt.Errorf("add up how long item %s waits for room: %w", it.ID, err)
	}
	return max(waited, 0), nil
}

// promise adds to the sum of bytes still to come to a volume, so that no statement has to add up
// thousands of reservations.
func (t *Tx) promise(volume string, more int64) error {
	err := t.Do(`INSERT INTO promised (volume, bytes) VALUES ($1, $2)
		ON CONFLICT (volume) DO UPDATE SET bytes = promised.bytes + $2`, volume, more)
	if err != nil {
		return fmt.Errorf("add up reservations of %s: %w", volume, err)
	}
	return nil
}

// staged updates an item's reservation by what is staged of it. Call it after each change of
// done_bytes.
func (t *Tx) staged(itemID string) error {
	var volume string
	var was, is int64
	err := t.Get(`SELECT r.volume, r.remaining, CASE WHEN r.bytes > i.done_bytes THEN r.bytes - i.done_bytes ELSE 0 END
		FROM reservation r JOIN work_item i ON i.id = r.item_id WHERE r.item_id = $1`, []any{itemID}, &volume, &was, &is)
	if errors.Is(err, sql.ErrNoRows) || err == nil && is == was {
		return nil
	} else if err != nil {
		return fmt.Errorf("look up reservation of %s: %w", itemID, err)
	}
	if is > was {
		var promised int64
		if err := t.Get(`SELECT bytes FROM promised WHERE volume = $1`, []any{volume}, &promised); err != nil {
			return fmt.Errorf("look up the reserved bytes of %s: %w", volume, err)
		}
		is = min(is, was+max(0, mostPromised-promised))
	}
	if err := t.Do(`UPDATE reservation SET remaining = $2 WHERE item_id = $1`, itemID, is); err != nil {
		return fmt.Errorf("update reservation of %s: %w", itemID, err)
	}
	return t.promise(volume, is-was)
}

func (t *Tx) dropReservation(itemID string) (had bool, err error) {
	var volume string
	var remaining int64
	err = t.Get(`DELETE FROM reservation WHERE item_id = $1 RETURNING volume, remaining`, []any{itemID}, &volume, &remaining)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("release reservation of %s: %w", itemID, err)
	}
	return true, t.promise(volume, -remaining)
}

// Unreserve gives back the room of a completed item, whose staging is gone, and wakes items that
// wait for room.
func (t *Tx) Unreserve(itemID string) error {
	freed, err := t.dropReservation(itemID)
	if err != nil || !freed {
		return err
	}
	return t.wakeForRoom()
}

// wakeForRoom wakes a few items that wait for room, best rank first, so that a long queue costs
// little. The others look again when their snooze ends.
func (t *Tx) wakeForRoom() error {
	woken, err := t.Strings(`UPDATE work_item SET run_at = $1 WHERE id IN (
		SELECT id FROM work_item WHERE stage IN ('provision', 'download', 'process', 'restore') AND status = 'pending' AND wait_reason = 'no-space' ORDER BY rank, id`+sqldb.Limit(roomWoken)+`)
		RETURNING id`, t.Now)
	if err != nil {
		return fmt.Errorf("wake items that wait for room: %w", err)
	}
	for _, id := range woken {
		if err := t.refreshReady(id); err != nil {
			return err
		}
	}
	return nil
}
