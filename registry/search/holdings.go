package search

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// holdingsAge is how old counts of all files may be: they read an index of all files.
const holdingsAge = 10 * time.Minute

// counted keeps the last counts of all files.
type counted struct {
	mu   sync.Mutex
	last registry.Holdings
}

// Holdings implements registry.HoldingsReader.
func (s *Search) Holdings(ctx context.Context) (registry.Holdings, error) {
	s.counted.mu.Lock()
	defer s.counted.mu.Unlock()
	// The first deposit shows at once: to count nothing costs nothing.
	if now := s.db.Now(); s.counted.last.Files == 0 || now.Sub(s.counted.last.At).Abs() > holdingsAge {
		h, err := s.countHoldings(ctx, now)
		if err != nil {
			return h, fmt.Errorf("count what is kept: %w", err)
		}
		s.counted.last = h
	}
	out := s.counted.last
	var err error
	if out.Rooms, err = s.rooms(ctx); err != nil {
		return out, fmt.Errorf("add up reservations: %w", err)
	}
	return out, nil
}

func (s *Search) countHoldings(ctx context.Context, now time.Time) (h registry.Holdings, err error) {
	h.At = now
	days := registry.CheckedDays()
	args, sums, into := []any{}, "", []any{&h.Files}
	h.Checked = make([]registry.CheckedWithin, len(days))
	for i, d := range days {
		h.Checked[i].Days = d
		args = append(args, sqldb.Micros(now.AddDate(0, 0, -d)))
		sums += fmt.Sprintf(`, CAST(COALESCE(SUM(CASE WHEN checked_at >= $%d THEN 1 ELSE 0 END), 0) AS BIGINT)`, i+1)
		into = append(into, &h.Checked[i].Files)
	}
	if s.fixityEvery > 0 {
		h.FixityDays = s.fixityEvery.Hours() / 24
		args = append(args, sqldb.Micros(now.Add(-s.fixityEvery-s.fixityEvery/10)))
		sums += fmt.Sprintf(`, CAST(COALESCE(SUM(CASE WHEN checked_at < $%d THEN 1 ELSE 0 END), 0) AS BIGINT)`, len(args))
		into = append(into, &h.Late)
	}
	if err := s.db.Read.QueryRowContext(ctx, `SELECT COUNT(*)`+sums+` FROM stored_file`, args...).Scan(into...); err != nil {
		return h, err
	}
	h.Copies, err = sqldb.Collect(s.db.Read.Ask(ctx, `SELECT n, COUNT(*) FROM (SELECT COUNT(*) AS n FROM replica GROUP BY object_id, version) c GROUP BY n ORDER BY n`), "",
		func(row sqldb.Scanner) (c registry.CopyCount, err error) {
			err = row.Scan(&c.Copies, &c.Versions)
			return c, err
		})
	return h, err
}

// rooms returns what is reserved on each volume.
func (s *Search) rooms(ctx context.Context) ([]registry.Room, error) {
	return sqldb.Collect(s.db.Read.Ask(ctx, `SELECT p.volume, p.bytes, COALESCE((SELECT `+sqldb.Sum("k.bytes")+` FROM kept_room k WHERE k.volume = p.volume), 0),
		(SELECT COUNT(*) FROM reservation r WHERE r.volume = p.volume) FROM promised p ORDER BY p.volume`), "",
		func(row sqldb.Scanner) (r registry.Room, err error) {
			var kept float64
			err = row.Scan(&r.Volume, &r.Coming, &kept, &r.Items)
			r.Kept = sqldb.Whole(kept)
			return r, err
		})
}
