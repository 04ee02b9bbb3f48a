package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

const (
	// mostExpired bounds how many items one call reads. Each is purged in its own transaction
	// (R25).
	mostExpired = 500
	// carrierRetention is how long completed tidy and delivery items are kept. The items that they
	// served record the outcome.
	carrierRetention = 30 * 24 * time.Hour
	// retryPurgeAfter is when a batch is tried again that could not be purged, or only in part.
	retryPurgeAfter = 24 * time.Hour
)

// setRetention sets the time at which a completed item may be purged. Any later change of the item
// clears it.
func (t *Tx) setRetention(it registry.WorkItem) error {
	var kept time.Duration
	switch it.Action {
	case registry.Tidy, registry.DeliverMessage:
		kept = carrierRetention
	case registry.Batch:
		var spec registry.Spec
		if err := json.Unmarshal(it.Spec, &spec); err != nil {
			return fmt.Errorf("decode spec of item %s: %w", it.ID, err)
		}
		if spec.Profile.RetentionDays == nil {
			return nil
		}
		// Duplicates refer to the batch for this long.
		known := sqldb.FromMicros(t.Now).Sub(it.CreatedAt)
		kept = max(time.Duration(*spec.Profile.RetentionDays)*24*time.Hour, spec.Profile.DuplicateWindow()-known)
	default:
		return nil
	}
	return t.Do(`UPDATE work_item SET purge_at = $2 WHERE id = $1`, it.ID, t.Now+kept.Microseconds())
}

// PurgeExpired implements registry.Sweeping.
func (e *Engine) PurgeExpired(ctx context.Context) (batches int, err error) {
	ids, err := e.db.Column(ctx, `SELECT id FROM work_item WHERE purge_at <= $1 ORDER BY purge_at`+sqldb.Limit(mostExpired), sqldb.Micros(e.db.Now()))
	if err != nil {
		return 0, fmt.Errorf("look for items whose retention has ended: %w", err)
	}
	var errs []error
	for _, id := range ids {
		var purged bool
		err := e.Write(ctx, func(t *Tx) (err error) {
			purged, err = t.purgeExpired(id)
			return err
		})
		if err != nil { // one failure must not keep the others
			errs = append(errs, fmt.Errorf("purge item %s, whose retention has ended: %w", id, err))
		}
		if purged {
			batches++
		}
		if ctx.Err() != nil {
			break
		}
	}
	return batches, errors.Join(errs...)
}

// purgeExpired purges an item whose retention has ended, unless the item changed meanwhile. batch
// is true if the item is a batch and is being purged.
func (t *Tx) purgeExpired(id string) (batch bool, err error) {
	var due int
	err = t.Get(`SELECT COUNT(*) FROM work_item WHERE id = $1 AND status = 'completed' AND purge_at <= $2`, []any{id, t.Now}, &due)
	if err != nil || due == 0 {
		return false, err
	}
	it, err := t.Item(id)
	if err != nil {
		return false, err
	}
	c := registry.Command{ItemID: id, Act: registry.ActPurge, Actor: ActorRegistry, Reason: "its retention has ended"}
	if it.Action != registry.Batch {
		return false, t.PurgeRows(it, c)
	}
	// This comes first: a batch with many jobs still exists after the purge, and so does one that
	// may not be purged.
	if err := t.Do(`UPDATE work_item SET purge_at = $2 WHERE id = $1`, id, t.Now+retryPurgeAfter.Microseconds()); err != nil {
		return false, fmt.Errorf("set the time of the next purge: %w", err)
	}
	if wanted, err := t.wanted(it); wanted || err != nil {
		return false, err
	}
	refused, err := t.Try(func() error { return t.Purge(it, c) })
	return refused == nil && err == nil, err
}

// wanted reports whether a hold covers a batch or one of its jobs, or a subject still needs them.
func (t *Tx) wanted(batch registry.WorkItem) (bool, error) {
	var holds int
	err := t.Get(`SELECT COUNT(*) FROM hold h WHERE h.scope IN ('all', 'ingest') OR h.scope = 'collection' AND h.key = $2
		OR h.scope IN ('batch', 'item') AND h.key = $1
		OR h.scope = 'item' AND EXISTS (SELECT 1 FROM work_item j WHERE j.id = h.key AND j.parent_id = $1)`, []any{batch.ID, batch.Collection}, &holds)
	if err != nil {
		return false, fmt.Errorf("look for holds: %w", err)
	}
	if holds > 0 {
		return true, nil
	}
	return t.store.hooks.Wanted(t, batch)
}
