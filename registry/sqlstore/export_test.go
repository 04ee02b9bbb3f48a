package sqlstore

import "database/sql"

// SetFault makes the writer ask f before each of its statements. It must be called while no write is under way.
func (s *Store) SetFault(f func(query string) error) { s.fault = f }

// SetReader replaces the pool that reads go through. It must be called before the first read.
func (s *Store) SetReader(db *sql.DB) error {
	old := s.read.DB
	s.read.DB = db
	return old.Close()
}
