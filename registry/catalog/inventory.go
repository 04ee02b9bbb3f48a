package catalog

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/bounds"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// Intend implements registry.Preserving.
func (s *Catalog) Intend(ctx context.Context, l registry.Lease, in registry.Intent) (registry.Intent, error) {
	if err := bounds.Check(l, in, in.Files); err != nil {
		return registry.Intent{}, err
	}
	var out registry.Intent
	if in.Abandon {
		if err := s.abandonVersion(ctx, l, in); err != nil {
			return out, fmt.Errorf("abandon version %d of %s: %w", in.Version, in.ObjectID, err)
		}
		return in, nil
	}
	err := s.write(ctx, func(t *tx) error {
		out = registry.Intent{ObjectID: in.ObjectID, Version: in.Version}
		it, err := t.Live(l)
		if err != nil {
			return err
		}
		if err := ownObject(it, in.ObjectID); err != nil {
			return err
		}
		var owner, status string
		err = t.Get(`SELECT item_id, status, plan FROM object_version WHERE object_id = $1 AND version = $2`,
			[]any{in.ObjectID, in.Version}, &owner, &status, &out.Staged)
		switch {
		case err != nil && !errors.Is(err, sql.ErrNoRows):
			return err
		case err == nil && owner == l.ItemID: // once it is recorded the item may have no lock
			out.Plan = it.Results[registry.ResultPlan]
			if out.Plan == nil { // an earlier program announced it
				out.Plan, out.Staged = json.RawMessage(out.Staged), ""
				err = t.SetResult(it, registry.ResultPlan, out.Plan)
			}
			return err
		}
		if err := t.requireLock(l.ItemID, in.ObjectID); err != nil {
			return err
		}
		if err == nil {
			return fmt.Errorf("version %d is %s by item %s: %w", in.Version, status, owner, registry.ErrIntentOpen)
		}
		out.Plan, out.Staged = in.Plan, in.Staged
		return t.announce(it, l, in)
	})
	if err != nil {
		return registry.Intent{}, fmt.Errorf("intend version %d of %s: %w", in.Version, in.ObjectID, err)
	}
	return out, nil
}

// announce announces a version that is not announced yet.
func (t *tx) announce(it registry.WorkItem, l registry.Lease, in registry.Intent) error {
	head, err := t.head(in.ObjectID)
	if err != nil {
		return err
	}
	if in.Version != head+1 {
		return fmt.Errorf("head is %d: %w", head, registry.ErrIntentOpen)
	}
	if len(in.Plan) == 0 {
		return fmt.Errorf("it has no plan: %w", registry.ErrNotFound)
	}
	err = t.Do(`INSERT INTO object_version (object_id, version, item_id, status, plan, created_at)
		VALUES ($1, $2, $3, 'intended', $4, $5)`, in.ObjectID, in.Version, l.ItemID, in.Staged, t.Now)
	if err != nil {
		return err
	}
	if err := errors.Join(t.addFiles(in.ObjectID, in.Version, in.Files), t.SetResult(it, registry.ResultPlan, in.Plan), registry.CheckResults(it.Results)); err != nil {
		return err
	}
	if err := t.Commit(l.ItemID, registry.Announced); err != nil {
		return err
	}
	return t.Event(l.ItemID, l.N, registry.EventIntend, "worker", map[string]any{"object_id": in.ObjectID, "version": in.Version})
}

// requireLock returns ErrNotFound unless the item holds the object's lock. Whether the object is
// the item's own is for ownObject.
func (t *tx) requireLock(itemID, objectID string) error {
	var held bool
	err := t.Get(`SELECT EXISTS (SELECT 1 FROM lock WHERE key = $1 AND item_id = $2)`, []any{arkKey(objectID), itemID}, &held)
	if err == nil && !held {
		err = fmt.Errorf("object %s was not identified by item %s: %w", objectID, itemID, registry.ErrNotFound)
	}
	return err
}

// requireAnnounced returns ErrNotFound unless a version is announced, and ErrIntentOpen unless the
// item announced it. recorded is true if it is recorded already.
func (t *tx) requireAnnounced(itemID, objectID string, version int) (recorded bool, err error) {
	var owner, status string
	err = t.Get(`SELECT item_id, status FROM object_version WHERE object_id = $1 AND version = $2`,
		[]any{objectID, version}, &owner, &status)
	if errors.Is(err, sql.ErrNoRows) {
		return false, fmt.Errorf("version %d of %s was not announced: %w", version, objectID, registry.ErrNotFound)
	} else if err != nil {
		return false, err
	}
	if owner != itemID {
		return false, fmt.Errorf("version %d of %s belongs to item %s: %w", version, objectID, owner, registry.ErrIntentOpen)
	}
	return status == "recorded", nil
}

// RecordFiles implements registry.Preserving.
func (s *Catalog) RecordFiles(ctx context.Context, l registry.Lease, objectID string, version int, files []registry.File) error {
	if err := bounds.Check(l, objectID, version, files); err != nil {
		return err
	}
	err := s.write(ctx, func(t *tx) error {
		if err := t.Fence(l); err != nil {
			return err
		}
		recorded, err := t.requireAnnounced(l.ItemID, objectID, version)
		if err != nil || recorded {
			return err
		}
		return t.addFiles(objectID, version, files)
	})
	if err != nil {
		return fmt.Errorf("record files of %s version %d: %w", objectID, version, err)
	}
	return nil
}

// addFiles adds rows to the inventory of an announced version. Existing rows stay.
func (t *tx) addFiles(objectID string, version int, files []registry.File) error {
	if len(files) == 0 {
		return nil
	}
	return errors.Join(t.recordFiles(objectID, version, files), t.noteStored(objectID, version, files...))
}

// insertFile inserts rows of files. A portion that is sent twice counts once.
var insertFile = sqldb.InsertNew(
	`INSERT INTO file (object_id, path, version, content_path, size_bytes, digests, mime_type, format, deleted, modified_at)`,
	`($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`)

func (t *tx) recordFiles(objectID string, version int, files []registry.File) error {
	rows := make([][]any, len(files))
	for i, f := range files {
		digests, err := json.Marshal(f.Digests)
		if err != nil {
			return fmt.Errorf("encode digests of %q: %w", f.Path, err)
		}
		format, err := encodeFormat(f.Format)
		if err != nil {
			return fmt.Errorf("file %q: %w", f.Path, err)
		}
		rows[i] = []any{
			objectID, []byte(f.Path), version, []byte(f.ContentPath), f.SizeBytes, string(digests), f.MIMEType, format, sqldb.Bit(f.Deleted),
			sql.NullInt64{Int64: sqldb.Micros(f.Modified), Valid: !f.Modified.IsZero()},
		}
	}
	return t.InsertRows(insertFile, rows)
}

// encodeFormat returns a format as its column holds it; "" for nil.
func encodeFormat(f *registry.Format) (string, error) {
	if f == nil {
		return "", nil
	}
	text, err := json.Marshal(f)
	if err != nil {
		return "", fmt.Errorf("encode format: %w", err)
	}
	return string(text), nil
}

// decodeFormat decodes what encodeFormat returned.
func decodeFormat(text string) (*registry.Format, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // none is an answer
	}
	f := new(registry.Format)
	if err := json.Unmarshal([]byte(text), f); err != nil {
		return nil, fmt.Errorf("decode format: %w", err)
	}
	return f, nil
}

// RecordVersion implements registry.Preserving.
func (s *Catalog) RecordVersion(ctx context.Context, l registry.Lease, v registry.VersionRecord) error {
	if err := bounds.Check(l, v); err != nil {
		return err
	}
	manifest, err := s.manifest(ctx, l, v)
	if err != nil {
		return fmt.Errorf("record version %d of %s: %w", v.Version, v.ObjectID, err)
	}
	err = s.write(ctx, func(t *tx) error {
		it, err := t.Live(l)
		if err != nil {
			return err
		}
		recorded, err := t.requireAnnounced(it.ID, v.ObjectID, v.Version)
		if err != nil || recorded {
			return err
		}
		if err := errors.Join(ownVersion(it, v), t.requireOwner(it, v.Owner, v.ObjectID)); err != nil {
			return err
		}
		err = t.Do(`UPDATE object_version SET status = 'recorded', plan = '', files = $3, size_bytes = $4, created_at = $5,
			recorded_at = $6 WHERE object_id = $1 AND version = $2`,
			v.ObjectID, v.Version, v.Files, v.SizeBytes, sqldb.Micros(v.CreatedAt), t.Now)
		if err != nil {
			return err
		}
		if err := t.Commit(l.ItemID, registry.Preserved); err != nil {
			return err
		}
		terms, err := t.termsWith(it, v.ObjectID)
		if err != nil {
			return err
		}
		err = t.Do(`UPDATE object SET head = $2, collection = $3, owner = $4, title = $5, creator = $6, date = $7,
			files = $8, size_bytes = $9, updated_at = $10, terms = $11 WHERE id = $1 AND head < $2`,
			v.ObjectID, v.Version, v.Collection, v.Owner, sqldb.Clean(v.Title), sqldb.Clean(v.Creator), sqldb.Clean(v.Date), v.Files, v.SizeBytes, t.Now, terms)
		if err != nil {
			return err
		}
		if err := t.replicas(it, v); err != nil {
			return err
		}
		if err := t.noteInventory(v); err != nil {
			return err
		}
		end, _, err := t.writePremis(subject{it, v.ObjectID, v.Version, recordEvents}, v.Events...)
		if err != nil {
			return err
		}
		if manifest != nil {
			spec, err := work.SpecOf(it)
			if err == nil {
				err = t.signReceipt(it.ID, spec.ProfileVersion, v, manifest, end)
			}
			if err != nil {
				return err
			}
		}
		return t.Event(l.ItemID, l.N, registry.EventRecorded, "worker", map[string]any{"object_id": v.ObjectID, "version": v.Version})
	})
	if err != nil {
		return fmt.Errorf("record version %d of %s: %w", v.Version, v.ObjectID, err)
	}
	return nil
}

// replicas records which storages have the version. Each storage of the item must have verified it.
// A storage that has it also has all earlier versions: those that it lacked came with this one.
func (t *tx) replicas(it registry.WorkItem, v registry.VersionRecord) error {
	for _, name := range it.Storages {
		if !slices.ContainsFunc(v.Replicas, func(r registry.Replica) bool { return r.Storage == name && !r.VerifiedAt.IsZero() }) {
			return fmt.Errorf("%w: it is not verified in storage %q", registry.ErrInvalid, name)
		}
	}
	return t.addReplicas(v.ObjectID, v.Version, v.Replicas)
}
