package sqlstore

import (
	"context"
	"database/sql"
)

// SetFault makes the writer ask f before each of its statements. It must be called while no write is under way.
func (s *Store) SetFault(f func(query string) error) { s.fault = f }

// SetReader replaces the pool that reads go through. It must be called before the first read.
func (s *Store) SetReader(db *sql.DB) error {
	old := s.read.DB
	s.read.DB = db
	return old.Close()
}

// Exec changes rows behind the store's back.
func (s *Store) Exec(ctx context.Context, query string, args ...any) error {
	return s.write(ctx, func(t *tx) error {
		_, err := t.exec(query, args...)
		return err
	})
}
