package catalog

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// rebuildSetting is the setting that says how far a rebuild is.
const rebuildSetting = "rebuild"

// RebuildState implements registry.Rebuilding.
func (s *Catalog) RebuildState(ctx context.Context) (out registry.RebuildState, err error) {
	return s.readState(ctx, rebuildSetting)
}

// readState returns how far a reading of the storages is, by the setting of this name.
func (s *Catalog) readState(ctx context.Context, name string) (registry.RebuildState, error) {
	return scanState(s.db.Read.QueryRowContext(ctx, selectState, name))
}

// saveState notes how far a reading of the storages is, in the setting of this name.
func (s *Catalog) saveState(ctx context.Context, name string, state registry.RebuildState) error {
	err := s.write(ctx, func(t *tx) error { return t.putState(name, state) })
	if err != nil {
		return fmt.Errorf("note how far the reading of the storages is (%s): %w", name, err)
	}
	return nil
}

const selectState = `SELECT value FROM setting WHERE name = $1`

func scanState(row sqldb.Scanner) (out registry.RebuildState, err error) {
	var text string
	switch err := row.Scan(&text); {
	case errors.Is(err, sql.ErrNoRows):
		return out, nil
	case err != nil:
		return out, fmt.Errorf("read how far the reading of the storages is: %w", err)
	}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		return out, fmt.Errorf("decode how far the reading of the storages is: %w", err)
	}
	return out, nil
}

// SaveRebuild implements registry.Rebuilding.
func (s *Catalog) SaveRebuild(ctx context.Context, state registry.RebuildState) error {
	err := s.write(ctx, func(t *tx) error {
		before, err := scanState(t.Row(selectState, rebuildSetting))
		if err != nil {
			return err
		}
		if !before.Open() || !slices.Equal(before.Storages, state.Storages) {
			var objects bool
			if err := t.Get(`SELECT EXISTS (SELECT 1 FROM object)`, nil, &objects); err != nil {
				return err
			} else if objects {
				return registry.ErrRebuilt
			}
		}
		return t.putState(rebuildSetting, state)
	})
	if err != nil {
		return fmt.Errorf("note how far the rebuild is: %w", err)
	}
	return nil
}

// putState notes how far a reading of the storages is, in the setting of this name.
func (t *tx) putState(name string, state registry.RebuildState) error {
	text, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("encode how far it is: %w", err)
	}
	return t.Do(`INSERT INTO setting (name, value, reason, actor, at) VALUES ($1, $2, '', $1, $3)
		ON CONFLICT (name) DO UPDATE SET value = $2, at = $3`, name, string(text), t.Now)
}

// EnteredHead implements registry.Rebuilding.
func (s *Catalog) EnteredHead(ctx context.Context, objectID string) (head int, gone registry.DeletionStatus, err error) {
	err = s.db.Read.QueryRowContext(ctx, `SELECT head, gone FROM object WHERE id = $1`, objectID).Scan(&head, &gone)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, "", fmt.Errorf("look up what was entered of %s: %w", objectID, err)
	}
	return head, gone, nil
}

// EnteredChain implements registry.Rebuilding.
func (s *Catalog) EnteredChain(ctx context.Context, objectID string, seq int64) (c registry.EnteredChain, err error) {
	err = s.db.Read.QueryRowContext(ctx, `SELECT o.head, o.gone, o.ocfl_id, o.adopted, o.padding, COALESCE((SELECT MAX(l.seq) FROM premis_event l WHERE l.object_id = o.id), 0),
		COALESCE((SELECT e.hash FROM premis_event e WHERE e.object_id = o.id AND e.seq = $2), '') FROM object o WHERE o.id = $1`,
		objectID, seq).Scan(&c.Head, &c.Gone, &c.OCFLID, &c.Adopted, &c.Padding, &c.Last, &c.Hash)
	if errors.Is(err, sql.ErrNoRows) {
		return c, nil
	}
	if err == nil {
		c.Storages, err = s.db.Column(ctx, `SELECT DISTINCT storage FROM replica WHERE object_id = $1 ORDER BY storage`, objectID)
	}
	if err != nil {
		return c, fmt.Errorf("look up what was entered of the events of %s: %w", objectID, err)
	}
	return c, nil
}

// EnteredFiles implements registry.Rebuilding.
func (s *Catalog) EnteredFiles(ctx context.Context, objectID string, version int, after string, limit int) ([]registry.File, error) {
	return s.fileRows(ctx, objectID, filesOfVersion, objectID, []byte(after), version, sqldb.PageSize(limit))
}

// EnterKeys implements registry.Rebuilding.
func (s *Catalog) EnterKeys(ctx context.Context, keys []registry.ReceiptKey) error {
	err := s.write(ctx, func(t *tx) error {
		for _, k := range keys {
			err := t.Do(`INSERT INTO receipt_key (id, public_key, first_used_at) VALUES ($1, $2, $3)
				ON CONFLICT (id) DO UPDATE SET first_used_at = $3 WHERE receipt_key.first_used_at > $3`,
				k.ID, k.PublicKey, sqldb.Micros(k.FirstUsedAt))
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("enter the keys that signed: %w", err)
	}
	return nil
}

// Enter implements registry.Rebuilding.
func (s *Catalog) Enter(ctx context.Context, e registry.Entered) (taken []registry.TakenID, err error) {
	err = s.write(ctx, func(t *tx) error {
		for _, f := range e.Files {
			if err := errors.Join(t.recordFiles(e.ObjectID, f.Version, f.Rows), t.noteStoredAt(e.ObjectID, f.Version, never(f.Checked), f.Rows...)); err != nil {
				return fmt.Errorf("the files of version %d: %w", f.Version, err)
			}
		}
		for _, v := range e.Versions {
			if err := t.enterVersion(e.ObjectID, v); err != nil {
				return fmt.Errorf("version %d: %w", v.Version, err)
			}
		}
		err := t.enterEvents(e.Events)
		if err == nil && e.Object != nil {
			taken, err = t.enterObject(*e.Object)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("enter what the storages hold of %s: %w", e.ObjectID, err)
	}
	return taken, nil
}

// never returns a time as a column has it, where the zero time is the oldest there is.
func never(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return sqldb.Micros(at)
}

// enterPremis writes preservation events that have their places.
var enterPremis = sqldb.InsertNew(`INSERT INTO premis_event (`+premisColumns+`)`, `($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`)

func (t *tx) enterEvents(events []registry.Premis) error {
	rows := make([][]any, len(events))
	for i, e := range events {
		rows[i] = []any{e.ID, e.ObjectID, e.Version, e.ItemID, e.Type, sqldb.Micros(e.At), e.Agent, e.Outcome, e.Detail, e.Seq, e.Hash}
	}
	if err := t.InsertRows(enterPremis, rows); err != nil {
		return fmt.Errorf("its preservation events: %w", err)
	}
	return nil
}

// enterVersion notes a version as announced: enterObject makes it visible.
func (t *tx) enterVersion(objectID string, v registry.EnteredVersion) error {
	err := t.Do(`INSERT INTO object_version (object_id, version, item_id, status, plan, files, size_bytes, created_at, recorded_at)
		VALUES ($1, $2, $3, 'intended', '', $4, $5, $6, $7) ON CONFLICT DO NOTHING`,
		objectID, v.Version, v.ItemID, v.Files, v.SizeBytes, sqldb.Micros(v.CreatedAt), sqldb.Micros(v.RecordedAt))
	if err != nil {
		return err
	}
	var checked time.Time
	for i, r := range v.Replicas {
		err := t.Do(`INSERT INTO replica (object_id, version, storage, verified_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`,
			objectID, v.Version, r.Storage, never(r.VerifiedAt))
		if err != nil {
			return fmt.Errorf("its replica in %s: %w", r.Storage, err)
		}
		if i == 0 || r.VerifiedAt.Before(checked) {
			checked = r.VerifiedAt
		}
	}
	if f, known := inventoryFile(registry.Place{Padding: v.Padding}, v.Version, v.Inventory); known {
		if err := t.noteStoredAt(objectID, v.Version, never(checked), f); err != nil {
			return err
		}
	}
	return t.enterReceipt(objectID, v)
}

func (t *tx) enterReceipt(objectID string, v registry.EnteredVersion) error {
	if v.Receipt == nil {
		return nil
	}
	err := t.Do(`INSERT INTO receipt (object_id, version, key_id, head, signature, first_event, last_event, last_hash)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING`, objectID, v.Version, v.Receipt.KeyID, v.Receipt.Head,
		base64.StdEncoding.EncodeToString(v.Receipt.Signature), v.Receipt.FirstEvent, v.Receipt.LastEvent, v.LastHash)
	return err
}

// enterObject makes an object with its entered versions visible.
func (t *tx) enterObject(o registry.EnteredObject) (taken []registry.TakenID, err error) {
	terms, err := encodeTerms(o.Terms)
	if err != nil {
		return nil, err
	}
	err = t.Do(`INSERT INTO object (id, minted_for, tenant, collection, owner, created_at, updated_at, ezid_item, ocfl_id, padding)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING`,
		o.ID, o.MintedFor, sqldb.Tenant, o.Collection, o.Owner, sqldb.Micros(o.CreatedAt), sqldb.Micros(o.UpdatedAt), o.EZIDItem, o.OCFLID, o.Padding)
	if err != nil {
		return nil, err
	}
	for _, id := range o.IDs {
		other, err := t.enterID(id, o.ID)
		if err != nil {
			return nil, err
		} else if other != "" {
			taken = append(taken, registry.TakenID{OwnedID: id, ObjectID: other})
		}
	}
	if o.Deletion != nil {
		if err := t.enterDeletion(*o.Deletion); err != nil {
			return nil, err
		}
	}
	if o.Collection != "" && o.Gone == "" { // a deleted object does not know the profile
		if err := t.enterCollection(o); err != nil {
			return nil, err
		}
	}
	versions, err := t.visible(o.ID, o.Head)
	if err != nil {
		return nil, err
	}
	err = t.Do(`UPDATE object SET head = $2, collection = $3, owner = $4, title = $5, creator = $6, date = $7,
		files = $8, size_bytes = $9, updated_at = $10, terms = $11, gone = $12, adopted = $13 WHERE id = $1 AND head <= $2`,
		o.ID, o.Head, o.Collection, o.Owner, sqldb.Clean(o.Title), sqldb.Clean(o.Creator), sqldb.Clean(o.Date),
		o.Files, o.SizeBytes, sqldb.Micros(o.UpdatedAt), terms, o.Gone, o.Adopted)
	if err != nil {
		return nil, err
	}
	if err := t.enterPlaces(o); err != nil {
		return nil, err
	}
	return taken, t.adoptJobs(o, versions)
}

// enterPlaces notes how far an object's chain lies in the storages, so that nothing of it is written again.
func (t *tx) enterPlaces(o registry.EnteredObject) error {
	for _, p := range o.Evidence {
		err := t.Do(`INSERT INTO evidence (object_id, storage, seq, segments) VALUES ($1, $2, $3, $4)
			ON CONFLICT (object_id, storage) DO UPDATE SET segments = $4, seq = CASE WHEN evidence.seq < $3 THEN $3 ELSE evidence.seq END`,
			o.ID, p.Storage, p.Seq, p.Segments)
		if err != nil {
			return fmt.Errorf("note its events in %s: %w", p.Storage, err)
		}
	}
	return nil
}

// enterID binds a local id to an object. It returns the object that has it, if that is another one that
// has more than a name.
func (t *tx) enterID(id registry.OwnedID, ark string) (other string, err error) {
	if err = t.unbind(id, ark); err == nil {
		err = t.Do(`INSERT INTO identifier (owner, local_id, ark) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`, id.Owner, id.LocalID, ark)
	}
	if err == nil {
		err = t.Get(`SELECT ark FROM identifier WHERE owner = $1 AND local_id = $2`, []any{id.Owner, id.LocalID}, &other)
	}
	if err != nil {
		return "", fmt.Errorf("bind local id %q: %w", id.LocalID, err)
	}
	if other == ark {
		other = ""
	}
	return other, nil
}

// enterDeletion enters the deletion of a tombstone.
func (t *tx) enterDeletion(d registry.Deletion) error {
	var there bool
	if err := t.Get(`SELECT EXISTS (SELECT 1 FROM deletion WHERE object_id = $1 AND status = $2)`, []any{d.ObjectID, d.Status}, &there); err != nil || there {
		return err
	}
	approved := d.AskedAt
	if d.ApprovedAt != nil {
		approved = *d.ApprovedAt
	}
	deleted := int64(0) // of one that goes on
	if d.DeletedAt != nil {
		deleted = sqldb.Micros(*d.DeletedAt)
	} else if d.Status == registry.DeletionDeleted {
		deleted = sqldb.Micros(approved)
	}
	return t.Do(`INSERT INTO deletion (id, object_id, status, reason, asked_by, asked_at, expires_at, closed_by, closed_at, item_id,
		deleted_at, head, inventory, files, tombstone) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`,
		sqldb.NewID(), d.ObjectID, d.Status, d.Reason, d.AskedBy, sqldb.Micros(d.AskedAt), sqldb.Micros(d.AskedAt.Add(registry.AskingLasts)),
		d.ApprovedBy, sqldb.Micros(approved), d.ItemID, deleted, d.Last.Version, d.Last.Inventory, d.Last.Files, d.Tombstone)
}

// enterCollection makes the collection of an object, if it is not known, with a profile that an admin
// must complete. No later profile gets the number of a version that receipts name.
func (t *tx) enterCollection(o registry.EnteredObject) error {
	next := o.ProfileVersion + 1
	var version int
	var text string
	err := t.Get(`SELECT version, profile FROM collection WHERE mnemonic = $1`, []any{o.Collection}, &version, &text)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		profile, err := json.Marshal(o.Profile)
		if err != nil {
			return fmt.Errorf("encode the profile of %s: %w", o.Collection, err)
		}
		return t.Do(`INSERT INTO collection (mnemonic, tenant, profile, created_at, version) VALUES ($1, $2, $3, $4, $5)`,
			o.Collection, sqldb.Tenant, string(profile), t.Now, next)
	case err != nil:
		return fmt.Errorf("look up the collection of %s: %w", o.ID, err)
	case version >= next:
		return nil
	}
	return errors.Join(
		t.Do(`UPDATE collection SET version = $2 WHERE mnemonic = $1`, o.Collection, next),
		t.Do(`INSERT INTO collection_version (mnemonic, version, profile, actor, created_at) VALUES ($1, $2, $3, '', $4) ON CONFLICT DO NOTHING`,
			o.Collection, next, text, t.Now))
}
