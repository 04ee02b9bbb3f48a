package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"

	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// SetFault makes the writer call f before each of its statements. Call it while no write is under
// way.
func (s *Store) SetFault(f func(query string) error) { s.db.SetFault(f) }

// SetReader replaces the pool of readers. Call it before the first read.
func (s *Store) SetReader(db *sql.DB) error { return s.db.SetReader(db) }

// Exec changes rows behind the store's back.
func (s *Store) Exec(ctx context.Context, query string, args ...any) error {
	return s.Write(ctx, func(t *work.Tx) error {
		_, err := t.Exec(query, args...)
		return err
	})
}

// Unready recomputes derived columns from the facts and returns what differs: which items are ready,
// which have a message, which lanes are open, and how much room is reserved.
func (s *Store) Unready(ctx context.Context) (wrong []string, err error) {
	now := strconv.FormatInt(sqldb.Micros(s.db.Now()), 10)
	checks := []struct{ what, query string }{
		{"ready, but it is not", `SELECT i.id FROM work_item i WHERE i.ready = 1 AND (i.status <> 'pending' OR ` + work.Blocked + ` OR i.run_at > ` + now + `)`},
		{"ready, but not rung for", `SELECT i.id FROM work_item i WHERE i.ready = 1 AND (i.nudge_at IS NULL) <> (i.stage LIKE '%:%')`},
		{"ready, but its lane is closed", `SELECT i.id FROM work_item i WHERE i.ready = 1 AND NOT EXISTS (
			SELECT 1 FROM lane l WHERE l.stage = i.stage AND l.collection = i.collection AND l.active = 1)`},
		{"said to be blocked, but it is not", `SELECT i.id FROM work_item i WHERE i.ready = 2 AND NOT (i.status = 'pending' AND ` + work.Blocked + `)`},
		{"set aside, but it is not pending, or nothing covers it", `SELECT i.id FROM work_item i WHERE i.ready = 3 AND (i.status <> 'pending'
			OR ` + work.Blocked + ` OR NOT (` + work.HeldBy + ` OR ` + work.LockedOut + ` OR EXISTS (SELECT 1 FROM putback p WHERE p.key = i.parent_id OR p.key = i.volume OR ` + work.IsOther("p.key") + `)))`},
		{"set aside for a hold that is not its own", `SELECT i.id FROM work_item i WHERE i.ready = 3 AND NOT ` + work.LockedOut + ` AND NOT EXISTS (
			SELECT 1 FROM hold h WHERE h.scope = 'volume' OR h.key = i.id OR h.key = i.parent_id) AND NOT EXISTS (
			SELECT 1 FROM putback p WHERE p.key = i.parent_id OR p.key = i.volume OR ` + work.IsOther("p.key") + `)`},
		{"pending and blocked, but not said to be", `SELECT i.id FROM work_item i WHERE i.status = 'pending' AND ` + work.Blocked + ` AND i.ready <> 2`},
		{"pending and due, but nobody looks at it", `SELECT i.id FROM work_item i WHERE i.status = 'pending' AND i.ready = 0 AND i.run_at <= ` + now + `
			AND i.updated_at = ` + now},
		{"what is still to come of its reservation is wrong", `SELECT r.item_id FROM reservation r JOIN work_item i ON i.id = r.item_id
			WHERE r.remaining <> CASE WHEN r.bytes > i.done_bytes THEN r.bytes - i.done_bytes ELSE 0 END`},
		{"the sum of reservations is wrong", `SELECT p.volume FROM promised p WHERE p.bytes <> COALESCE((
			SELECT SUM(r.remaining) FROM reservation r WHERE r.volume = p.volume), 0)`},
		{"the sum of what failed items keep is wrong", `SELECT k.volume || '/' || k.collection FROM (
			SELECT volume, collection, bytes FROM kept_room UNION ALL
			SELECT r.volume, i.collection, -r.bytes FROM reservation r JOIN work_item i ON i.id = r.item_id WHERE i.status IN ('failed', 'cancelled')) k
			GROUP BY k.volume, k.collection HAVING SUM(k.bytes) <> 0`},
	}
	for _, c := range checks {
		ids, err := s.db.Column(ctx, c.query)
		if err != nil {
			return nil, fmt.Errorf("check %q: %w", c.what, err)
		}
		for _, id := range ids {
			wrong = append(wrong, id+": "+c.what)
		}
	}
	return wrong, s.CheckText(ctx)
}

// CheckText returns an error unless the text index agrees with the items.
func (s *Store) CheckText(ctx context.Context) error {
	if s.db.Dialect.Name() == sqldb.SQLite {
		return s.Exec(ctx, `INSERT INTO item_text (item_text, rank) VALUES ('integrity-check', 1)`)
	}
	wrong, err := s.db.Column(ctx, `SELECT COALESCE(i.id, 'purged') FROM work_item i FULL JOIN item_text x ON x.seq = i.seq
		WHERE i.id IS NULL OR x.seq IS NULL OR (x.name, x.title, x.note, x.places) <> (i.name, i.title, i.note, item_text_places(i.collection, i.status, i.note))`)
	if err == nil && len(wrong) > 0 {
		err = fmt.Errorf("the text index is wrong about items %v", wrong)
	}
	return err
}
