package catalog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/bounds"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

const selectRestoration = `SELECT r.object_id, r.n, r.version, r.reason, r.asked_by, r.asked_at, r.item_id, r.name, r.place, r.size_bytes, r.sha256,
	r.files, r.ready_at, r.expires_at, COALESCE(i.status, ''), COALESCE(i.note, ''), o.gone
	FROM restore r JOIN object o ON o.id = r.object_id LEFT JOIN work_item i ON i.id = r.item_id `

func scanRestoration(row sqldb.Scanner, now int64) (registry.Restoration, error) {
	var r registry.Restoration
	var asked, ready, expires int64
	var status registry.Status
	var gone registry.DeletionStatus
	err := row.Scan(&r.ObjectID, &r.N, &r.Version, &r.Reason, &r.AskedBy, &asked, &r.ItemID, &r.Name, &r.Place, &r.SizeBytes, &r.SHA256,
		&r.Files, &ready, &expires, &status, &r.Note, &gone)
	if err != nil {
		return r, err
	}
	r.AskedAt = sqldb.FromMicros(asked)
	if ready > 0 {
		readyAt, expiresAt := sqldb.FromMicros(ready), sqldb.FromMicros(expires)
		r.ReadyAt, r.ExpiresAt, r.Note = &readyAt, &expiresAt, ""
	}
	switch {
	case ready > 0 && (expires <= now || gone != ""):
		r.Status = registry.RestoreRemoved
	case ready > 0:
		r.Status = registry.RestoreReady
	case status == registry.Running:
		r.Status, r.Note = registry.RestoreRunning, ""
	case status == registry.Pending:
		r.Status = registry.RestoreWaiting
	case status == registry.Failed:
		r.Status = registry.RestoreFailed
	default:
		r.Status = registry.RestoreGivenUp
	}
	return r, nil
}

// restoration returns the restore that an item carries out. It returns ErrNotFound for an item
// without one.
func (t *tx) restoration(itemID string) (registry.Restoration, error) {
	return restorationIn(t.Row(selectRestoration+`WHERE r.item_id = $1`, itemID), t.Now, itemID)
}

func restorationIn(row sqldb.Scanner, now int64, itemID string) (registry.Restoration, error) {
	r, err := scanRestoration(row, now)
	if errors.Is(err, sql.ErrNoRows) {
		err = registry.ErrNotFound
	}
	if err != nil {
		return registry.Restoration{}, fmt.Errorf("read restore by item %s: %w", itemID, err)
	}
	return r, nil
}

// addRestoration adds the item that restores a version, and returns its id. If an item is already
// restoring it, or the restored tar is still there, it returns that item.
func (t *tx) addRestoration(r registry.ObjectRequest) (id string, err error) {
	if r.Spec.Version == 0 {
		if r.Spec.Version, err = t.head(r.Spec.ObjectID); err != nil {
			return "", err
		}
	}
	err = t.Get(`SELECT r.item_id FROM restore r JOIN work_item i ON i.id = r.item_id WHERE r.object_id = $1 AND r.version = $2
		AND (r.ready_at = 0 AND i.status IN ('pending', 'running') OR r.expires_at > $3) ORDER BY r.n DESC LIMIT 1`,
		[]any{r.Spec.ObjectID, r.Spec.Version, t.Now}, &id)
	if err == nil || !errors.Is(err, sql.ErrNoRows) {
		return id, err
	}
	if id, err = t.addObjectItem(r); err != nil {
		return "", err
	}
	err = t.Do(`INSERT INTO restore (item_id, object_id, n, version, reason, asked_by, asked_at)
		VALUES ($1, $2, (SELECT COALESCE(MAX(n), 0) + 1 FROM restore WHERE object_id = $2), $3, $4, $5, $6)`,
		id, r.Spec.ObjectID, r.Spec.Version, r.Spec.Reason, r.Actor, t.Now)
	return id, err
}

// RecordRestoration implements registry.Restoring.
func (s *Catalog) RecordRestoration(ctx context.Context, l registry.Lease, r registry.RestorationRecord) (out registry.Restoration, err error) {
	if err := bounds.Check(l, r); err != nil {
		return out, err
	}
	r.Name, r.Place, r.SHA256 = sqldb.Clean(r.Name), sqldb.Clean(r.Place), strings.ToLower(sqldb.Clean(r.SHA256))
	err = s.write(ctx, func(t *tx) error {
		if err := r.Check(l); err != nil {
			return err
		}
		it, err := t.Live(l)
		if err != nil {
			return err
		}
		if out, err = t.restoration(it.ID); err != nil || out.ReadyAt != nil {
			return err
		}
		if err := t.notGone(out.ObjectID); err != nil {
			return err
		}
		err = t.Do(`UPDATE restore SET name = $2, place = $3, size_bytes = $4, sha256 = $5, files = $6, ready_at = $7, expires_at = $8
			WHERE item_id = $1`, it.ID, r.Name, r.Place, r.SizeBytes, r.SHA256, r.Files, t.Now, t.Now+r.Keep.Microseconds())
		if err != nil {
			return err
		}
		about := subject{it, out.ObjectID, out.Version, restoreEvents}
		if err := t.writeBetween(about, r.Events...); err != nil {
			return err
		}
		if out, err = t.restoration(it.ID); err != nil {
			return err
		}
		return t.Event(it.ID, l.N, registry.EventRestored, work.ActorWorker, out)
	})
	if err != nil {
		return registry.Restoration{}, fmt.Errorf("record what item %s restored: %w", l.ItemID, err)
	}
	return out, nil
}

// Restorations implements registry.Catalog.
func (s *Catalog) Restorations(ctx context.Context, objectID string, before, limit int) (out []registry.Restoration, err error) {
	if _, err := s.recordedHead(ctx, objectID); err != nil {
		return nil, err
	}
	var w sqldb.Where
	w.Add("r.object_id = ?", objectID)
	if before > 0 {
		w.Add("r.n < ?", before)
	}
	query := selectRestoration + w.String() + fmt.Sprintf(" ORDER BY r.n DESC LIMIT %d", sqldb.PageSize(limit))
	return sqldb.Collect(s.db.Read.Ask(ctx, query, w.Args...), "list restores of "+objectID, func(row sqldb.Scanner) (registry.Restoration, error) {
		return scanRestoration(row, sqldb.Micros(s.db.Now()))
	})
}

// RestorationOf implements registry.Inventory.
func (s *Catalog) RestorationOf(ctx context.Context, itemID string) (registry.Restoration, error) {
	return restorationIn(s.db.Read.QueryRowContext(ctx, selectRestoration+`WHERE r.item_id = $1`, itemID), sqldb.Micros(s.db.Now()), itemID)
}
