package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// Identify implements registry.Preserving.
func (s *Store) Identify(ctx context.Context, l registry.Lease, r registry.IdentifyRequest) (registry.Identity, error) {
	var id registry.Identity
	var locked *registry.LockedError
	err := s.write(ctx, func(t *tx) error {
		it, err := t.live(l)
		if err != nil {
			return err
		}
		if it.CreatedAt, err = t.submitted(it); err != nil {
			return err
		}
		id, locked, err = t.identify(it, r)
		return err
	})
	if err == nil && locked != nil {
		err = locked
	}
	if err != nil {
		return registry.Identity{}, fmt.Errorf("identify item %s: %w", l.ItemID, err)
	}
	return id, nil
}

// identify returns a lock's holder apart from an error, so that the item's place in the lock's queue is kept.
func (t *tx) identify(it registry.WorkItem, r registry.IdentifyRequest) (registry.Identity, *registry.LockedError, error) {
	keys := make([]string, 0, len(r.LocalIDs)+len(r.Folders)+1)
	keys = append(keys, r.Folders...)
	for _, local := range r.LocalIDs {
		keys = append(keys, localKey(r.Owner, local))
	}
	id, ok, err := t.named(it, r.Refused)
	if err != nil {
		return id, nil, err
	} else if ok {
		// An item that failed gave its locks back, and the object may have a newer head by now.
		locked, err := t.lock(it, append(keys, arkKey(id.ARK)))
		if err != nil || locked != nil {
			return registry.Identity{}, locked, err
		}
		if err := t.notGone(id.ARK); err != nil {
			return registry.Identity{}, nil, err
		}
		id.Head, err = t.head(id.ARK)
		return id, nil, err
	}
	if err := ownOwner(it, r.Owner); err != nil {
		return id, nil, err
	}
	// Local ids first: what they name cannot change once they are ours.
	if locked, err := t.lock(it, keys); err != nil || locked != nil {
		return registry.Identity{}, locked, err
	}
	if id, err = t.resolve(it, r); err != nil {
		return id, nil, err
	}
	if locked, err := t.lock(it, append(keys, arkKey(id.ARK))); err != nil || locked != nil {
		return registry.Identity{}, locked, err
	}
	if err := t.notGone(id.ARK); err != nil { // asked with the lock in hand
		return registry.Identity{}, nil, err
	}
	return id, nil, t.bind(it, r, id)
}

// The keys of locks. An owner's length goes first, so that no two pairs share a key.
func arkKey(ark string) string { return "ark:" + ark }

func localKey(owner, local string) string {
	return fmt.Sprintf("localid:%d:%s:%s", len(owner), owner, local)
}

// named returns what an earlier attempt settled, while the name stands: not when it is the refused one, nor when another
// item, which had the same local id and the same name, was refused it.
func (t *tx) named(it registry.WorkItem, refused string) (id registry.Identity, ok bool, err error) {
	raw, ok := it.Results[registry.ResultARK]
	if !ok {
		return id, false, nil
	}
	if err := json.Unmarshal(raw, &id); err != nil {
		return id, false, fmt.Errorf("decode identity: %w", err)
	}
	if id.ARK == refused {
		if err := t.unname(it, id.ARK); err != nil {
			return id, false, err
		}
	}
	err = t.get(`SELECT EXISTS (SELECT 1 FROM object WHERE id = $1)`, []any{id.ARK}, &ok)
	return id, ok, err
}

// unname takes a name out of the Registry that nothing was stored under.
func (t *tx) unname(it registry.WorkItem, ark string) error {
	if err := t.owns(it.ID, ark); err != nil {
		return err
	}
	n, err := t.exec(`DELETE FROM object WHERE id = $1 AND head = 0 AND ezid_item <> ''
		AND NOT EXISTS (SELECT 1 FROM object_version WHERE object_id = $1)`, ark)
	if err != nil || n == 0 {
		return err
	}
	if err := t.do(`DELETE FROM identifier WHERE ark = $1`, ark); err != nil {
		return fmt.Errorf("unbind %s: %w", ark, err)
	}
	return t.event(it.ID, it.Attempt, "identifier-refused", "worker", map[string]any{"ark": ark})
}

// resolve finds the object's name: supplied, else known by a local id, else the proposed one.
func (t *tx) resolve(it registry.WorkItem, r registry.IdentifyRequest) (registry.Identity, error) {
	id := registry.Identity{ARK: r.Supplied}
	for _, local := range r.LocalIDs {
		var known string
		err := t.get(`SELECT ark FROM identifier WHERE owner = $1 AND local_id = $2`, []any{r.Owner, local}, &known)
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
		if err := t.exists(r, id.ARK); err != nil {
			return id, err
		}
	case id.ARK == "":
		id.ARK, id.Minted = r.Proposed, true
		if r.EZID {
			id.EZIDItem = it.ID
		}
		var taken int
		err := t.get(`SELECT COUNT(*) FROM object WHERE id = $1 AND minted_for <> $2`, []any{id.ARK, it.ID}, &taken)
		if err != nil {
			return id, fmt.Errorf("look up %s: %w", id.ARK, err)
		}
		if taken > 0 {
			return id, fmt.Errorf("%s: %w", id.ARK, registry.ErrTaken)
		}
	}
	if err := t.owned(it, r, id.ARK); err != nil {
		return id, err
	}
	return id, t.known(&id)
}

// known adds what the Registry has of an object by that name.
func (t *tx) known(id *registry.Identity) error {
	err := t.get(`SELECT head, ezid_item FROM object WHERE id = $1`, []any{id.ARK}, &id.Head, &id.EZIDItem)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("look up %s: %w", id.ARK, err)
	}
	return nil
}

// exists refuses a submission for an object that has no version, before anything is bound to its name.
func (t *tx) exists(r registry.IdentifyRequest, ark string) error {
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

// owned refuses to let a submission take over an object of another owner or tenant by naming it.
func (t *tx) owned(it registry.WorkItem, r registry.IdentifyRequest, ark string) error {
	var tenant, owner string
	err := t.get(`SELECT tenant, owner FROM object WHERE id = $1`, []any{ark}, &tenant, &owner)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	} else if err != nil {
		return fmt.Errorf("look up owner of %s: %w", ark, err)
	}
	if tenant != it.Tenant || owner != r.Owner {
		return &registry.OwnerMismatch{ARK: ark, Owner: r.Owner}
	}
	return nil
}

// bind makes the name durable before anybody uses it (R8, I10).
func (t *tx) bind(it registry.WorkItem, r registry.IdentifyRequest, id registry.Identity) error {
	for _, local := range r.LocalIDs {
		err := t.do(`INSERT INTO identifier (owner, local_id, ark) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
			r.Owner, local, id.ARK)
		if err != nil {
			return fmt.Errorf("bind local id %q: %w", local, err)
		}
	}
	err := t.do(`INSERT INTO object (id, minted_for, tenant, collection, owner, created_at, updated_at, ezid_item)
		VALUES ($1, $2, $3, $4, $5, $6, $6, $7) ON CONFLICT DO NOTHING`,
		id.ARK, it.ID, it.Tenant, it.Collection, r.Owner, t.now, id.EZIDItem)
	if err != nil {
		return fmt.Errorf("bind %s: %w", id.ARK, err)
	}
	raw, err := json.Marshal(id)
	if err != nil {
		return fmt.Errorf("encode identity: %w", err)
	}
	if err := t.setResult(it, registry.ResultARK, raw); err != nil {
		return err
	}
	return t.event(it.ID, it.Attempt, "identifier-assignment", "worker", id)
}

func (t *tx) head(ark string) (int, error) {
	var head int
	err := t.get(`SELECT head FROM object WHERE id = $1`, []any{ark}, &head)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	} else if err != nil {
		return 0, fmt.Errorf("look up head of %s: %w", ark, err)
	}
	return head, nil
}

// lock takes all keys for the item or none. On a refusal the item stands in every key's queue by its time of
// submission, and is woken when a holder settles.
func (t *tx) lock(it registry.WorkItem, keys []string) (*registry.LockedError, error) {
	for _, key := range keys {
		var holder string
		// Whoever has the lock keeps it, also over a lost attempt: those who wait are looked at only for a free one.
		err := t.get(`SELECT COALESCE((SELECT item_id FROM lock WHERE key = $1), (SELECT item_id FROM lock_wait
			WHERE key = $1 AND (submitted_at, item_id) < ($3, $2) ORDER BY submitted_at, item_id LIMIT 1), '')`,
			[]any{key, it.ID, micros(it.CreatedAt)}, &holder)
		if err != nil {
			return nil, fmt.Errorf("look at lock %s: %w", key, err)
		}
		if holder != "" && holder != it.ID {
			return &registry.LockedError{Key: key, ItemID: holder}, t.queueForLocks(it, keys)
		}
	}
	for _, key := range keys {
		if err := t.do(`INSERT INTO lock (key, item_id) VALUES ($1, $2) ON CONFLICT DO NOTHING`, key, it.ID); err != nil {
			return nil, fmt.Errorf("take lock %s: %w", key, err)
		}
	}
	waitedFor, err := t.strings(`DELETE FROM lock_wait WHERE item_id = $1 RETURNING key`, it.ID)
	if err != nil {
		return nil, fmt.Errorf("leave the queues for locks: %w", err)
	}
	return nil, t.nextInLine(slices.DeleteFunc(waitedFor, func(key string) bool { return slices.Contains(keys, key) }))
}

func (t *tx) queueForLocks(it registry.WorkItem, keys []string) error {
	// What was taken on the way goes back: all or none.
	had, err := t.strings(`DELETE FROM lock WHERE item_id = $1 RETURNING key`, it.ID)
	if err != nil {
		return fmt.Errorf("give locks back: %w", err)
	}
	if err := t.standInLine(it.ID, micros(it.CreatedAt), keys); err != nil {
		return err
	}
	return t.nextInLine(had)
}

// submitted is when an item was submitted, which decides on its turn: a job's is its batch's, however late that was expanded.
func (t *tx) submitted(it registry.WorkItem) (time.Time, error) {
	if it.ParentID == "" {
		return it.CreatedAt, nil
	}
	var at int64
	err := t.get(`SELECT created_at FROM work_item WHERE id = $1`, []any{it.ParentID}, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return it.CreatedAt, nil
	} else if err != nil {
		return it.CreatedAt, fmt.Errorf("look when batch %s was submitted: %w", it.ParentID, err)
	}
	return fromMicros(at), nil
}

// standInLine gives an item its place, by its time of submission, in the queues for locks.
func (t *tx) standInLine(itemID string, submitted int64, keys []string) error {
	for _, key := range keys {
		err := t.do(`INSERT INTO lock_wait (key, item_id, submitted_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
			key, itemID, submitted)
		if err != nil {
			return fmt.Errorf("wait for lock %s: %w", key, err)
		}
	}
	return nil
}

// keysOf are the locks that a job is known to need before anybody has looked into its payload, each once.
func keysOf(spec registry.Spec) []string {
	var keys []string
	for _, local := range spec.LocalIDs {
		keys = append(keys, localKey(spec.Profile.Owner, local))
	}
	if spec.PrimaryID != "" {
		keys = append(keys, arkKey(spec.PrimaryID))
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// leaveLine takes a batch out of the queues for locks, where its jobs have its place by now, and wakes those who are first.
func (t *tx) leaveLine(batch string) error {
	keys, err := t.strings(`DELETE FROM lock_wait WHERE item_id = $1 RETURNING key`, batch)
	if err != nil {
		return fmt.Errorf("leave the queues for locks: %w", err)
	}
	return t.nextInLine(keys)
}

// unlock frees what a settled item held or waited for and wakes those who wait for it. An item that failed with a
// version announced and not recorded keeps its locks: nobody else can go on with the object before it was requeued
// and its version rolled forward (R1).
func (t *tx) unlock(itemID string) error {
	var open bool
	err := t.get(`SELECT EXISTS (SELECT 1 FROM object_version WHERE item_id = $1 AND status = 'intended')`, []any{itemID}, &open)
	if err != nil || open {
		return err
	}
	keys, err := t.strings(`DELETE FROM lock WHERE item_id = $1 RETURNING key`, itemID)
	if err != nil {
		return fmt.Errorf("unlock %s: %w", itemID, err)
	}
	waitedFor, err := t.strings(`DELETE FROM lock_wait WHERE item_id = $1 RETURNING key`, itemID)
	if err != nil {
		return fmt.Errorf("unlock %s: %w", itemID, err)
	}
	return t.nextInLine(append(keys, waitedFor...))
}

// nextInLine wakes those who are first in the queues for locks which somebody left, or who were set aside for waiting in
// them. The others have somebody in front of them still, and are woken by him.
func (t *tx) nextInLine(keys []string) error {
	for _, key := range keys {
		var first string
		err := t.get(`SELECT item_id FROM lock_wait WHERE key = $1 ORDER BY submitted_at, item_id LIMIT 1`, []any{key}, &first)
		if errors.Is(err, sql.ErrNoRows) {
			continue
		} else if err != nil {
			return fmt.Errorf("look who waits for lock %s: %w", key, err)
		}
		n, err := t.exec(`UPDATE work_item SET run_at = $2 WHERE id = $1 AND status = 'pending' AND stage IN `+lockedStages, first, t.now)
		if err != nil {
			return fmt.Errorf("wake %s, which waits for lock %s: %w", first, key, err)
		}
		if n == 0 {
			continue
		}
		if err := t.place(first); err != nil {
			return err
		}
	}
	return nil
}
