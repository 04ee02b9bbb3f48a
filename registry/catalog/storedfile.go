package catalog

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/bounds"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// insertStored inserts rows of stored files.
var insertStored = sqldb.InsertNew(
	`INSERT INTO stored_file (object_id, content_path, version, size_bytes, digests, checked_at)`, `($1, $2, $3, $4, $5, $6)`)

// noteStored records the stored files of a version, as checked now. A file that the object already
// has, under any name, keeps its row.
func (t *tx) noteStored(objectID string, version int, files ...registry.File) error {
	return t.noteStoredAt(objectID, version, t.Now, files...)
}

// noteStoredAt is noteStored for files that were checked at a time.
func (t *tx) noteStoredAt(objectID string, version int, checked int64, files ...registry.File) error {
	var rows [][]any
	for _, f := range files {
		if f.Deleted || f.ContentPath == "" {
			continue
		}
		digests, err := json.Marshal(f.Digests)
		if err != nil {
			return fmt.Errorf("encode digests of %q: %w", f.Path, err)
		}
		rows = append(rows, []any{objectID, []byte(f.ContentPath), version, f.SizeBytes, string(digests), checked})
	}
	return t.InsertRows(insertStored, rows)
}

// noteInventory records the version's own inventory as a stored file.
func (t *tx) noteInventory(v registry.VersionRecord) error {
	f, known := inventoryFile(registry.Place{Padding: v.Padding}, v.Version, v.Inventory)
	if !known {
		return nil // only in tests
	}
	return t.noteStored(v.ObjectID, v.Version, f)
}

// inventoryFile returns a version's own inventory as a stored file, of its digest as ALGORITHM:HEX.
func inventoryFile(in registry.Place, version int, inventory string) (f registry.File, known bool) {
	algorithm, digest, known := strings.Cut(inventory, ":")
	return registry.File{ContentPath: in.InventoryPath(version), SizeBytes: -1, Digests: map[string]string{algorithm: digest}}, known
}

// StoredFile implements registry.Checking.
func (s *Catalog) StoredFile(ctx context.Context, l registry.Lease) (f registry.StoredFile, err error) {
	err = s.write(ctx, func(t *tx) error {
		it, err := t.Live(l)
		if err == nil {
			f, err = t.storedFile(it)
		}
		return err
	})
	if err != nil {
		return f, fmt.Errorf("look up the file of item %s: %w", l.ItemID, err)
	}
	return f, nil
}

// storedFile returns the file that an item is about. It returns ErrNotFound if its object is being
// deleted.
func (t *tx) storedFile(it registry.WorkItem) (registry.StoredFile, error) {
	var f registry.StoredFile
	spec, ok := registry.ObjectSpecIn(it.Spec)
	if !ok || len(spec.File) == 0 {
		return f, fmt.Errorf("%w: the item is not about a stored file", registry.ErrInvalid)
	}
	f.ObjectID, f.File = spec.ObjectID, spec.File
	var digests string
	var checked int64
	var damaged sql.NullInt64
	err := t.Get(`SELECT s.version, s.size_bytes, s.digests, s.checked_at, s.damaged_at, o.head, o.ocfl_id, o.adopted, o.padding
		FROM stored_file s JOIN object o ON o.id = s.object_id
		WHERE s.object_id = $1 AND s.content_path = $2 AND o.head >= s.version AND o.gone = ''`,
		[]any{f.ObjectID, f.File}, &f.Version, &f.SizeBytes, &digests, &checked, &damaged, &f.Head, &f.OCFLID, &f.Adopted, &f.Padding)
	if errors.Is(err, sql.ErrNoRows) {
		return f, fmt.Errorf("file %q of object %s: %w", f.File, f.ObjectID, registry.ErrNotFound)
	} else if err != nil {
		return f, err
	}
	if f.Digests, err = decodeDigests(digests); err != nil {
		return f, fmt.Errorf("file %q: %w", f.File, err)
	}
	f.CheckedAt, f.DamagedAt = sqldb.FromMicros(checked), sqldb.Optional(damaged)
	f.Storages, err = t.Strings(`SELECT storage FROM replica WHERE object_id = $1 AND version = $2`, f.ObjectID, f.Version)
	slices.Sort(f.Storages)
	return f, err
}

// RecordCheck implements registry.Checking.
func (s *Catalog) RecordCheck(ctx context.Context, l registry.Lease, r registry.CheckRecord) error {
	if err := bounds.Check(l, r); err != nil {
		return err
	}
	err := s.write(ctx, func(t *tx) error {
		it, err := t.Live(l)
		if err != nil {
			return err
		}
		f, err := t.storedFile(it)
		if err != nil {
			return err
		}
		if err := t.writeBetween(subject{it, f.ObjectID, f.Version, fixityEvents}, r.Events...); err != nil {
			return err
		}
		if !r.Right() {
			return t.noteDamaged(it, f, r)
		}
		return t.noteIntact(it, f, r)
	})
	if err != nil {
		return fmt.Errorf("record the check of item %s: %w", l.ItemID, err)
	}
	return nil
}

// checkedEvent is the data of an event about a checked file.
type checkedEvent struct {
	ObjectID string                  `json:"object_id"`
	File     string                  `json:"file"`
	Replicas []registry.ReplicaCheck `json:"replicas,omitempty"`
}

func (t *tx) noteDamaged(it registry.WorkItem, f registry.StoredFile, r registry.CheckRecord) error {
	err := t.Do(`UPDATE stored_file SET damaged_at = COALESCE(damaged_at, $3) WHERE object_id = $1 AND content_path = $2`,
		f.ObjectID, f.File, t.Now)
	if err != nil {
		return err
	}
	return t.Event(it.ID, it.Attempt, registry.EventFileDamaged, work.ActorWorker, checkedEvent{f.ObjectID, sqldb.Clean(string(f.File)), r.Replicas})
}

// noteIntact records that a file is intact. The object's replicas in these storages count as
// verified at the oldest check among its files, since every file was read after it.
func (t *tx) noteIntact(it registry.WorkItem, f registry.StoredFile, r registry.CheckRecord) error {
	err := t.Do(`UPDATE stored_file SET checked_at = $3, damaged_at = NULL WHERE object_id = $1 AND content_path = $2`,
		f.ObjectID, f.File, t.Now)
	if err != nil {
		return err
	}
	for _, c := range r.Replicas {
		err := t.Do(`UPDATE replica SET verified_at = (SELECT MIN(s.checked_at) FROM stored_file s WHERE s.object_id = $1)
			WHERE object_id = $1 AND storage = $2
			AND verified_at < (SELECT MIN(s.checked_at) FROM stored_file s WHERE s.object_id = $1)`, f.ObjectID, c.Storage)
		if err != nil {
			return err
		}
	}
	if f.DamagedAt == nil {
		return nil
	}
	return t.Event(it.ID, it.Attempt, registry.EventFileRight, work.ActorWorker, checkedEvent{f.ObjectID, sqldb.Clean(string(f.File)), r.Replicas})
}

// endCheck frees the file of a settled check for its next check. A failed check keeps the file
// until an operator requeues or deletes the item.
func (t *tx) endCheck(s work.Shift) error {
	if s.Item.Action != registry.FixityCheck || s.Status == registry.Failed {
		return nil
	}
	err := t.Do(`UPDATE stored_file SET item_id = '' WHERE item_id = $1 AND item_id <> ''`, s.Item.ID)
	return err
}
