package catalog

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// reconciling is the actor of what a comparison with the storages changes, and its setting.
const reconciling = "reconcile"

// ReconcileState implements registry.Reconciling.
func (s *Catalog) ReconcileState(ctx context.Context) (registry.RebuildState, error) {
	return s.readState(ctx, reconciling)
}

// SaveReconcile implements registry.Reconciling.
func (s *Catalog) SaveReconcile(ctx context.Context, state registry.RebuildState) error {
	return s.saveState(ctx, reconciling, state)
}

// Recorded implements registry.Reconciling.
func (s *Catalog) Recorded(ctx context.Context, objectID string) (r registry.RecordedObject, err error) {
	r.Object, err = scanObject(s.db.Read.QueryRowContext(ctx, selectObject+` WHERE o.id = $1`, objectID))
	if errors.Is(err, sql.ErrNoRows) {
		return registry.RecordedObject{}, nil
	} else if err != nil {
		return r, fmt.Errorf("read the record of %s: %w", objectID, err)
	}
	all := []registry.Object{r.Object}
	if err := s.addLocalIDs(ctx, all); err != nil {
		return r, err
	}
	r.Object = all[0]
	if r.Versions, err = s.versions(ctx, objectID); err != nil {
		return r, err
	}
	if r.Deletion, err = s.deletionOf(ctx, objectID); err != nil {
		return r, err
	}
	if err := s.addInventories(ctx, &r.Object); err != nil {
		return r, err
	}
	err = s.db.Read.QueryRowContext(ctx, `SELECT item_id FROM object_version WHERE object_id = $1 AND version = $2`, objectID, r.Announced).Scan(&r.AnnouncedBy)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return r, fmt.Errorf("look up who writes version %d of %s: %w", r.Announced, objectID, err)
	}
	err = s.db.Read.QueryRowContext(ctx, `SELECT seq, hash FROM premis_event WHERE object_id = $1 AND seq > 0 ORDER BY seq DESC LIMIT 1`,
		objectID).Scan(&r.LastEvent, &r.LastHash)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return r, fmt.Errorf("find the end of the events of %s: %w", objectID, err)
	}
	return r, nil
}

// RecordedAfter implements registry.Reconciling.
func (s *Catalog) RecordedAfter(ctx context.Context, after string, limit int) ([]string, error) {
	return s.db.Column(ctx, `SELECT id FROM object WHERE id > $1 AND head > 0 AND gone = '' ORDER BY id LIMIT `+strconv.Itoa(sqldb.PageSize(limit)), after)
}

// TakenIDs implements registry.Reconciling.
func (s *Catalog) TakenIDs(ctx context.Context, objectID string, ids []registry.OwnedID) (taken []registry.TakenID, err error) {
	for _, id := range ids {
		var other string
		err := s.db.Read.QueryRowContext(ctx, `SELECT i.ark FROM identifier i WHERE i.owner = $1 AND i.local_id = $2 AND i.ark <> $3 AND NOT `+onlyNamed,
			id.Owner, id.LocalID, objectID).Scan(&other)
		switch {
		case errors.Is(err, sql.ErrNoRows):
		case err != nil:
			return nil, fmt.Errorf("look up local id %q: %w", id.LocalID, err)
		default:
			taken = append(taken, registry.TakenID{OwnedID: id, ObjectID: other})
		}
	}
	return taken, nil
}

// onlyNamed is an SQL condition: the object of identifier i has a name and nothing else, not even an
// announced version. The job for which it was named may get another one.
const onlyNamed = `EXISTS (SELECT 1 FROM object o WHERE o.id = i.ark AND o.head = 0 AND o.gone = ''
	AND NOT EXISTS (SELECT 1 FROM object_version v WHERE v.object_id = o.id))`

// EventHash implements registry.Reconciling.
func (s *Catalog) EventHash(ctx context.Context, objectID string, seq int64) (hash string, err error) {
	err = s.db.Read.QueryRowContext(ctx, `SELECT hash FROM premis_event WHERE object_id = $1 AND seq = $2`, objectID, seq).Scan(&hash)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("look up event %d of %s: %w", seq, objectID, err)
	}
	return hash, nil
}

// WithdrawVersion implements registry.Reconciling.
func (s *Catalog) WithdrawVersion(ctx context.Context, objectID string) error {
	const announced = `object_id = $1 AND version = (SELECT MAX(v.version) FROM object_version v WHERE v.object_id = $1 AND v.status = 'intended')`
	// Nobody can see the rows of an announced version. There may be many (R25).
	for _, table := range [][2]string{{"file", "path"}, {"stored_file", "content_path"}} {
		err := s.deleteRows(ctx, table[0], table[1], announced, []any{objectID}, func(*tx) (bool, error) { return false, nil })
		if err != nil {
			return fmt.Errorf("withdraw the announced version of %s: %w", objectID, err)
		}
	}
	err := s.write(ctx, func(t *tx) error {
		items, err := t.Strings(`DELETE FROM object_version WHERE object_id = $1 AND status = 'intended' RETURNING item_id`, objectID)
		if err != nil {
			return err
		}
		for _, id := range items {
			it, err := t.Item(id)
			if errors.Is(err, registry.ErrNotFound) {
				continue // of another time
			} else if err != nil {
				return err
			}
			for _, name := range registry.VersionResults(it.Storages) {
				delete(it.Results, name)
			}
			if err := errors.Join(t.KeepResults([]registry.WorkItem{it}), t.uncommit(id)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("withdraw the announced version of %s: %w", objectID, err)
	}
	return nil
}

// storedPlan is what a job's plan says of a version that was made, for those who tell of it. The whole
// plan died with the record.
type storedPlan struct {
	ObjectID  string    `json:"object_id"`
	Version   int       `json:"version"`
	Digest    string    `json:"digest"`
	Algorithm string    `json:"algorithm"`
	Files     int64     `json:"files"`
	Bytes     int64     `json:"bytes"`
	LocalIDs  []string  `json:"local_ids"`
	Title     string    `json:"title"`
	Creator   string    `json:"creator"`
	Date      string    `json:"date"`
	Created   time.Time `json:"created"`
}

// adoptJobs lets the jobs of an object's versions that have become visible go on behind them. Of most no
// job is left.
func (t *tx) adoptJobs(o registry.EnteredObject, versions []registry.ObjectVersion) error {
	for _, v := range versions {
		it, err := t.Item(v.ItemID)
		if errors.Is(err, registry.ErrNotFound) {
			continue
		} else if err != nil {
			return err
		}
		if err := t.adoptJob(it, o, v); err != nil {
			return fmt.Errorf("let item %s go on behind version %d: %w", it.ID, v.Version, err)
		}
	}
	return nil
}

func (t *tx) adoptJob(it registry.WorkItem, o registry.EnteredObject, v registry.ObjectVersion) error {
	plan := storedPlan{
		ObjectID: o.ID, Version: v.Version, Files: v.Files, Bytes: v.SizeBytes, Created: v.CreatedAt,
		Title: o.Title, Creator: o.Creator, Date: o.Date, LocalIDs: []string{},
	}
	for _, id := range o.IDs {
		plan.LocalIDs = append(plan.LocalIDs, id.LocalID)
	}
	var text string
	err := t.Get(`SELECT digests FROM stored_file WHERE object_id = $1 AND content_path = $2`, []any{o.ID, []byte(o.InventoryPath(v.Version))}, &text)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if err == nil {
		digests, err := decodeDigests(text)
		if err != nil {
			return err
		}
		for algorithm, digest := range digests { // an inventory has one
			plan.Algorithm, plan.Digest = algorithm, digest
		}
	}
	results := map[string]any{
		registry.ResultARK:     registry.Identity{ARK: o.ID, Minted: v.Version == 1, Head: v.Version - 1, EZIDItem: o.EZIDItem},
		registry.ResultVersion: v.Version, registry.ResultPlan: plan,
	}
	for name, value := range results {
		raw, err := json.Marshal(value)
		if err != nil {
			return fmt.Errorf("encode %s: %w", name, err)
		}
		if err := t.SetResult(it, name, raw); err != nil {
			return err
		}
	}
	if err := t.Commit(it.ID, registry.Preserved); err != nil {
		return err
	}
	return t.Adopt(it, reconciling, fmt.Sprintf("its version %d of %s was found in the storages", v.Version, o.ID))
}

// visible makes the entered versions of an object visible, and returns them.
func (t *tx) visible(objectID string, head int) ([]registry.ObjectVersion, error) {
	ask := t.Ask(`UPDATE object_version SET status = 'recorded' WHERE object_id = $1 AND version <= $2 AND status = 'intended'
		RETURNING version, item_id, files, size_bytes, created_at`, objectID, head)
	return sqldb.Collect(ask, "make the versions visible", func(row sqldb.Scanner) (v registry.ObjectVersion, err error) {
		var created int64
		err = row.Scan(&v.Version, &v.ItemID, &v.Files, &v.SizeBytes, &created)
		v.CreatedAt = sqldb.FromMicros(created)
		return v, err
	})
}

// unbind takes the local ids from an object that has a name and nothing else, and forgets the name, for
// which its job gets another one.
func (t *tx) unbind(id registry.OwnedID, ark string) error {
	var other string
	err := t.Get(`SELECT i.ark FROM identifier i WHERE i.owner = $1 AND i.local_id = $2 AND i.ark <> $3 AND `+onlyNamed,
		[]any{id.Owner, id.LocalID, ark}, &other)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	} else if err != nil {
		return err
	}
	return errors.Join(t.Do(`DELETE FROM identifier WHERE ark = $1`, other), t.Do(`DELETE FROM object WHERE id = $1`, other))
}

// EnterDeletion implements registry.Reconciling.
func (s *Catalog) EnterDeletion(ctx context.Context, d registry.Deletion) error {
	if d.ApprovedAt == nil {
		return fmt.Errorf("enter the deletion of %s: %w: nobody approved it", d.ObjectID, registry.ErrInvalid)
	}
	err := s.write(ctx, func(t *tx) error {
		if err := t.requirePresent(d.ObjectID); errors.As(err, new(*registry.GoneError)) {
			return nil // a repeat
		} else if err != nil {
			return err
		}
		n, err := t.Exec(`UPDATE deletion SET status = $4, closed_by = $5, closed_at = $6, item_id = $7, head = $8, inventory = $9, files = $10, tombstone = $11
			WHERE object_id = $1 AND asked_by = $2 AND asked_at = $3`, d.ObjectID, d.AskedBy, sqldb.Micros(d.AskedAt),
			registry.DeletionDeleting, d.ApprovedBy, sqldb.Micros(*d.ApprovedAt), d.ItemID, d.Last.Version, d.Last.Inventory, d.Last.Files, d.Tombstone)
		if err == nil && n == 0 {
			d.Status = registry.DeletionDeleting
			err = t.enterDeletion(d)
		}
		if err != nil {
			return err
		}
		if err := t.deletes(d); err != nil {
			return err
		}
		if err := t.Do(`UPDATE object SET gone = $2, updated_at = $3 WHERE id = $1`, d.ObjectID, registry.DeletionDeleting, t.Now); err != nil {
			return err
		}
		return t.Event(d.ItemID, 0, eventDeleting, reconciling, map[string]any{"object_id": d.ObjectID, "version": d.Last.Version})
	})
	if err != nil {
		return fmt.Errorf("enter the deletion of %s: %w", d.ObjectID, err)
	}
	return nil
}

// deletes makes sure that there is the item that carries a deletion on. The tombstones name it.
func (t *tx) deletes(d registry.Deletion) error {
	_, err := t.Item(d.ItemID)
	if errors.Is(err, registry.ErrNotFound) {
		_, err = t.addItem(d.ItemID, registry.ObjectRequest{
			Action: registry.DeleteObject, Spec: registry.ObjectSpec{ObjectID: d.ObjectID, Reason: d.Reason}, Actor: d.ApprovedBy,
		})
	}
	if err != nil {
		return fmt.Errorf("make the item that deletes it: %w", err)
	}
	return t.Commit(d.ItemID, registry.Announced)
}
