package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/interim"
)

const (
	adoptedSQL     = `SELECT adopted_from FROM attempt WHERE item = $1 AND n = $2`
	predecessorSQL = `SELECT id, n FROM attempt WHERE item = $1 AND n < $2 ORDER BY n DESC LIMIT 1`
	copySQL        = `INSERT INTO entry (attempt_id, key, value) SELECT $1, key, value FROM entry WHERE attempt_id = $2`
	dropOlderSQL   = `UPDATE attempt SET item = NULL WHERE item = $1 AND n < $2`
)

// Adopt implements interim.Store. The copy is one INSERT ... SELECT, so that an incomplete copy is
// never seen. It is the only write here that may be long (R25). Other checkpoints wait for it.
// Lease renewals do not: they use the Registry's file.
func (s *Store) Adopt(ctx context.Context, a interim.Attempt) (from int64, err error) {
	if err := a.Validate(); err != nil {
		return 0, fmt.Errorf("adopt interim data: %w", err)
	}
	// Most items never have any, and need no turn as the writer.
	if has, err := s.has(ctx, a.ItemID); err != nil || !has {
		return 0, err
	}
	err = s.writing(ctx, func(tx *sql.Tx) error {
		from, err = s.adopt(ctx, tx, a)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("adopt interim data for %s: %w", a, err)
	}
	if from > 0 {
		// The dropped attempts are already invisible; the next sweep deletes remaining entries.
		if err := s.sweep(ctx); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "deleting interim data of older attempts failed; the next sweep will retry", "item", a.ItemID, "err", err)
		}
	}
	return from, nil
}

func (s *Store) adopt(ctx context.Context, tx *sql.Tx, a interim.Attempt) (from int64, err error) {
	err = s.row(ctx, tx, adoptedSQL, a.ItemID, a.N).Scan(&from)
	if !errors.Is(err, sql.ErrNoRows) {
		return from, err
	}
	var source, target int64
	err = s.row(ctx, tx, predecessorSQL, a.ItemID, a.N).Scan(&source, &from)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	} else if err != nil {
		return 0, fmt.Errorf("find predecessor: %w", err)
	}
	if err := s.row(ctx, tx, attemptSQL, a.ItemID, a.N, from).Scan(&target); err != nil {
		return 0, fmt.Errorf("create attempt: %w", err)
	}
	if _, err := tx.ExecContext(ctx, copySQL, target, source); err != nil {
		return 0, fmt.Errorf("copy entries of attempt %d: %w", from, err)
	}
	if _, err := tx.ExecContext(ctx, dropOlderSQL, a.ItemID, from); err != nil {
		return 0, fmt.Errorf("drop attempts before %d: %w", from, err)
	}
	return from, nil
}
