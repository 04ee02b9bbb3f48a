package catalog

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/bounds"
	"github.com/holdfast/holdfast/registry/work"
)

// Identify implements registry.Preserving.
func (s *Catalog) Identify(ctx context.Context, l registry.Lease, r registry.IdentifyRequest) (registry.Identity, error) {
	if err := bounds.Check(l, r); err != nil {
		return registry.Identity{}, err
	}
	var id registry.Identity
	var locked *registry.LockedError
	var seen waiter
	var more bool
	err := s.write(ctx, func(t *tx) error {
		it, err := t.Live(l)
		if err != nil {
			return err
		}
		if it.CreatedAt, err = t.Submitted(it); err != nil {
			return err
		}
		id, locked, err = t.identify(it, r)
		if err == nil && locked == nil && id.Head == 0 { // a recorded object has no barred waiters
			seen, more, err = t.dropBarredWaiters(id.ARK, waiter{})
		}
		return err
	})
	if err == nil && more {
		err = s.dropRemainingBarredWaiters(ctx, l, id.ARK, seen)
	}
	if err == nil && locked != nil {
		err = locked
	}
	if err != nil {
		return registry.Identity{}, fmt.Errorf("identify item %s: %w", l.ItemID, err)
	}
	return id, nil
}

// identify settles which object an item is about, and takes its locks. It returns a lock's holder
// apart from an error, so that the transaction commits and the item keeps its place in the lock's
// line.
func (t *tx) identify(it registry.WorkItem, r registry.IdentifyRequest) (registry.Identity, *registry.LockedError, error) {
	if err := ownRequest(it, r); err != nil {
		return registry.Identity{}, nil, err
	}
	keys := make([]string, 0, len(r.LocalIDs)+len(r.Folders)+1)
	keys = append(keys, r.Folders...)
	for _, local := range r.LocalIDs {
		keys = append(keys, localKey(r.Owner, local))
	}
	id, ok, err := t.settledIdentity(it, r.Refused)
	if err != nil {
		return id, nil, err
	} else if ok {
		// A failed item gave its locks back. Meanwhile the object may have got a newer head, or its
		// name may have been given up and taken by another owner.
		spec, err := work.SpecOf(it)
		if err == nil {
			err = t.requireOwner(it, spec.Profile.Owner, id.ARK)
		}
		if err != nil {
			return registry.Identity{}, nil, err
		}
		locked, err := t.Lock(it, append(keys, arkKey(id.ARK)))
		if err != nil || locked != nil {
			return registry.Identity{}, locked, err
		}
		if err := t.notGone(id.ARK); err != nil {
			return registry.Identity{}, nil, err
		}
		id.Head, err = t.head(id.ARK)
		return id, nil, err
	}
	// Local ids first: what they name cannot change while the item holds their locks.
	if len(keys) > 0 {
		if locked, err := t.Lock(it, keys); err != nil || locked != nil {
			return registry.Identity{}, locked, err
		}
	}
	if id, err = t.resolve(it, r); err != nil {
		return id, nil, err
	}
	if locked, err := t.Lock(it, append(keys, arkKey(id.ARK))); err != nil || locked != nil {
		return registry.Identity{}, locked, err
	}
	if err := t.notGone(id.ARK); err != nil { // only the lock makes the answer last
		return registry.Identity{}, nil, err
	}
	return id, nil, t.bind(it, r, id)
}

// settledIdentity returns the identity that an earlier attempt settled. ok is false if the name no
// longer stands: EZID refused it to this item, or to another item with the same local id and name.
func (t *tx) settledIdentity(it registry.WorkItem, refused string) (id registry.Identity, ok bool, err error) {
	raw, ok := it.Results[registry.ResultARK]
	if !ok {
		return id, false, nil
	}
	if err := json.Unmarshal(raw, &id); err != nil {
		return id, false, fmt.Errorf("decode identity: %w", err)
	}
	if id.ARK == refused {
		if err := t.removeRefusedName(it, id.ARK); err != nil {
			return id, false, err
		}
	}
	err = t.Get(`SELECT EXISTS (SELECT 1 FROM object WHERE id = $1)`, []any{id.ARK}, &ok)
	return id, ok, err
}

// removeRefusedName deletes a name that EZID refused, unless something was stored under it.
func (t *tx) removeRefusedName(it registry.WorkItem, ark string) error {
	if err := t.requireLock(it.ID, ark); err != nil {
		return err
	}
	n, err := t.Exec(`DELETE FROM object WHERE id = $1 AND head = 0 AND ezid_item <> ''
		AND NOT EXISTS (SELECT 1 FROM object_version WHERE object_id = $1)`, ark)
	if err != nil || n == 0 {
		return err
	}
	if err := t.Do(`DELETE FROM identifier WHERE ark = $1`, ark); err != nil {
		return fmt.Errorf("unbind %s: %w", ark, err)
	}
	return t.Event(it.ID, it.Attempt, registry.EventIdentifierRefused, "worker", map[string]any{"ark": ark})
}

// resolve finds the object's name: the supplied one, else the one known by a local id, else the
// proposed one.
func (t *tx) resolve(it registry.WorkItem, r registry.IdentifyRequest) (registry.Identity, error) {
	id := registry.Identity{ARK: r.Supplied}
	for _, local := range r.LocalIDs {
		var known string
		err := t.Get(`SELECT ark FROM identifier WHERE owner = $1 AND local_id = $2`, []any{r.Owner, local}, &known)
		switch {
		case errors.Is(err, sql.ErrNoRows):
		case err != nil:
			return id, fmt.Errorf("look up local id %q: %w", local, err)
		case id.ARK == "":
			id.ARK = known
		case id.ARK != known:
			return id, &registry.IdentifierMismatch{LocalID: local, Known: known, Given: id.ARK}
		}
	}
	switch {
	case r.Existing:
		if err := t.requireVersion(r, id.ARK); err != nil {
			return id, err
		}
	case id.ARK == "":
		id.ARK, id.Minted = r.Proposed, true
		if r.EZID {
			id.EZIDItem = it.ID
		}
		var taken int
		err := t.Get(`SELECT COUNT(*) FROM object WHERE id = $1 AND minted_for <> $2`, []any{id.ARK, it.ID}, &taken)
		if err != nil {
			return id, fmt.Errorf("look up %s: %w", id.ARK, err)
		}
		if taken > 0 {
			return id, fmt.Errorf("%s: %w", id.ARK, registry.ErrTaken)
		}
	}
	if err := t.requireOwner(it, r.Owner, id.ARK); err != nil {
		return id, err
	}
	return id, t.addKnown(&id)
}

// addKnown fills in what the Registry knows of the object: its head, and the item that registers
// its name with EZID.
func (t *tx) addKnown(id *registry.Identity) error {
	err := t.Get(`SELECT head, ezid_item, ocfl_id, adopted, padding FROM object WHERE id = $1`, []any{id.ARK},
		&id.Head, &id.EZIDItem, &id.OCFLID, &id.Adopted, &id.Padding)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("look up %s: %w", id.ARK, err)
	}
	return nil
}

// requireVersion returns a *registry.NoObject for an object without a version. It runs before
// anything is bound to the object's name.
func (t *tx) requireVersion(r registry.IdentifyRequest, ark string) error {
	head, err := t.head(ark)
	if err != nil || head > 0 {
		return err
	}
	none := &registry.NoObject{ARK: r.Supplied}
	if r.Supplied == "" && len(r.LocalIDs) > 0 {
		none.LocalID = r.LocalIDs[0]
	}
	return none
}

// requireOwner returns a *registry.OwnerMismatch if an object belongs to another owner or tenant,
// so that nobody takes over an object by naming it.
func (t *tx) requireOwner(it registry.WorkItem, owner, ark string) error {
	var tenant, whose string
	err := t.Get(`SELECT tenant, owner FROM object WHERE id = $1`, []any{ark}, &tenant, &whose)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	} else if err != nil {
		return fmt.Errorf("look up owner of %s: %w", ark, err)
	}
	if tenant != it.Tenant || whose != owner {
		return &registry.OwnerMismatch{ARK: ark, Owner: owner}
	}
	return nil
}

// bind makes the name durable before anyone uses it (R8, I10).
func (t *tx) bind(it registry.WorkItem, r registry.IdentifyRequest, id registry.Identity) error {
	for _, local := range r.LocalIDs {
		err := t.Do(`INSERT INTO identifier (owner, local_id, ark) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
			r.Owner, local, id.ARK)
		if err != nil {
			return fmt.Errorf("bind local id %q: %w", local, err)
		}
	}
	err := t.Do(`INSERT INTO object (id, minted_for, tenant, collection, owner, created_at, updated_at, ezid_item)
		VALUES ($1, $2, $3, $4, $5, $6, $6, $7) ON CONFLICT DO NOTHING`,
		id.ARK, it.ID, it.Tenant, it.Collection, r.Owner, t.Now, id.EZIDItem)
	if err != nil {
		return fmt.Errorf("bind %s: %w", id.ARK, err)
	}
	raw, err := json.Marshal(id)
	if err != nil {
		return fmt.Errorf("encode identity: %w", err)
	}
	if err := t.SetResult(it, registry.ResultARK, raw); err != nil {
		return err
	}
	return t.Event(it.ID, it.Attempt, registry.EventIdentified, "worker", id)
}

func (t *tx) head(ark string) (int, error) {
	var head int
	err := t.Get(`SELECT head FROM object WHERE id = $1`, []any{ark}, &head)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	} else if err != nil {
		return 0, fmt.Errorf("look up head of %s: %w", ark, err)
	}
	return head, nil
}
