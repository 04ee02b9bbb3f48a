package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast/holdfast/registry"
)

var selectPosition = `SELECT collection, volume, SUM(ahead), COUNT(*)
	FROM (SELECT i.collection AS collection, i.volume AS volume,
			CASE WHEN (i.rank, i.id) <= (m.rank, m.id) THEN 1 ELSE 0 END AS ahead
		FROM work_item m JOIN work_item i ON i.tenant = m.tenant AND i.status = 'pending' AND i.stage = m.stage
		WHERE m.id = $1 AND i.run_at <= $2 AND NOT ` + blocked + ` AND NOT ` + lockedOut + ` AND ` + heldApart + ` = 0) w
	GROUP BY collection, volume`

// position is an item's place by rank among those of its stage that nothing keeps from starting, and how many collections
// these are of.
func (s *Store) position(ctx context.Context, it registry.WorkItem) (place, ready int64, collections int, err error) {
	holds, err := s.sharedHolds(ctx)
	if err != nil {
		return 0, 0, 0, err
	}
	rows, err := s.read.QueryContext(ctx, selectPosition, it.ID, micros(s.now()))
	if err != nil {
		return 0, 0, 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	seen := map[string]bool{}
	for rows.Next() {
		group := registry.WorkItem{Stage: it.Stage, Status: registry.Pending}
		var ahead, n int64
		if err := rows.Scan(&group.Collection, &group.Volume, &ahead, &n); err != nil {
			return 0, 0, 0, err
		}
		if slices.ContainsFunc(holds, func(h registry.Hold) bool { return h.Covers(group) }) {
			continue
		}
		place, ready, seen[group.Collection] = place+ahead, ready+n, true
	}
	return place, ready, len(seen), rows.Err()
}

// whyQueued gives the item's place, and says when there is nobody to take it.
func (s *Store) whyQueued(ctx context.Context, it registry.WorkItem, w *registry.Why) error {
	place, ready, collections, err := s.position(ctx, it)
	if err != nil {
		return err
	}
	f, err := s.fleet(ctx)
	if err != nil {
		return err
	}
	w.Reason, w.Since = registry.ReasonQueued, it.RunAt
	w.Sentence = fmt.Sprintf("position %d of %d for %s", place, ready, it.Stage)
	if collections > 1 {
		w.Sentence += fmt.Sprintf(", where %d collections take turns", collections)
	}
	w.Act = "nothing: it is taken in its turn; a lower priority number would bring it forward"
	switch c := f.of(it.Stage); {
	case c.capacity > 0:
	case len(c.held) > 0:
		h := c.held[0]
		w.Sentence += fmt.Sprintf("; no worker serves %s: %s", it.Stage, holdSentence(h, it))
		w.Actor, w.Act = h.Actor, releaseAct(h)
	case c.stopping > 0:
		w.Sentence += fmt.Sprintf("; the last worker that serves %s is stopping", it.Stage)
		w.Act = fmt.Sprintf("start a worker for %s", it.Stage)
	default:
		w.Sentence += fmt.Sprintf("; no worker serves %s", it.Stage)
		w.Act = fmt.Sprintf("start a worker for %s", it.Stage)
	}
	return nil
}
