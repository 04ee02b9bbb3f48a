package catalog

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// ChainEnds returns where the objects' event chains end, and how far each lies in a storage, for at most
// limit objects that sort after the given one. It leaves out objects without a chain. The rows are not one
// snapshot: a chain that grows meanwhile is returned as of the moment when its row was read.
//
// A receipt counts once the step that writes it has ended. One of an earlier format counts only if a later
// one does, with which it was written.
func (s *Catalog) ChainEnds(ctx context.Context, storage, after string, limit int) (ends []receipt.ChainEnd, err error) {
	return sqldb.Collect(s.db.Read.Ask(ctx, `SELECT o.id, e.seq, e.hash, o.gone, COALESCE(k.seq, 0),
		COALESCE((SELECT MAX(c.last_event) FROM receipt c JOIN object_version v ON v.object_id = c.object_id AND v.version = c.version
			LEFT JOIN work_item w ON w.id = v.item_id
			WHERE c.object_id = o.id AND c.head NOT LIKE $4 AND c.head NOT LIKE $5 AND (w.id IS NULL OR w.stage <> $6)
			AND c.version <= (SELECT MAX(r.version) FROM replica r WHERE r.object_id = o.id AND r.storage = $3)), 0)
		FROM object o
		JOIN premis_event e ON e.object_id = o.id AND e.seq = (SELECT MAX(l.seq) FROM premis_event l WHERE l.object_id = o.id)
		LEFT JOIN evidence k ON k.object_id = o.id AND k.storage = $3
		WHERE o.id > $1 AND e.seq > 0 ORDER BY o.id LIMIT $2`, after, limit, sqldb.Clean(storage),
		receipt.Magic+"1,%", receipt.Magic+"2,%", registry.Record), "list the ends of chains of events", func(row sqldb.Scanner) (receipt.ChainEnd, error) {
		var e receipt.ChainEnd
		var gone registry.DeletionStatus
		var inReceipts int64
		err := row.Scan(&e.Object, &e.Seq, &e.Hash, &gone, &e.Kept, &inReceipts)
		if e.Kept = max(e.Kept, inReceipts); gone != "" {
			e.Kept = 0
		}
		return e, err
	})
}

// SignCheckpoint signs a checkpoint with the key for receipts, and lists that key as used. It
// returns nil if this Registry has no key.
func (s *Catalog) SignCheckpoint(ctx context.Context, c receipt.Checkpoint) ([]byte, error) {
	if s.receiptKey == nil {
		return nil, nil
	}
	if err := s.noteReceiptKey(ctx); err != nil {
		return nil, fmt.Errorf("sign a checkpoint: %w", err)
	}
	return s.receiptKey.SignCheckpoint(c), nil
}

// Kinds of events about accepting a record that is older than its checkpoints.
const (
	eventAcceptanceAsked    = "acceptance-asked"
	eventAcceptanceApproved = "acceptance-approved"
)

// AcceptOlder records that people accept a record that is older than the checkpoints a.Of. It needs
// two people. Without approve it records the request of actor with a.Reason. With approve it
// records that actor approves the request that agreesTo names ([registry.Acceptance.Request]).
//
// It returns registry.ErrNoAcceptance if there is no open request for these checkpoints, and
// registry.ErrSamePerson if one person does both. If agreesTo names another request, it changes
// nothing and returns the open request, to be shown. A repeat returns what is recorded. So does
// every call after the approval: a caller that was killed sees that the record is accepted. A
// request with another reason, person or list of checkpoints replaces the one before; Replaces
// names whose.
func (s *Catalog) AcceptOlder(ctx context.Context, a registry.Acceptance, approve bool, agreesTo, actor string) (out registry.Acceptance, err error) {
	const name = "acceptance"
	actor = sqldb.Clean(actor)
	err = s.write(ctx, func(t *tx) error {
		var text string
		out = registry.Acceptance{}
		err := t.Get(`SELECT value FROM setting WHERE name = $1`, []any{name}, &text)
		switch {
		case errors.Is(err, sql.ErrNoRows):
		case err != nil:
			return err
		default:
			if err := json.Unmarshal([]byte(text), &out); err != nil {
				return fmt.Errorf("decode the request: %w", err)
			}
		}
		now := sqldb.FromMicros(t.Now)
		waits := out.Covers(a.Of) && out.Waits(now)
		kind := eventAcceptanceAsked
		switch {
		case out.Covers(a.Of) && out.ApprovedBy != "":
			return nil
		case approve && !waits:
			return registry.ErrNoAcceptance
		case approve:
			if err := t.twoPeople(out.AskedBy, actor); err != nil {
				return err
			}
			if out.Request() != agreesTo {
				return nil
			}
			out.ApprovedBy, out.ApprovedAt, kind = actor, &now, eventAcceptanceApproved
		case strings.TrimSpace(a.Reason) == "":
			return fmt.Errorf("%w: give a reason, for the person who approves it", registry.ErrInvalid)
		case waits && out.AskedBy == actor && out.Reason == sqldb.Clean(a.Reason):
			return nil
		default:
			before := out
			out = registry.Acceptance{Of: a.Of, Reason: sqldb.Clean(a.Reason), AskedBy: actor, AskedAt: now}
			if before.Waits(now) {
				out.Replaces = before.AskedBy
			}
		}
		value, err := json.Marshal(out)
		if err != nil {
			return fmt.Errorf("encode the request: %w", err)
		}
		err = t.Do(`INSERT INTO setting (name, value, reason, actor, at) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (name) DO UPDATE SET value = $2, reason = $3, actor = $4, at = $5`, name, string(value), out.Reason, actor, t.Now)
		if err != nil {
			return err
		}
		return t.Note(work.Entry{Kind: kind, Actor: actor, Data: out})
	})
	if err != nil {
		return registry.Acceptance{}, fmt.Errorf("accept the record as it is: %w", err)
	}
	return out, nil
}

// noteReceiptKey lists the public key, if this Registry has one, and returns its id. It stays listed for
// ever, since old receipts need it.
func (t *tx) noteReceiptKey() (id string, err error) {
	key := t.store.receiptKey
	if key == nil {
		return "", nil
	}
	id = key.Public().ID()
	err = t.Do(`INSERT INTO receipt_key (id, public_key, first_used_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
		id, key.Public().String(), t.Now)
	if err != nil {
		return "", fmt.Errorf("note the receipt's key: %w", err)
	}
	return id, nil
}

// TrustKeys lists public keys with which this Registry's receipts and checkpoints were signed, as a person says.
// Those that are listed already stay as they are.
func (s *Catalog) TrustKeys(ctx context.Context, keys []receipt.PublicKey) error {
	err := s.write(ctx, func(t *tx) error {
		for _, key := range keys {
			err := t.Do(`INSERT INTO receipt_key (id, public_key, first_used_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`, key.ID(), key.String(), t.Now)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("note the keys of receipts: %w", err)
	}
	return nil
}

// noteReceiptKey is that of a transaction of its own, once in this process.
func (s *Catalog) noteReceiptKey(ctx context.Context) error {
	if s.receiptKey == nil || s.keyNoted.Load() {
		return nil
	}
	err := s.write(ctx, func(t *tx) error {
		_, err := t.noteReceiptKey()
		return err
	})
	s.keyNoted.Store(err == nil)
	return err
}
