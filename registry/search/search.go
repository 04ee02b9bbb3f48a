// Package search finds items: pages of lists, counts, groups of failures, the state of the queue.
// It reads what all subjects write, and writes nothing.
package search

import (
	"time"

	"github.com/holdfast/holdfast/registry/outbound"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// Search lists and counts items. Its methods may be called concurrently.
type Search struct {
	db   *sqldb.DB
	work *work.Engine
	out  *outbound.Outbound

	fixityEvery time.Duration // the period of fixity checks; 0: no schedule
	counted     counted
}

// indexedBy names an index for SQLite, which has no statistics here. It is for queries for which it
// would choose a larger one.
func (s *Search) indexedBy(index string) string {
	if s.db.Dialect.Name() == sqldb.SQLite {
		return " INDEXED BY " + index
	}
	return ""
}

// New returns the searches over a Registry, whose stored files are checked again after a time; 0: no
// schedule.
func New(db *sqldb.DB, engine *work.Engine, out *outbound.Outbound, fixityEvery time.Duration) *Search {
	return &Search{db: db, work: engine, out: out, fixityEvery: fixityEvery}
}
