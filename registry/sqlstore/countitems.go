package sqlstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
)

// CountItems implements registry.Reading. A settled item's state is its status, which the indexes have; only of the
// others, which are few, are the rows looked at.
func (s *Store) CountItems(ctx context.Context, q registry.ItemQuery) (map[registry.State]int64, error) {
	counts := map[registry.State]int64{}
	r := reachOf(q)
	if len(r.places) == 0 {
		return counts, nil
	}
	words, err := s.searchFor(ctx, q, r)
	if err != nil {
		return nil, fmt.Errorf("count items: %w", err)
	}
	for _, settled := range []bool{true, false} {
		w, err := itemWhere(q, s.dialect.name(), micros(s.now()))
		if err != nil {
			return nil, fmt.Errorf("count items: %w", err)
		}
		if words.clause != "" && len(words.ids) == 0 {
			w.add("i.seq IN (SELECT rowid FROM item_text WHERE item_text MATCH ?)", words.clause)
		}
		if err := s.addCounts(ctx, w, &r, settled, counts); err != nil {
			return nil, fmt.Errorf("count items: %w", err)
		}
	}
	return counts, nil
}

// addCounts counts the settled items that fulfil a condition, or the others.
func (s *Store) addCounts(ctx context.Context, w *where, r *reach, settled bool, counts map[registry.State]int64) (err error) {
	var statuses []registry.Status
	for _, status := range r.statuses() {
		if status.Settled() == settled {
			statuses = append(statuses, status)
		}
	}
	if len(statuses) == 0 {
		return nil
	}
	var stages []registry.Stage
	for _, p := range r.places {
		if len(stages) == 0 || stages[len(stages)-1] != p.stage {
			stages = append(stages, p.stage)
		}
	}
	w.conds = append(w.conds, "i.stage IN "+names(stages), "i.status IN "+names(statuses))
	bits := "0"
	if !settled {
		bits = bitsSum(allBits)
	}
	rows, err := s.read.QueryContext(ctx, `SELECT i.stage, i.status, `+bits+`, COUNT(*) FROM work_item i`+w.String()+
		` GROUP BY i.stage, i.status, 3`, w.args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var at place
		var set int
		var n int64
		if err := rows.Scan(&at.stage, &at.status, &set, &n); err != nil {
			return err
		}
		action, _ := registry.ActionOf(at.stage)
		counts[registry.StateOf(positionOf(action, at.stage, at.status, set))] += n
	}
	return rows.Err()
}
