package sqlstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/receipt"
)

// ChainEnds lists where the chains of events end, by object, after one. Objects without a chain are left out. Each is what it was when its
// row was read: chains that grow meanwhile are found shorter or longer, never otherwise.
func (s *Store) ChainEnds(ctx context.Context, after string, limit int) (ends []receipt.ChainEnd, err error) {
	rows, err := s.read.QueryContext(ctx, `SELECT o.id, e.seq, e.hash FROM object o
		JOIN premis_event e ON e.object_id = o.id AND e.seq = (SELECT MAX(l.seq) FROM premis_event l WHERE l.object_id = o.id)
		WHERE o.id > $1 AND e.seq > 0 ORDER BY o.id LIMIT $2`, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list the ends of chains of events: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var e receipt.ChainEnd
		if err := rows.Scan(&e.Object, &e.Seq, &e.Hash); err != nil {
			return nil, fmt.Errorf("list the ends of chains of events: %w", err)
		}
		ends = append(ends, e)
	}
	return ends, rows.Err()
}

// SignCheckpoint signs a checkpoint with the key of receipts, and notes that key as used. It returns nil when this Registry has none.
func (s *Store) SignCheckpoint(ctx context.Context, c receipt.Checkpoint) ([]byte, error) {
	if s.receiptKey == nil {
		return nil, nil
	}
	err := s.write(ctx, func(t *tx) error { return t.noteReceiptKey() })
	if err != nil {
		return nil, fmt.Errorf("sign a checkpoint: %w", err)
	}
	return s.receiptKey.SignCheckpoint(c), nil
}

// noteReceiptKey lists the public key for ever.
func (t *tx) noteReceiptKey() error {
	public := t.store.receiptKey.Public()
	err := t.do(`INSERT INTO receipt_key (id, public_key, first_used_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
		public.ID(), public.String(), t.now)
	if err != nil {
		return fmt.Errorf("note the receipt's key: %w", err)
	}
	return nil
}
