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
	// mostExpired bounds how many items one call looks at, each in a transaction of its own (R25).
	mostExpired = 500
	// carrierRetention is how long items are kept that carried out something for others: their subjects
	// tell what came of it.
	carrierRetention = 30 * 24 * time.Hour
	// retryPurgeAfter is when a batch is looked at again that could not be purged, or was not purged
	// whole.
	retryPurgeAfter = 24 * time.Hour
)

// setRetention notes until when a completed item is kept. Whatever happens to it afterwards forgets that.
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
		// While it is what the same content again would repeat it is needed.
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
		return 0, fmt.Errorf("look for what was kept for its time: %w", err)
	}
	var errs []error
	for _, id := range ids {
		var purged bool
		err := e.Write(ctx, func(t *Tx) (err error) {
			purged, err = t.purgeExpired(id)
			return err
		})
		if err != nil { // which must not keep the others
			errs = append(errs, fmt.Errorf("purge item %s, which was kept for its time: %w", id, err))
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

// purgeExpired purges an item whose time is over, unless somebody was faster. batch says that it is a
// batch, and goes.
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
	c := registry.Command{ItemID: id, Act: registry.ActPurge, Actor: ActorRegistry, Reason: "it was kept for its time"}
	if it.Action != registry.Batch {
		return false, t.PurgeRows(it, c)
	}
	// First, since a batch with many jobs is still there afterwards, and so is one that refuses.
	if err := t.Do(`UPDATE work_item SET purge_at = $2 WHERE id = $1`, id, t.Now+retryPurgeAfter.Microseconds()); err != nil {
		return false, fmt.Errorf("note when to look again: %w", err)
	}
	if wanted, err := t.wanted(it); wanted || err != nil {
		return false, err
	}
	refused, err := t.Try(func() error { return t.Purge(it, c) })
	return refused == nil && err == nil, err
}

// wanted says that a hold covers a batch or one of its jobs, or that a subject still needs them.
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
