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
		full, err = t.reserve(l, r)
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

func (t *Tx) reserve(l registry.Lease, r registry.Reservation) (*registry.NoSpaceError, error) {
	if r.Total == 0 {
		r.Bytes = 0 // a volume without a limit has room for all, so nothing is reserved
	}
	b, err := t.readRoom(l, r.Volume)
	if err == nil && r.Staged > 0 && r.Staged != b.staged { // its last renewal reported less
		err = t.Do(`UPDATE work_item SET done_bytes = $2 WHERE id = $1`, l.ItemID, r.Staged)
		if err == nil {
			err = t.staged(l.ItemID)
		}
		if err == nil {
			b, err = t.readRoom(l, r.Volume)
		}
	}
	if err != nil {
		return nil, err
	}
	reserved := b.promised - b.own
	need := max(0, r.Bytes-b.staged)
	// A request that gives room back is granted however full the volume is. But staged bytes may
	// have to be fetched again, so the whole reservation must fit, too.
	limit := r.Threshold * float64(r.Total)
	gives := need < b.own && float64(r.Bytes) <= max(float64(b.had), limit)
	full := !gives && r.Total > 0 && (float64(r.Used)+float64(reserved)+float64(need) > limit || float64(r.Bytes) > limit || reserved+need > mostPromised)
	var kept int64
	if !gives && need > b.own && r.Total > 0 && b.kept > limit*mostKept {
		kept, full = sqldb.Whole(b.kept), true
	}
	if full || !gives && need > b.own && b.stage == registry.Download {
		first, alone, err := t.holders(l.ItemID, r.Volume)
		if err != nil {
			return nil, err
		}
		if full || !first {
			return &registry.NoSpaceError{
				Volume: r.Volume, Need: need, Used: r.Used, Total: r.Total, Reserved: reserved, ThresholdFactor: r.Threshold,
				Yield: !first || alone, Kept: kept,
				Never: b.stage == registry.Download && r.Total > 0 && float64(r.Bytes) > limit,
			}, nil
		}
	}
	if b.elsewhere {
		if _, err := t.dropReservation(l.ItemID); err != nil {
			return nil, err
		}
	}
	err = t.Do(`INSERT INTO reservation (item_id, volume, bytes, remaining) VALUES ($1, $2, $3, $4)
		ON CONFLICT (item_id) DO UPDATE SET bytes = excluded.bytes, remaining = excluded.remaining`, l.ItemID, r.Volume, r.Bytes, need)
	if err != nil {
		return nil, fmt.Errorf("write reservation of %s: %w", l.ItemID, err)
	}
	given := t.Now
	if gives {
		given = 0
	}
	if err := t.promise(r.Volume, need-b.own, given); err != nil {
		return nil, err
	}
	if gives && r.Bytes == 0 {
		return nil, t.wakeForRoom()
	}
	return nil, nil //nolint:nilnil // it has the room
}

// booked is what is known of a volume's room, and of what an item has there.
type booked struct {
	stage     registry.Stage // the item's
	staged    int64          // bytes of the item that are staged
	own, had  int64          // of the item's reservation: bytes still to come, and all
	elsewhere bool           // the item has a reservation on another volume
	promised  int64          // bytes still to come of all reservations, its own among them
	// kept is what failed and cancelled items of its collection keep for a requeue. Only people free
	// that, so without a bound one collection's failures would fill the volume.
	kept float64
}

// mostKept is the share of a volume's limit that one collection's failed items may keep before its
// other items wait.
const mostKept = 0.5

// readRoom reads the room of a volume for the item of a lease. It returns ErrClaimLost unless the
// lease's attempt is the live one.
func (t *Tx) readRoom(l registry.Lease, volume string) (b booked, err error) {
	err = t.live(`i.stage, i.done_bytes,
		COALESCE((SELECT remaining FROM reservation WHERE item_id = i.id AND volume = $4), 0),
		COALESCE((SELECT bytes FROM reservation WHERE item_id = i.id AND volume = $4), 0),
		EXISTS (SELECT 1 FROM reservation WHERE item_id = i.id AND volume <> $4),
		COALESCE((SELECT bytes FROM promised WHERE volume = $4), 0),
		COALESCE((SELECT bytes FROM kept_room WHERE volume = $4 AND collection = i.collection), 0)`, l, volume).
		Scan(&b.stage, &b.staged, &b.own, &b.had, &b.elsewhere, &b.promised, &b.kept)
	return b, leaseError(l, err)
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
// thousands of reservations. given is when the room was given to an item, or 0 if none was.
func (t *Tx) promise(volume string, more, given int64) error {
	err := t.Do(`INSERT INTO promised (volume, bytes, given_at) VALUES ($1, $2, $3) ON CONFLICT (volume) DO UPDATE
		SET bytes = promised.bytes + excluded.bytes, given_at = CASE WHEN excluded.given_at > 0 THEN excluded.given_at ELSE promised.given_at END`,
		volume, more, given)
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
	return t.promise(volume, is-was, 0)
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
	return true, t.promise(volume, -remaining, 0)
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
