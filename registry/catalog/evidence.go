package catalog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// fullSegment is how many routine events are written into the storages without waiting for more.
const fullSegment = 100

// writeBetween is writePremis for events between two versions, which the next receipt may hold only
// years later: they wait to be written into the storages.
func (t *tx) writeBetween(of subject, events ...registry.Premis) error {
	_, added, err := t.writePremis(of, events...)
	if err != nil || added == 0 {
		return err
	}
	since := t.Now
	for _, e := range events {
		if e.Type != fixityCheck || e.Outcome != "success" { // it is no routine
			since = 0
		}
	}
	err = t.Do(`INSERT INTO evidence_wait (object_id, since, events) VALUES ($1, $2, $3)
		ON CONFLICT (object_id) DO UPDATE SET events = evidence_wait.events + $3,
		since = CASE WHEN $2 = 0 OR evidence_wait.events + $3 >= $4 THEN 0 ELSE evidence_wait.since END`,
		of.object, since, added, fullSegment)
	if err != nil {
		return fmt.Errorf("note events of %s to be written: %w", of.object, err)
	}
	return nil
}

// WaitingEvidence implements registry.EvidenceKeeping.
func (s *Catalog) WaitingEvidence(ctx context.Context, q registry.WaitingQuery) (page registry.Page[registry.WaitingEvidence], err error) {
	since, id := int64(-1), ""
	if q.After != "" {
		if since, id, err = sqldb.ParseCursor(q.After); err != nil {
			return page, err
		}
	}
	limit := sqldb.PageSize(q.Limit)
	ask := s.db.Read.Ask(ctx, `SELECT w.object_id, w.since, o.gone, o.ocfl_id, o.adopted, o.padding FROM evidence_wait w JOIN object o ON o.id = w.object_id
		WHERE w.since <= $1 AND (w.since, w.object_id) > ($2, $3) AND o.gone <> $4 ORDER BY w.since, w.object_id LIMIT `+strconv.Itoa(limit+1),
		sqldb.Micros(s.db.Now())-q.Within.Microseconds(), since, id, registry.DeletionDeleting)
	type waiting struct {
		registry.WaitingEvidence
		since int64
	}
	rows, err := sqldb.Collect(ask, "list objects with events to be written", func(row sqldb.Scanner) (w waiting, err error) {
		var gone registry.DeletionStatus
		err = row.Scan(&w.ObjectID, &w.since, &gone, &w.OCFLID, &w.Adopted, &w.Padding)
		w.Deleted = gone != ""
		return w, err
	})
	found := sqldb.PageOf(rows, limit, func(last waiting) string { return sqldb.Cursor(last.since, last.ObjectID) })
	page.Next = found.Next
	for _, w := range found.Rows {
		page.Rows = append(page.Rows, w.WaitingEvidence)
	}
	return page, err
}

// selectPlaces lists how far the chain of an object lies in each storage that has it. A storage has the
// receipts of all versions up to its newest.
const selectPlaces = `SELECT p.storage, p.version, COALESCE(e.seq, -1), COALESCE(e.segments, 0),
	COALESCE((SELECT c.last_event FROM receipt c WHERE c.object_id = $1 AND c.version <= p.version ORDER BY c.version DESC LIMIT 1), 0)
	FROM (SELECT storage, MAX(version) AS version FROM replica WHERE object_id = $1 GROUP BY storage) p
	LEFT JOIN evidence e ON e.object_id = $1 AND e.storage = p.storage ORDER BY p.storage`

func scanPlace(row sqldb.Scanner) (p registry.EvidencePlace, err error) {
	var inReceipts int64
	err = row.Scan(&p.Storage, &p.Version, &p.Seq, &p.Segments, &inReceipts)
	p.Begun = p.Seq >= 0
	p.Seq = max(p.Seq, inReceipts)
	return p, err
}

// EvidencePlaces implements registry.EventsSigning.
func (s *Catalog) EvidencePlaces(ctx context.Context, objectID string) (out registry.EvidencePlaces, err error) {
	if err := s.db.Read.QueryRowContext(ctx, `SELECT COALESCE(MAX(seq), 0) FROM premis_event WHERE object_id = $1`, objectID).Scan(&out.Last); err != nil {
		return out, fmt.Errorf("find the end of the events of %s: %w", objectID, err)
	}
	if out.Places, err = sqldb.Collect(s.db.Read.Ask(ctx, selectPlaces, objectID), "list where events of "+objectID+" are", scanPlace); err != nil {
		return out, err
	}
	out.Lost, err = sqldb.Collect(s.db.Read.Ask(ctx, `SELECT object_id, after_seq, to_seq, hash FROM lost_events WHERE object_id = $1 ORDER BY after_seq, to_seq, hash`, objectID),
		"list events of "+objectID+" whose loss was accepted", func(row sqldb.Scanner) (l registry.LostEvents, err error) {
			return l, row.Scan(&l.ObjectID, &l.After, &l.To, &l.Hash)
		})
	if err == nil && len(out.Lost) > 0 {
		out.Keys, err = s.ReceiptKeys(ctx)
	}
	return out, err
}

// insertLost notes events whose loss was accepted.
var insertLost = sqldb.InsertNew(`INSERT INTO lost_events (object_id, after_seq, to_seq, hash)`, `($1, $2, $3, $4)`)

// NoteLost notes events that the record lost, whose loss two people have accepted, as a signed checkpoint
// says. A repeat changes nothing.
func (s *Catalog) NoteLost(ctx context.Context, lost []registry.LostEvents) error {
	rows := make([][]any, len(lost))
	for i, l := range lost {
		rows[i] = []any{l.ObjectID, l.After, l.To, l.Hash}
	}
	if err := s.write(ctx, func(t *tx) error { return t.InsertRows(insertLost, rows) }); err != nil {
		return fmt.Errorf("note events whose loss was accepted: %w", err)
	}
	return nil
}

// BeginEvidence implements registry.EvidenceKeeping.
func (s *Catalog) BeginEvidence(ctx context.Context, objectID string, storages []string) error {
	err := s.write(ctx, func(t *tx) error {
		if err := t.requirePresent(objectID); err != nil {
			return err
		}
		for _, storage := range storages {
			err := t.Do(`INSERT INTO evidence (object_id, storage, seq, segments) VALUES ($1, $2, 0, 0) ON CONFLICT DO NOTHING`, objectID, storage)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("begin to keep events of %s: %w", objectID, err)
	}
	return nil
}

// KeptEvidence implements registry.EvidenceKeeping.
func (s *Catalog) KeptEvidence(ctx context.Context, k registry.KeptEvidence) error {
	err := s.write(ctx, func(t *tx) error {
		if err := t.requirePresent(k.ObjectID); err != nil {
			return err
		}
		for _, p := range k.Places {
			err := t.Do(`UPDATE evidence SET seq = CASE WHEN seq < $3 THEN $3 ELSE seq END, segments = $4 WHERE object_id = $1 AND storage = $2`,
				k.ObjectID, p.Storage, p.Seq, p.Segments)
			if err != nil {
				return err
			}
		}
		end, err := t.chainEnd(k.ObjectID)
		if err != nil {
			return err
		}
		places, err := sqldb.Collect(t.Ask(selectPlaces, k.ObjectID), "list where events are", scanPlace)
		if err != nil {
			return err
		}
		for _, p := range places {
			if slices.Contains(k.Among, p.Storage) && p.Seq < end.seq {
				return nil
			}
		}
		return t.Do(`DELETE FROM evidence_wait WHERE object_id = $1`, k.ObjectID)
	})
	if err != nil {
		return fmt.Errorf("note which events of %s are kept: %w", k.ObjectID, err)
	}
	return nil
}

// BegunEvidence implements registry.EvidenceKeeping.
func (s *Catalog) BegunEvidence(ctx context.Context, objectID string) ([]string, error) {
	return s.db.Column(ctx, `SELECT storage FROM evidence WHERE object_id = $1 ORDER BY storage`, objectID)
}

// ForgetEvidence implements registry.EvidenceKeeping.
func (s *Catalog) ForgetEvidence(ctx context.Context, objectID string) error {
	err := s.write(ctx, func(t *tx) error {
		return errors.Join(t.Do(`DELETE FROM evidence WHERE object_id = $1`, objectID), t.Do(`DELETE FROM evidence_wait WHERE object_id = $1`, objectID))
	})
	if err != nil {
		return fmt.Errorf("forget where events of %s are: %w", objectID, err)
	}
	return nil
}

// SignEvents implements registry.EventsSigning.
func (s *Catalog) SignEvents(ctx context.Context, objectID string, first, last int64) (head []byte, err error) {
	h := receipt.EventsHeader{Object: objectID, Events: receipt.Span{First: first, Count: last - first + 1, Before: receipt.Zero}}
	if first < 1 || last < first {
		return nil, fmt.Errorf("sign events %d to %d of %s: %w", first, last, objectID, registry.ErrInvalid)
	}
	hash := func(seq int64, to *string) error {
		err := s.db.Read.QueryRowContext(ctx, `SELECT hash FROM premis_event WHERE object_id = $1 AND seq = $2`, objectID, seq).Scan(to)
		if errors.Is(err, sql.ErrNoRows) {
			err = fmt.Errorf("event %d: %w", seq, registry.ErrNotFound)
		}
		return err
	}
	if first > 1 {
		err = hash(first-1, &h.Events.Before)
	}
	if err == nil {
		err = hash(last, &h.Events.After)
	}
	if err == nil {
		err = s.noteReceiptKey(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("sign events %d to %d of %s: %w", first, last, objectID, err)
	}
	return s.receiptKey.SignEvents(h), nil
}
