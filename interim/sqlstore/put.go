package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/holdfast/holdfast/interim"
)

const (
	// DO UPDATE changes nothing, but makes RETURNING work for an existing attempt.
	attemptSQL = `INSERT INTO attempt (item, n, adopted_from) VALUES ($1, $2, $3)
		ON CONFLICT (item, n) DO UPDATE SET n = excluded.n RETURNING id`
	putSQL = `INSERT INTO entry (attempt_id, key, value) VALUES ($1, $2, $3)
		ON CONFLICT (attempt_id, key) DO UPDATE SET value = excluded.value`
)

// Put implements interim.Store. It is one transaction; other writers wait for it.
func (s *Store) Put(ctx context.Context, a interim.Attempt, entries map[string][]byte) error {
	if err := a.Validate(); err != nil {
		return fmt.Errorf("put interim data: %w", err)
	}
	if err := interim.ValidateEntries(entries); err != nil {
		return fmt.Errorf("put interim data of %s: %w", a, err)
	}
	err := s.writing(ctx, func(tx *sql.Tx) error {
		// Never store an attempt without entries: Adopt and Items rely on it.
		if len(entries) == 0 {
			return nil
		}
		var id int64
		if err := s.row(ctx, tx, attemptSQL, a.ItemID, a.N, 0).Scan(&id); err != nil {
			return err
		}
		for key, value := range entries {
			if value == nil {
				value = []byte{} // nil would be NULL
			}
			if _, err := s.exec(ctx, tx, putSQL, id, []byte(key), value); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("put interim data of %s: %w", a, err)
	}
	return nil
}
