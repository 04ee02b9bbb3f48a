package work

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// Lock takes all keys for the item, or none. If another item has a key or is earlier in its line,
// Lock puts the item into the line of every key, by time of submission. A holder that settles wakes
// the first in line.
func (t *Tx) Lock(it registry.WorkItem, keys []string) (*registry.LockedError, error) {
	for _, key := range keys {
		var holder string
		// A holder keeps its lock, also after a lost attempt; the line counts only for free locks.
		err := t.Get(`SELECT COALESCE((SELECT item_id FROM lock WHERE key = $1), (SELECT item_id FROM lock_wait
			WHERE key = $1 AND (submitted_at, item_id) < ($3, $2) ORDER BY submitted_at, item_id LIMIT 1), '')`,
			[]any{key, it.ID, sqldb.Micros(it.CreatedAt)}, &holder)
		if err != nil {
			return nil, fmt.Errorf("read lock %s: %w", key, err)
		}
		if holder != "" && holder != it.ID {
			return &registry.LockedError{Key: key, ItemID: holder}, t.queueForLocks(it, keys)
		}
	}
	for _, key := range keys {
		if err := t.Do(`INSERT INTO lock (key, item_id) VALUES ($1, $2) ON CONFLICT DO NOTHING`, key, it.ID); err != nil {
			return nil, fmt.Errorf("take lock %s: %w", key, err)
		}
	}
	waitedFor, err := t.Strings(`DELETE FROM lock_wait WHERE item_id = $1 RETURNING key`, it.ID)
	if err != nil {
		return nil, fmt.Errorf("leave the lines for locks: %w", err)
	}
	return nil, t.nextInLine(slices.DeleteFunc(waitedFor, func(key string) bool { return slices.Contains(keys, key) }))
}

func (t *Tx) queueForLocks(it registry.WorkItem, keys []string) error {
	// Give back the locks that it has: all or none.
	had, err := t.Strings(`DELETE FROM lock WHERE item_id = $1 RETURNING key`, it.ID)
	if err != nil {
		return fmt.Errorf("give locks back: %w", err)
	}
	if err := t.StandInLine(it.ID, sqldb.Micros(it.CreatedAt), keys); err != nil {
		return err
	}
	return t.nextInLine(had)
}

// Submitted returns when an item was submitted, which decides its place in line. A job has its
// batch's time, however late the batch was expanded.
func (t *Tx) Submitted(it registry.WorkItem) (time.Time, error) {
	if it.ParentID == "" {
		return it.CreatedAt, nil
	}
	var at int64
	err := t.Get(`SELECT created_at FROM work_item WHERE id = $1`, []any{it.ParentID}, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return it.CreatedAt, nil
	} else if err != nil {
		return it.CreatedAt, fmt.Errorf("read when batch %s was submitted: %w", it.ParentID, err)
	}
	return sqldb.FromMicros(at), nil
}

// StandInLine puts an item into the lines for locks, by its time of submission in microseconds.
func (t *Tx) StandInLine(itemID string, submitted int64, keys []string) error {
	for _, key := range keys {
		err := t.Do(`INSERT INTO lock_wait (key, item_id, submitted_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
			key, itemID, submitted)
		if err != nil {
			return fmt.Errorf("wait for lock %s: %w", key, err)
		}
	}
	return nil
}

// LeaveLine takes items out of the line for one lock. It wakes them and the first of those that
// remain.
func (t *Tx) LeaveLine(key string, ids []string) error {
	if err := t.Do(`DELETE FROM lock_wait WHERE key = $2 AND `+t.Among("item_id"), t.List(ids), key); err != nil {
		return fmt.Errorf("leave the line for lock %s: %w", key, err)
	}
	for _, id := range ids {
		if err := t.wakeLocked(id); err != nil {
			return err
		}
	}
	return t.nextInLine([]string{key})
}

// leaveLine takes a batch out of all lines, where its jobs now stand, and wakes the first in each.
func (t *Tx) leaveLine(batch string) error {
	keys, err := t.Strings(`DELETE FROM lock_wait WHERE item_id = $1 RETURNING key`, batch)
	if err != nil {
		return fmt.Errorf("leave the lines for locks: %w", err)
	}
	return t.nextInLine(keys)
}

// unlock frees the locks that a settled item held or waited for, and wakes the first in line. An
// item that failed after it announced a version, and before it recorded it, keeps its locks: only a
// requeue that rolls the version forward may continue on the object (R1).
func (t *Tx) unlock(itemID string) error {
	var open bool
	err := t.Get(`SELECT EXISTS (SELECT 1 FROM work_item WHERE id = $1 AND action = 'ingest' AND commitment = 'announced')`, []any{itemID}, &open)
	if err != nil || open {
		return err
	}
	keys, err := t.Strings(`DELETE FROM lock WHERE item_id = $1 RETURNING key`, itemID)
	if err != nil {
		return fmt.Errorf("unlock %s: %w", itemID, err)
	}
	waitedFor, err := t.Strings(`DELETE FROM lock_wait WHERE item_id = $1 RETURNING key`, itemID)
	if err != nil {
		return fmt.Errorf("unlock %s: %w", itemID, err)
	}
	return t.nextInLine(append(keys, waitedFor...))
}

// nextInLine wakes the first in the lines for some locks, after an item left them. The others stay
// behind it and are woken in their turn.
func (t *Tx) nextInLine(keys []string) error {
	for _, key := range keys {
		var first string
		err := t.Get(`SELECT item_id FROM lock_wait WHERE key = $1 ORDER BY submitted_at, item_id LIMIT 1`, []any{key}, &first)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		} else if err != nil {
			return fmt.Errorf("find the first in line for lock %s: %w", key, err)
		}
		if err := t.wakeLocked(first); err != nil {
			return err
		}
	}
	return nil
}

// wakeLocked lets an item that waits for a lock run now, so that it tries again.
func (t *Tx) wakeLocked(id string) error {
	n, err := t.Exec(`UPDATE work_item SET run_at = $2 WHERE id = $1 AND status = 'pending' AND stage IN `+lockedStages, id, t.Now)
	if err != nil {
		return fmt.Errorf("wake item %s, which waits for a lock: %w", id, err)
	}
	if n == 0 {
		return nil
	}
	return t.refreshReady(id)
}
