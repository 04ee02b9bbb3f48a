package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/interim"
)

const (
	dropSQL    = `UPDATE attempt SET item = NULL WHERE item = $1`
	droppedSQL = `SELECT id FROM attempt WHERE item IS NULL ORDER BY id LIMIT 1`
	sweepSQL   = `DELETE FROM entry WHERE attempt_id = $1 AND key IN (SELECT key FROM entry WHERE attempt_id = $1 LIMIT $2)`
	forgetSQL  = `DELETE FROM attempt WHERE id = $1`

	// sweepRows bounds a write transaction (R25).
	sweepRows = 500
)

// Drop implements interim.Store. The attempts become invisible at once and together. Their entries
// are then deleted in batches, so that other writers can proceed. The next Drop or Adopt of any
// item deletes what an interrupted call left. The file keeps its size and reuses the space.
func (s *Store) Drop(ctx context.Context, itemID string) error {
	if itemID == "" {
		return fmt.Errorf("drop interim data without an item: %w", interim.ErrInvalid)
	}
	if has, err := s.has(ctx, itemID); err != nil || !has {
		return err
	}
	more := false
	err := s.writing(ctx, func(tx *sql.Tx) error {
		_, err := s.exec(ctx, tx, dropSQL, itemID)
		if err == nil {
			more, err = s.sweepSome(ctx, tx)
		}
		return err
	})
	if err == nil && more {
		err = s.sweep(ctx)
	}
	if err != nil {
		return fmt.Errorf("drop interim data of %s: %w", itemID, err)
	}
	return nil
}

// sweep deletes the entries of every dropped attempt, and then the attempt. Concurrent sweeps share
// the work.
func (s *Store) sweep(ctx context.Context) error {
	for more := true; more; {
		err := s.writing(ctx, func(tx *sql.Tx) (err error) {
			more, err = s.sweepSome(ctx, tx)
			return err
		})
		if err != nil {
			return fmt.Errorf("sweep dropped entries: %w", err)
		}
	}
	return nil
}

// sweepSome deletes at most sweepRows entries of dropped attempts, and reports whether any may be
// left.
func (s *Store) sweepSome(ctx context.Context, tx *sql.Tx) (more bool, err error) {
	for left := int64(sweepRows); left > 0; {
		var id int64
		err := s.row(ctx, tx, droppedSQL).Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			return false, nil
		} else if err != nil {
			return false, err
		}
		result, err := s.exec(ctx, tx, sweepSQL, id, left)
		if err != nil {
			return false, err
		}
		deleted, err := result.RowsAffected()
		if err != nil {
			return false, err
		}
		if deleted < left {
			if _, err := s.exec(ctx, tx, forgetSQL, id); err != nil {
				return false, err
			}
		}
		left -= max(deleted, 1)
	}
	return true, nil
}
