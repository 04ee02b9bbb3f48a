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

// Lock takes all keys for the item or none. On a refusal the item stands in every key's queue by
// its time of submission, and is woken when a holder settles.
func (t *Tx) Lock(it registry.WorkItem, keys []string) (*registry.LockedError, error) {
	for _, key := range keys {
		var holder string
		// Whoever has the lock keeps it, also over a lost attempt: those who wait are looked at
		// only for a free one.
		err := t.Get(`SELECT COALESCE((SELECT item_id FROM lock WHERE key = $1), (SELECT item_id FROM lock_wait
			WHERE key = $1 AND (submitted_at, item_id) < ($3, $2) ORDER BY submitted_at, item_id LIMIT 1), '')`,
			[]any{key, it.ID, sqldb.Micros(it.CreatedAt)}, &holder)
		if err != nil {
			return nil, fmt.Errorf("look at lock %s: %w", key, err)
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
		return nil, fmt.Errorf("leave the queues for locks: %w", err)
	}
	return nil, t.nextInLine(slices.DeleteFunc(waitedFor, func(key string) bool { return slices.Contains(keys, key) }))
}

func (t *Tx) queueForLocks(it registry.WorkItem, keys []string) error {
	// What was taken on the way goes back: all or none.
	had, err := t.Strings(`DELETE FROM lock WHERE item_id = $1 RETURNING key`, it.ID)
	if err != nil {
		return fmt.Errorf("give locks back: %w", err)
	}
	if err := t.StandInLine(it.ID, sqldb.Micros(it.CreatedAt), keys); err != nil {
		return err
	}
	return t.nextInLine(had)
}

// Submitted is when an item was submitted, which decides on its turn: a job's is its batch's,
// however late that was expanded.
func (t *Tx) Submitted(it registry.WorkItem) (time.Time, error) {
	if it.ParentID == "" {
		return it.CreatedAt, nil
	}
	var at int64
	err := t.Get(`SELECT created_at FROM work_item WHERE id = $1`, []any{it.ParentID}, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return it.CreatedAt, nil
	} else if err != nil {
		return it.CreatedAt, fmt.Errorf("look when batch %s was submitted: %w", it.ParentID, err)
	}
	return sqldb.FromMicros(at), nil
}

// StandInLine gives an item its place, by its time of submission, in the queues for locks.
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

// LeaveLine takes items out of the queue for one lock, and lets them and whoever is first there go
// on.
func (t *Tx) LeaveLine(key string, ids []string) error {
	if err := t.Do(`DELETE FROM lock_wait WHERE key = $2 AND `+t.Among("item_id"), t.List(ids), key); err != nil {
		return fmt.Errorf("leave the queue for lock %s: %w", key, err)
	}
	for _, id := range ids {
		if err := t.wakeLocked(id); err != nil {
			return err
		}
	}
	return t.nextInLine([]string{key})
}

// leaveLine takes a batch out of the queues for locks, where its jobs have its place by now, and
// wakes those who are first.
func (t *Tx) leaveLine(batch string) error {
	keys, err := t.Strings(`DELETE FROM lock_wait WHERE item_id = $1 RETURNING key`, batch)
	if err != nil {
		return fmt.Errorf("leave the queues for locks: %w", err)
	}
	return t.nextInLine(keys)
}

// unlock frees what a settled item held or waited for and wakes those who wait for it. An item that
// failed with a version announced and not recorded keeps its locks: nobody else can go on with the
// object before it was requeued and its version rolled forward (R1).
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

// nextInLine wakes those who are first in the queues for locks which somebody left, or who were set
// aside for waiting in them. The others have somebody in front of them still, and are woken by him.
func (t *Tx) nextInLine(keys []string) error {
	for _, key := range keys {
		var first string
		err := t.Get(`SELECT item_id FROM lock_wait WHERE key = $1 ORDER BY submitted_at, item_id LIMIT 1`, []any{key}, &first)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		} else if err != nil {
			return fmt.Errorf("look who waits for lock %s: %w", key, err)
		}
		if err := t.wakeLocked(first); err != nil {
			return err
		}
	}
	return nil
}

// wakeLocked has an item that waits for a lock look whether it can go on.
func (t *Tx) wakeLocked(id string) error {
	n, err := t.Exec(`UPDATE work_item SET run_at = $2 WHERE id = $1 AND status = 'pending' AND stage IN `+lockedStages, id, t.Now)
	if err != nil {
		return fmt.Errorf("wake %s, which waits for a lock: %w", id, err)
	}
	if n == 0 {
		return nil
	}
	return t.refreshReady(id)
}
