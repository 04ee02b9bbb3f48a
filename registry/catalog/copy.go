package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/bounds"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// AddCopy adds the item that copies an object's version, with all before it, to storages. It adds none
// while one waits or runs, or has failed, since a person must look at that one.
func (s *Catalog) AddCopy(t *work.Tx, objectID string, version int, to []string) (added bool, err error) {
	return s.in(t).addCopy(objectID, version, to)
}

func (t *tx) addCopy(objectID string, version int, to []string) (added bool, err error) {
	id := sqldb.NewID()
	n, err := t.Exec(`INSERT INTO copying (object_id, item_id) VALUES ($1, $2) ON CONFLICT DO NOTHING`, objectID, id)
	if err != nil || n == 0 {
		return false, err
	}
	_, err = t.addItem(id, registry.ObjectRequest{
		Action: registry.CopyObject, Actor: work.ActorRegistry, Spec: registry.ObjectSpec{ObjectID: objectID, Version: version},
	}, to...)
	if err != nil {
		return false, fmt.Errorf("queue a copy of %s: %w", objectID, err)
	}
	return true, nil
}

// PurgeCopies purges completed copies that ended at least so long ago, some at a time.
func (s *Catalog) PurgeCopies(ctx context.Context, keep time.Duration) error {
	old, err := s.completed(ctx, registry.Copy, keep)
	if err == nil && len(old) > 0 {
		err = s.write(ctx, func(t *tx) error {
			_, err := t.purgeCompleted(old)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("purge completed copies: %w", err)
	}
	return nil
}

// RecordCopy implements registry.Copying.
func (s *Catalog) RecordCopy(ctx context.Context, l registry.Lease, c registry.CopyRecord) error {
	if err := bounds.Check(l, c); err != nil {
		return err
	}
	err := s.write(ctx, func(t *tx) error {
		it, err := t.Live(l)
		if err != nil {
			return err
		}
		if it.Action != registry.CopyObject {
			return fmt.Errorf("%w: item %s copies no object", registry.ErrInvalid, it.ID)
		}
		if err := errors.Join(t.requireLock(it.ID, c.ObjectID), t.requirePresent(c.ObjectID)); err != nil {
			return err
		}
		if head, err := t.head(c.ObjectID); err != nil {
			return err
		} else if c.Version < 1 || c.Version > head {
			return fmt.Errorf("%w: version %d of %s is not recorded", registry.ErrInvalid, c.Version, c.ObjectID)
		}
		for _, r := range c.Replicas {
			if !slices.Contains(it.Storages, r.Storage) || r.VerifiedAt.IsZero() {
				return fmt.Errorf("%w: item %s does not copy to storage %q, or has not verified it", registry.ErrInvalid, it.ID, r.Storage)
			}
		}
		retired, err := t.Strings(`SELECT name FROM storage WHERE state = 'retired'`)
		if err != nil {
			return err
		}
		for _, r := range c.Replicas {
			if slices.Contains(retired, r.Storage) {
				return fmt.Errorf("%w: storage %q is retired", registry.ErrInvalid, r.Storage)
			}
		}
		if err := t.addReplicas(c.ObjectID, c.Version, c.Replicas); err != nil {
			return err
		}
		if c.Damaged {
			if err := t.Do(`UPDATE object SET check_asked_at = $2 WHERE id = $1`, c.ObjectID, t.Now); err != nil {
				return err
			}
		}
		return t.writeBetween(subject{it, c.ObjectID, c.Version, copyEvents}, c.Events...)
	})
	if err != nil {
		return fmt.Errorf("record copies of %s: %w", c.ObjectID, err)
	}
	return nil
}

// addReplicas records that storages have a version with all before it.
func (t *tx) addReplicas(objectID string, version int, replicas []registry.Replica) error {
	for _, r := range replicas {
		err := t.Do(`INSERT INTO replica (object_id, version, storage, verified_at)
			SELECT object_id, version, CAST($3 AS TEXT), CAST($4 AS BIGINT) FROM object_version
			WHERE object_id = $1 AND version <= $2 AND status = 'recorded' ON CONFLICT DO NOTHING`,
			objectID, version, r.Storage, sqldb.Micros(r.VerifiedAt))
		if err != nil {
			return fmt.Errorf("record the replica in %s: %w", r.Storage, err)
		}
	}
	return nil
}

// endCopy frees the object of a settled copy for its next one. A failed copy keeps it until an operator
// requeues or deletes the item.
func (t *tx) endCopy(s work.Shift) error {
	if s.Item.Action != registry.CopyObject || s.Status == registry.Failed {
		return nil
	}
	return t.Do(`DELETE FROM copying WHERE item_id = $1`, s.Item.ID)
}
