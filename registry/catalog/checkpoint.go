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

// ChainEnds lists where the chains of events end, by object, after one. Objects without a chain are
// left out. Each is what it was when its row was read: chains that grow meanwhile are found shorter
// or longer, never otherwise.
func (s *Catalog) ChainEnds(ctx context.Context, after string, limit int) (ends []receipt.ChainEnd, err error) {
	return sqldb.Collect(s.db.Read.Ask(ctx, `SELECT o.id, e.seq, e.hash FROM object o
		JOIN premis_event e ON e.object_id = o.id AND e.seq = (SELECT MAX(l.seq) FROM premis_event l WHERE l.object_id = o.id)
		WHERE o.id > $1 AND e.seq > 0 ORDER BY o.id LIMIT $2`, after, limit), "list the ends of chains of events", func(row sqldb.Scanner) (receipt.ChainEnd, error) {
		var e receipt.ChainEnd
		err := row.Scan(&e.Object, &e.Seq, &e.Hash)
		return e, err
	})
}

// SignCheckpoint signs a checkpoint with the key of receipts, and notes that key as used. It
// returns nil when this Registry has none.
func (s *Catalog) SignCheckpoint(ctx context.Context, c receipt.Checkpoint) ([]byte, error) {
	if s.receiptKey == nil {
		return nil, nil
	}
	err := s.write(ctx, func(t *tx) error { return t.noteReceiptKey() })
	if err != nil {
		return nil, fmt.Errorf("sign a checkpoint: %w", err)
	}
	return s.receiptKey.SignCheckpoint(c), nil
}

// Kinds of events about the acceptance of a record that is older than its checkpoints.
const (
	eventAcceptanceAsked    = "acceptance-asked"
	eventAcceptanceApproved = "acceptance-approved"
)

// AcceptOlder notes that somebody asks to take the record for right although it is older than the
// checkpoints a.Of, with a.Reason, or with approve that another person agrees to what is named by
// agreesTo, its [registry.Acceptance.Request]: registry.ErrNoAcceptance when nobody asks about
// these, registry.ErrSamePerson. When agreesTo names something else, nothing is noted, and what is
// asked for comes back without a consent, to be shown. A repeat returns what is noted, and so does
// everything that is asked of the same after two people have agreed: whoever goes on after a kill
// finds that they did. Another reason, person or gap is another asking, which takes the place of
// the one before and says so.
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
				return fmt.Errorf("decode what was asked for: %w", err)
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
			return fmt.Errorf("%w: who is to agree must be told the reason", registry.ErrInvalid)
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
			return fmt.Errorf("encode what is asked for: %w", err)
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

// noteReceiptKey lists the public key for ever.
func (t *tx) noteReceiptKey() error {
	public := t.store.receiptKey.Public()
	err := t.Do(`INSERT INTO receipt_key (id, public_key, first_used_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
		public.ID(), public.String(), t.Now)
	if err != nil {
		return fmt.Errorf("note the receipt's key: %w", err)
	}
	return nil
}
