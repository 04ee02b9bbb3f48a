package catalog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/bounds"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// Kinds of events about deletions, besides those of the item.
const (
	eventDeletionAsked     = "deletion-asked"
	eventDeletionApproved  = "deletion-approved"
	eventDeletionWithdrawn = "deletion-withdrawn"
	eventDeleting          = "deleting"
	eventDeleted           = "object-deleted"
)

const selectDeletion = `SELECT id, object_id, status, reason, asked_by, asked_at, expires_at, closed_by, closed_at, item_id, deleted_at,
	head, inventory, files FROM deletion `

// deletionRow is a deletion with its row's id.
type deletionRow struct {
	id string
	registry.Deletion
}

func scanDeletion(row sqldb.Scanner, now int64) (deletionRow, error) {
	var d deletionRow
	var by string
	var asked, expires, closed, deleted int64
	err := row.Scan(&d.id, &d.ObjectID, &d.Status, &d.Reason, &d.AskedBy, &asked, &expires, &by, &closed, &d.ItemID, &deleted,
		&d.Last.Version, &d.Last.Inventory, &d.Last.Files)
	if err != nil {
		return d, err
	}
	d.AskedAt, d.ExpiresAt = sqldb.FromMicros(asked), sqldb.FromMicros(expires)
	at := sqldb.FromMicros(closed)
	switch {
	case d.Status == registry.DeletionAsked && expires <= now:
		d.Status = registry.DeletionExpired
	case d.Status == registry.DeletionAsked:
	case d.Status == registry.DeletionWithdrawn:
		d.WithdrawnBy, d.WithdrawnAt = by, &at
	default:
		d.ApprovedBy, d.ApprovedAt = by, &at
	}
	if deleted > 0 {
		at := sqldb.FromMicros(deleted)
		d.DeletedAt = &at
	}
	return d, nil
}

// deletion returns an object's latest deletion. ok is false if there was none.
func (t *tx) deletion(objectID string) (d deletionRow, ok bool, err error) {
	d, err = scanDeletion(t.Row(selectDeletion+`WHERE object_id = $1 ORDER BY asked_at DESC, id DESC LIMIT 1`, objectID), t.Now)
	if errors.Is(err, sql.ErrNoRows) {
		return d, false, nil
	} else if err != nil {
		return d, false, fmt.Errorf("look up deletion of %s: %w", objectID, err)
	}
	return d, true, nil
}

// deletionOf is like tx.deletion, for readers. It returns nil if there was none.
func (s *Catalog) deletionOf(ctx context.Context, objectID string) (*registry.Deletion, error) {
	d, err := scanDeletion(s.db.Read.QueryRowContext(ctx, selectDeletion+`WHERE object_id = $1 ORDER BY asked_at DESC, id DESC LIMIT 1`, objectID), sqldb.Micros(s.db.Now()))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil //nolint:nilnil // most objects have none
	} else if err != nil {
		return nil, fmt.Errorf("read deletion of %s: %w", objectID, err)
	}
	return &d.Deletion, nil
}

// Deletions implements registry.Inventory.
func (s *Catalog) Deletions(ctx context.Context, q registry.DeletionQuery) (page registry.Page[registry.Deletion], err error) {
	if err := bounds.Check(q); err != nil {
		return page, err
	}
	now, limit := sqldb.Micros(s.db.Now()), sqldb.PageSize(q.Limit)
	var w sqldb.Where
	w.Add("status = ?", registry.DeletionAsked)
	w.Add("expires_at > ?", now)
	if q.Within != nil {
		w.Conds = append(w.Conds, "object_id IN (SELECT o.id FROM object o WHERE "+w.In("o.collection", q.Within)+")")
	}
	if q.After != "" {
		n, id, err := sqldb.ParseCursor(q.After)
		if err != nil {
			return page, err
		}
		w.Add("(asked_at, object_id) > (?, ?)", n, id)
	}
	query := selectDeletion + w.String() + " ORDER BY asked_at, object_id LIMIT " + strconv.Itoa(limit+1)
	rows, err := sqldb.Collect(s.db.Read.Ask(ctx, query, w.Args...), "list deletions", func(row sqldb.Scanner) (registry.Deletion, error) {
		d, err := scanDeletion(row, now)
		return d.Deletion, err
	})
	return sqldb.PageOf(rows, limit, func(last registry.Deletion) string { return sqldb.Cursor(sqldb.Micros(last.AskedAt), last.ObjectID) }), err
}

// notGone returns a *registry.GoneError for an object that is deleted or being deleted.
func (t *tx) notGone(objectID string) error {
	d, ok, err := t.deletion(objectID)
	if err != nil || !ok || !d.Gone() {
		return err
	}
	return &registry.GoneError{ObjectID: objectID, AskedBy: d.AskedBy, Approved: d.ApprovedBy, At: *d.ApprovedAt, Reason: d.Reason}
}

// decide runs change, which records a decision about an object's deletion, and returns the deletion
// as it is afterwards. change gets the latest deletion. It returns the kind of the event, or "" if
// it wrote nothing.
func (s *Catalog) decide(ctx context.Context, doing, objectID, actor string, change func(t *tx, d deletionRow, known bool) (string, error)) (registry.Deletion, error) {
	var out registry.Deletion
	err := s.write(ctx, func(t *tx) error {
		d, known, err := t.deletion(objectID)
		if err != nil {
			return err
		}
		event, err := change(t, d, known)
		if err == nil && event != "" {
			if d, _, err = t.deletion(objectID); err == nil {
				err = t.deletionEvent(event, actor, d.Deletion)
			}
		}
		out = d.Deletion
		return err
	})
	if err != nil {
		return registry.Deletion{}, fmt.Errorf("%s object %s: %w", doing, objectID, err)
	}
	return out, nil
}

// AskDeletion implements registry.Deciding.
func (s *Catalog) AskDeletion(ctx context.Context, objectID, reason, actor string) (registry.Deletion, error) {
	reason, actor = sqldb.Clean(reason), sqldb.Clean(actor)
	return s.decide(ctx, "ask to delete", objectID, actor, func(t *tx, d deletionRow, known bool) (string, error) {
		if err := t.requirePresent(objectID); err != nil {
			return "", err
		}
		if known {
			open, err := t.openDeletion(d)
			switch {
			case err != nil:
				return "", err
			case open && d.Status == registry.DeletionAsked && d.AskedBy == actor && d.Reason == reason:
				return "", nil // a repeat
			case open:
				return "", fmt.Errorf("%s; %w", d.Text(), registry.ErrAsked)
			}
		}
		return eventDeletionAsked, t.Do(`INSERT INTO deletion (id, object_id, status, reason, asked_by, asked_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			sqldb.NewID(), objectID, registry.DeletionAsked, reason, actor, t.Now, t.Now+registry.AskingLasts.Microseconds())
	})
}

// requirePresent returns ErrNotFound for an object without a recorded version, and a
// *registry.GoneError for a deleted one.
func (t *tx) requirePresent(objectID string) error {
	if sqldb.Clean(objectID) != objectID {
		return registry.ErrNotFound // no stored id looks like this
	}
	if err := t.notGone(objectID); err != nil {
		return err
	}
	head, err := t.head(objectID)
	if err == nil && head == 0 {
		err = registry.ErrNotFound
	}
	return err
}

// openDeletion says whether a deletion can still happen. It cannot if its item was given up before
// the deletion began.
func (t *tx) openDeletion(d deletionRow) (bool, error) {
	switch d.Status {
	case registry.DeletionAsked, registry.DeletionDeleting:
		return true, nil
	case registry.DeletionApproved:
		it, err := t.Item(d.ItemID)
		if errors.Is(err, registry.ErrNotFound) {
			return false, nil // purged
		}
		return err == nil && !slices.Contains([]registry.Status{registry.Aborted, registry.Deleted, registry.Completed}, it.Status), err
	case registry.DeletionWithdrawn, registry.DeletionExpired, registry.DeletionDeleted:
	}
	return false, nil
}

// ApproveDeletion implements registry.Deciding.
func (s *Catalog) ApproveDeletion(ctx context.Context, objectID, actor string) (registry.Deletion, error) {
	actor = sqldb.Clean(actor)
	return s.decide(ctx, "approve the deletion of", objectID, actor, func(t *tx, d deletionRow, known bool) (string, error) {
		if known && d.ApprovedBy == actor && actor != "" {
			return "", nil // a repeat
		}
		if err := t.requirePresent(objectID); err != nil {
			return "", err
		}
		if !known || d.Status != registry.DeletionAsked {
			return "", registry.ErrNotAsked
		}
		if err := t.twoPeople(d.AskedBy, actor); err != nil {
			return "", err
		}
		id, err := t.addObjectItem(registry.ObjectRequest{
			Action: registry.DeleteObject, Spec: registry.ObjectSpec{ObjectID: objectID, Reason: d.Reason}, Actor: actor,
		})
		if err != nil {
			return "", err
		}
		return eventDeletionApproved, t.Do(`UPDATE deletion SET status = $2, closed_by = $3, closed_at = $4, item_id = $5 WHERE id = $1`,
			d.id, registry.DeletionApproved, actor, t.Now, id)
	})
}

// twoPeople returns ErrSamePerson if two actors are the same, or if one of them made the other's
// token.
func (t *tx) twoPeople(a, b string) error {
	var made int
	err := t.Get(`SELECT COUNT(*) FROM token WHERE (name = $1 AND created_by = $2) OR (name = $2 AND created_by = $1)`, []any{a, b}, &made)
	switch {
	case err != nil:
		return fmt.Errorf("look up who made the tokens: %w", err)
	case a == b || b == "":
		return fmt.Errorf("%s made the request: %w", a, registry.ErrSamePerson)
	case made > 0:
		return fmt.Errorf("%s made the request, and one of %s and %s made the other's token: %w", a, a, b, registry.ErrSamePerson)
	}
	return nil
}

// WithdrawDeletion implements registry.Deciding.
func (s *Catalog) WithdrawDeletion(ctx context.Context, objectID, actor string) (registry.Deletion, error) {
	actor = sqldb.Clean(actor)
	return s.decide(ctx, "withdraw the deletion of", objectID, actor, func(t *tx, d deletionRow, known bool) (string, error) {
		switch {
		case !known || d.Status == registry.DeletionExpired:
			return "", registry.ErrNotAsked
		case d.Status == registry.DeletionWithdrawn:
			return "", nil // a repeat
		case d.Status != registry.DeletionAsked:
			return "", fmt.Errorf("%w: %s; its item is %s", registry.ErrNotAsked, d.Text(), d.ItemID)
		}
		return eventDeletionWithdrawn, t.Do(`UPDATE deletion SET status = $2, closed_by = $3, closed_at = $4 WHERE id = $1`,
			d.id, registry.DeletionWithdrawn, actor, t.Now)
	})
}

// deletionEvent records a decision as an event of the object's collection.
func (t *tx) deletionEvent(kind, actor string, d registry.Deletion) error {
	return t.noteObject(d.ObjectID, work.Entry{ItemID: d.ItemID, Kind: kind, Actor: actor, Data: map[string]any{"object_id": d.ObjectID, "reason": d.Reason, "asked_by": d.AskedBy}})
}

// noteObject writes an event about an object, in the object's collection.
func (t *tx) noteObject(objectID string, e work.Entry) error {
	if err := t.Get(`SELECT collection FROM object WHERE id = $1`, []any{objectID}, &e.Collection); err != nil {
		return err
	}
	return t.Note(e)
}

// deletionBy returns the deletion that an attempt's item carries out. It returns ErrNotFound for
// any other item.
func (t *tx) deletionBy(l registry.Lease, objectID string) (deletionRow, error) {
	if err := t.Fence(l); err != nil {
		return deletionRow{}, err
	}
	d, ok, err := t.deletion(objectID)
	if err == nil && (!ok || d.ItemID != l.ItemID) {
		err = fmt.Errorf("item %s has no approved deletion of it: %w", l.ItemID, registry.ErrNotFound)
	}
	return d, err
}

// MarkDeleting implements registry.Deleting.
func (s *Catalog) MarkDeleting(ctx context.Context, l registry.Lease, objectID string, last registry.Remains) (out registry.Deletion, err error) {
	if err := bounds.Check(l, objectID, last); err != nil {
		return out, err
	}
	err = s.write(ctx, func(t *tx) error {
		d, err := t.deletionBy(l, objectID)
		if err != nil {
			return err
		}
		out = d.Deletion
		if err := t.Get(`SELECT ezid_item FROM object WHERE id = $1`, []any{objectID}, &out.EZIDItem); err != nil {
			return err
		}
		if d.Gone() {
			return t.Get(`SELECT tombstone FROM deletion WHERE id = $1`, []any{d.id}, &out.Tombstone)
		}
		if err := t.requireLock(l.ItemID, objectID); err != nil {
			return err
		}
		var open bool
		err = t.Get(`SELECT EXISTS (SELECT 1 FROM object_version WHERE object_id = $1 AND status = 'intended')`, []any{objectID}, &open)
		if err != nil {
			return err
		} else if open {
			return registry.ErrIntentOpen
		}
		if err := t.Do(`UPDATE object SET gone = $2, updated_at = $3 WHERE id = $1`, objectID, registry.DeletionDeleting, t.Now); err != nil {
			return err
		}
		out.Status, out.Last = registry.DeletionDeleting, last
		if out.Tombstone, err = t.tombstone(out); err != nil {
			return err
		}
		err = t.Do(`UPDATE deletion SET status = $2, head = $3, inventory = $4, files = $5, tombstone = $6 WHERE id = $1`,
			d.id, registry.DeletionDeleting, last.Version, last.Inventory, last.Files, out.Tombstone)
		if err != nil {
			return err
		}
		if err := t.Commit(l.ItemID, registry.Announced); err != nil {
			return err
		}
		return t.Event(l.ItemID, l.N, eventDeleting, "worker", map[string]any{"object_id": objectID, "version": last.Version})
	})
	if err != nil {
		return registry.Deletion{}, fmt.Errorf("mark object %s as being deleted: %w", objectID, err)
	}
	return out, nil
}

// tombstone returns the text that the storages keep of an object that is being deleted.
func (t *tx) tombstone(d registry.Deletion) (string, error) {
	stone := receipt.Tombstone{
		Object: d.ObjectID, Reason: d.Reason, AskedBy: d.AskedBy, AskedAt: d.AskedAt, ApprovedBy: d.ApprovedBy, ApprovedAt: *d.ApprovedAt, Item: d.ItemID,
		Last: receipt.Remains{Version: d.Last.Version, Inventory: d.Last.Inventory, Files: d.Last.Files},
	}
	err := t.Get(`SELECT owner, collection FROM object WHERE id = $1`, []any{d.ObjectID}, &stone.Owner, &stone.Collection)
	if err != nil {
		return "", fmt.Errorf("look up %s: %w", d.ObjectID, err)
	}
	if stone.LocalIDs, err = t.localIDs(d.ObjectID, stone.Owner); err != nil {
		return "", err
	}
	end, err := t.chainEnd(d.ObjectID)
	if err != nil {
		return "", err
	}
	stone.LastEvent, stone.LastHash = end.seq, end.hash
	if _, err := t.noteReceiptKey(); err != nil {
		return "", err
	}
	text := t.store.receiptKey.SignTombstone(stone)
	if len(text) > receipt.MaxLine { // a deletion is not refused for its many local ids; the record has them
		stone.LocalIDs = nil
		text = t.store.receiptKey.SignTombstone(stone)
	}
	return string(text), nil
}

// RecordDeletion implements registry.Deleting.
func (s *Catalog) RecordDeletion(ctx context.Context, l registry.Lease, objectID string, events []registry.Premis) error {
	if err := bounds.Check(l, objectID, events); err != nil {
		return err
	}
	err := s.deleteRows(ctx, "stored_file", "content_path", `object_id = $1`, []any{objectID}, func(t *tx) (bool, error) {
		_, err := t.markedDeletion(l, objectID)
		return false, err
	})
	if err != nil {
		return fmt.Errorf("record that object %s is deleted: %w", objectID, err)
	}
	err = s.write(ctx, func(t *tx) error {
		d, err := t.markedDeletion(l, objectID)
		if err != nil || d.Status == registry.DeletionDeleted {
			return err
		}
		if err := t.Do(`UPDATE object SET gone = $2, updated_at = $3 WHERE id = $1`, objectID, registry.DeletionDeleted, t.Now); err != nil {
			return err
		}
		if err := t.Do(`UPDATE deletion SET status = $2, deleted_at = $3 WHERE id = $1`, d.id, registry.DeletionDeleted, t.Now); err != nil {
			return err
		}
		it, err := t.Item(l.ItemID)
		if err != nil {
			return err
		}
		if err := t.writeBetween(subject{it, objectID, 0, deleteEvents}, events...); err != nil { // version 0: all versions
			return err
		}
		return t.Event(l.ItemID, l.N, eventDeleted, "worker", map[string]any{"object_id": objectID, "version": d.Last.Version})
	})
	if err != nil {
		return fmt.Errorf("record that object %s is deleted: %w", objectID, err)
	}
	return nil
}

// markedDeletion returns the deletion that an attempt's item carries out, if it is marked or done.
func (t *tx) markedDeletion(l registry.Lease, objectID string) (deletionRow, error) {
	d, err := t.deletionBy(l, objectID)
	if err == nil && d.Status != registry.DeletionDeleting && d.Status != registry.DeletionDeleted {
		err = fmt.Errorf("it was not marked as being deleted first: %w", registry.ErrInvalid)
	}
	return d, err
}

// deleteRows deletes the rows of a table that meet a condition, in portions (R25). path is the
// column that tells them apart. Each portion's transaction calls done first, and the deletion ends
// if it returns true.
func (s *Catalog) deleteRows(ctx context.Context, table, path, condition string, args []any, done func(*tx) (bool, error)) error {
	for left := int64(1); left > 0; {
		err := s.write(ctx, func(t *tx) error {
			left = 0
			if over, err := done(t); err != nil || over {
				return err
			}
			var err error
			left, err = t.Exec(`DELETE FROM `+table+` WHERE `+condition+` AND `+path+` IN (
				SELECT `+path+` FROM `+table+` WHERE `+condition+` ORDER BY `+path+sqldb.Limit(sqldb.GroupWrites)+`)`, args...)
			return err
		})
		if err != nil {
			return fmt.Errorf("delete rows of %s: %w", table, err)
		}
	}
	return nil
}
