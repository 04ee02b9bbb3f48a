package catalog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/bounds"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// RequestObject implements registry.Requesting.
func (s *Catalog) RequestObject(ctx context.Context, r registry.ObjectRequest) (it registry.WorkItem, err error) {
	r.Spec.Reason = sqldb.Clean(r.Spec.Reason)
	err = s.write(ctx, func(t *tx) error {
		it, err = t.requestObject(r)
		return err
	})
	if err != nil {
		return registry.WorkItem{}, fmt.Errorf("ask for %s of object %s: %w", r.Action, r.Spec.ObjectID, err)
	}
	return it, nil
}

func (t *tx) requestObject(r registry.ObjectRequest) (it registry.WorkItem, err error) {
	if err := r.Check(); err != nil {
		return it, err
	}
	if sqldb.Clean(r.Spec.ObjectID) != r.Spec.ObjectID {
		return it, registry.ErrNotFound // no stored id looks like this
	}
	args, err := work.Fingerprint(struct {
		Action registry.Action
		Spec   registry.ObjectSpec
	}{r.Action, r.Spec})
	if err != nil {
		return it, err
	}
	if err := t.notGone(r.Spec.ObjectID); err != nil {
		return it, err
	}
	id, known, err := t.Keyed(r.IdempotencyKey, args)
	if err != nil {
		return it, err
	}
	if !known {
		if id, err = t.objectItemOf(r); err != nil {
			return it, err
		}
		if err := t.Answer(r.IdempotencyKey, args, id, registry.Act(r.Action), r.Actor); err != nil {
			return it, err
		}
	}
	return t.Item(id)
}

// objectItemOf adds the requested item and returns its id. A file whose check waits, runs or failed
// keeps the item that it has.
func (t *tx) objectItemOf(r registry.ObjectRequest) (id string, err error) {
	if r.Action == registry.RestoreObject {
		return t.addRestoration(r)
	}
	var version int
	err = t.Get(`SELECT item_id, version FROM stored_file WHERE object_id = $1 AND content_path = $2`,
		[]any{r.Spec.ObjectID, r.Spec.File}, &id, &version)
	if errors.Is(err, sql.ErrNoRows) || err == nil && r.Spec.Version != 0 && r.Spec.Version != version {
		return "", registry.ErrNotFound
	} else if err != nil || id != "" {
		return id, err
	}
	r.Spec.Version = version
	return t.addCheck(r.Spec, r.Actor)
}

// addObjectItem adds an item about an object, in the object's collection and with its storages.
func (t *tx) addObjectItem(r registry.ObjectRequest) (id string, err error) {
	return t.addItem(sqldb.NewID(), r)
}

// addItem is addObjectItem for an item that has its id already, and other storages if some are given.
func (t *tx) addItem(id string, r registry.ObjectRequest, storages ...string) (_ string, err error) {
	n := work.NewItem{ID: id, Action: r.Action, Status: registry.Pending, Priority: registry.DefaultPriority, Actor: r.Actor}
	if r.Spec.Version == 0 {
		if r.Spec.Version, err = t.head(r.Spec.ObjectID); err != nil {
			return "", err
		}
	}
	err = t.Get(`SELECT o.tenant, o.collection FROM object o JOIN object_version v ON v.object_id = o.id
		WHERE o.id = $1 AND o.head > 0 AND v.version = $2 AND v.status = 'recorded'`,
		[]any{r.Spec.ObjectID, r.Spec.Version}, &n.Tenant, &n.Collection)
	if errors.Is(err, sql.ErrNoRows) {
		return "", registry.ErrNotFound
	} else if err != nil {
		return "", err
	}
	if n.Storages = storages; len(storages) == 0 {
		n.Storages, err = t.Strings(`SELECT storage FROM replica WHERE object_id = $1 AND version = $2
			ORDER BY CASE storage WHEN '`+registry.DefaultStorage+`' THEN 0 ELSE 1 END, storage`, r.Spec.ObjectID, r.Spec.Version)
	}
	if err != nil {
		return "", fmt.Errorf("look up its replicas: %w", err)
	}
	route, _ := registry.RouteOf(r.Action)
	n.Stage, n.Name, n.Input = route.First(), r.Spec.Title(r.Action), r.Spec
	return n.ID, t.Insert(n)
}

// LockObject implements registry.Locking.
func (s *Catalog) LockObject(ctx context.Context, l registry.Lease, objectID string, folders ...string) (head int, err error) {
	if err := bounds.Check(l, objectID, folders); err != nil {
		return 0, err
	}
	var locked *registry.LockedError
	err = s.write(ctx, func(t *tx) error {
		it, err := t.Live(l)
		if err != nil {
			return err
		}
		if spec, ok := registry.ObjectSpecIn(it.Spec); !it.Action.AboutObject() || !ok || spec.ObjectID != objectID {
			return fmt.Errorf("%w: item %s is not about object %s", registry.ErrInvalid, it.ID, objectID)
		}
		if err := ownFolders(it, folders); err != nil {
			return err
		}
		if it.CreatedAt, err = t.Submitted(it); err != nil {
			return err
		}
		if locked, err = t.Lock(it, append(slices.Clone(folders), arkKey(objectID))); err != nil || locked != nil {
			return err
		}
		// Only the lock makes the answer last: the item that held it before may have deleted the
		// object. Then only a deletion continues.
		if it.Action != registry.DeleteObject {
			if err := t.notGone(objectID); err != nil {
				return err
			}
		}
		if head, err = t.head(objectID); err == nil && head == 0 {
			err = registry.ErrNotFound
		}
		return err
	})
	if err == nil && locked != nil {
		err = locked
	}
	if err != nil {
		return 0, fmt.Errorf("lock object %s: %w", objectID, err)
	}
	return head, nil
}
