package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/registry"
)

const selectRestoration = `SELECT r.object_id, r.n, r.version, r.reason, r.asked_by, r.asked_at, r.item_id, r.name, r.place, r.size_bytes, r.sha256,
	r.files, r.ready_at, r.expires_at, COALESCE(i.status, ''), COALESCE(i.note, ''), o.gone
	FROM restore r JOIN object o ON o.id = r.object_id LEFT JOIN work_item i ON i.id = r.item_id `

func scanRestoration(row scanner, now int64) (registry.Restoration, error) {
	var r registry.Restoration
	var asked, ready, expires int64
	var status registry.Status
	var gone registry.DeletionStatus
	err := row.Scan(&r.ObjectID, &r.N, &r.Version, &r.Reason, &r.AskedBy, &asked, &r.ItemID, &r.Name, &r.Place, &r.SizeBytes, &r.SHA256,
		&r.Files, &ready, &expires, &status, &r.Note, &gone)
	if err != nil {
		return r, err
	}
	r.AskedAt = fromMicros(asked)
	if ready > 0 {
		readyAt, expiresAt := fromMicros(ready), fromMicros(expires)
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

// restoration returns the restore that an item carries out; ErrNotFound when it carries out none.
func (t *tx) restoration(itemID string) (registry.Restoration, error) {
	r, err := scanRestoration(t.row(selectRestoration+`WHERE r.item_id = $1`, itemID), t.now)
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("restore by item %s: %w", itemID, registry.ErrNotFound)
	}
	return r, err
}

// addRestoration makes the item that restores a version, unless one is at it, or has brought it already.
func (t *tx) addRestoration(r registry.ObjectRequest) (id string, err error) {
	if r.Spec.Version == 0 {
		if r.Spec.Version, err = t.head(r.Spec.ObjectID); err != nil {
			return "", err
		}
	}
	err = t.get(`SELECT r.item_id FROM restore r JOIN work_item i ON i.id = r.item_id WHERE r.object_id = $1 AND r.version = $2
		AND (r.ready_at = 0 AND i.status IN ('pending', 'running') OR r.expires_at > $3) ORDER BY r.n DESC LIMIT 1`,
		[]any{r.Spec.ObjectID, r.Spec.Version, t.now}, &id)
	if err == nil || !errors.Is(err, sql.ErrNoRows) {
		return id, err
	}
	if id, err = t.addObjectItem(r, registry.DefaultPriority); err != nil {
		return "", err
	}
	err = t.do(`INSERT INTO restore (item_id, object_id, n, version, reason, asked_by, asked_at)
		VALUES ($1, $2, (SELECT COALESCE(MAX(n), 0) + 1 FROM restore WHERE object_id = $2), $3, $4, $5, $6)`,
		id, r.Spec.ObjectID, r.Spec.Version, r.Spec.Reason, r.Actor, t.now)
	return id, err
}

// RecordRestoration implements registry.Preserving.
func (s *Store) RecordRestoration(ctx context.Context, l registry.Lease, r registry.RestorationRecord) (out registry.Restoration, err error) {
	r.Name, r.Place, r.SHA256 = clean(r.Name), clean(r.Place), strings.ToLower(clean(r.SHA256))
	err = s.write(ctx, func(t *tx) error {
		if err := r.Check(l); err != nil {
			return err
		}
		it, err := t.live(l)
		if err != nil {
			return err
		}
		if out, err = t.restoration(it.ID); err != nil || out.ReadyAt != nil {
			return err
		}
		if err := t.notGone(out.ObjectID); err != nil {
			return err
		}
		err = t.do(`UPDATE restore SET name = $2, place = $3, size_bytes = $4, sha256 = $5, files = $6, ready_at = $7, expires_at = $8
			WHERE item_id = $1`, it.ID, r.Name, r.Place, r.SizeBytes, r.SHA256, r.Files, t.now, t.now+r.Keep.Microseconds())
		if err != nil {
			return err
		}
		about := subject{it, out.ObjectID, out.Version, restoreEvents}
		if err := t.premis(about, r.Events...); err != nil {
			return err
		}
		if out, err = t.restoration(it.ID); err != nil {
			return err
		}
		return t.event(it.ID, l.N, registry.EventRestored, actorWorker, out)
	})
	if err != nil {
		return registry.Restoration{}, fmt.Errorf("record what item %s restored: %w", l.ItemID, err)
	}
	return out, nil
}

// Restorations implements registry.Reading.
func (s *Store) Restorations(ctx context.Context, objectID string, before, limit int) (out []registry.Restoration, err error) {
	var known int
	err = s.read.QueryRowContext(ctx, `SELECT 1 FROM object WHERE id = $1 AND head > 0`, objectID).Scan(&known)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("object %s: %w", objectID, registry.ErrNotFound)
	} else if err != nil {
		return nil, fmt.Errorf("read object %s: %w", objectID, err)
	}
	var w where
	w.add("r.object_id = ?", objectID)
	if before > 0 {
		w.add("r.n < ?", before)
	}
	query := selectRestoration + w.String() + fmt.Sprintf(" ORDER BY r.n DESC LIMIT %d", pageSize(limit))
	return collect(s.read.ask(ctx, query, w.args...), "list restores of "+objectID, func(row scanner) (registry.Restoration, error) {
		return scanRestoration(row, micros(s.now()))
	})
}

// RestorationOf implements registry.Reading.
func (s *Store) RestorationOf(ctx context.Context, itemID string) (registry.Restoration, error) {
	r, err := scanRestoration(s.read.QueryRowContext(ctx, selectRestoration+`WHERE r.item_id = $1`, itemID), micros(s.now()))
	if errors.Is(err, sql.ErrNoRows) {
		return registry.Restoration{}, fmt.Errorf("restore by item %s: %w", itemID, registry.ErrNotFound)
	} else if err != nil {
		return registry.Restoration{}, fmt.Errorf("read restore by item %s: %w", itemID, err)
	}
	return r, nil
}
