package sqlstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
)

// CountItems implements registry.Reading. The rows are grouped by what a state is derived from.
func (s *Store) CountItems(ctx context.Context, q registry.ItemQuery) (out map[registry.State]int64, err error) {
	w, err := itemWhere(q)
	if err != nil {
		return nil, fmt.Errorf("count items: %w", err)
	}
	rows, err := s.read.QueryContext(ctx, `SELECT action, stage, status, claimed, open, closings, held, COUNT(*) FROM (
		SELECT i.action, i.stage, i.status,
			CASE WHEN i.attempt > 0 THEN 1 ELSE 0 END AS claimed,
			CASE WHEN i.blocker_count > 0 THEN 1 ELSE 0 END AS open,
			CASE WHEN i.closing > 1 THEN 2 ELSE 0 END AS closings,
			CASE WHEN i.status = 'pending' AND `+heldBy+` THEN 1 ELSE 0 END AS held
		FROM work_item i`+w.String()+`) AS found
		GROUP BY action, stage, status, claimed, open, closings, held`, w.args...)
	if err != nil {
		return nil, fmt.Errorf("count items: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	out = map[registry.State]int64{}
	for rows.Next() {
		var p registry.Position
		var held, n int64
		if err := rows.Scan(&p.Action, &p.Stage, &p.Status, &p.Attempt, &p.Open, &p.Closing, &held, &n); err != nil {
			return nil, fmt.Errorf("count items: %w", err)
		}
		p.Held = held == 1
		out[registry.StateOf(p)] += n
	}
	return out, rows.Err()
}
