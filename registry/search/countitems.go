package search

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/bounds"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// CountItems implements registry.ItemReader.
func (s *Search) CountItems(ctx context.Context, q registry.ItemQuery) (map[registry.State]int64, error) {
	if err := bounds.Check(q); err != nil {
		return nil, err
	}
	r := reachOf(q)
	if len(r.places) == 0 {
		return map[registry.State]int64{}, nil
	}
	w, err := ItemWhere(q, s.db.Dialect.Name(), sqldb.Micros(s.db.Now()))
	if err != nil {
		return nil, fmt.Errorf("count items: %w", err)
	}
	if err := s.checkShort(ctx, q, r); err != nil {
		return nil, fmt.Errorf("count items: %w", err)
	}
	words, err := s.searchFor(ctx, q, r)
	if err != nil {
		return nil, fmt.Errorf("count items: %w", err)
	}
	holds, err := s.work.Holds(ctx)
	if err != nil {
		return nil, fmt.Errorf("count items: %w", err)
	}
	var counts map[registry.State]int64
	if len(words.terms) > 0 || r.ids != nil || r.batches != nil || r.graphs != nil || r.classes != nil || r.causes != nil || r.by != nil || r.requeued {
		counts, err = s.addUp(ctx, countFound(w, words, len(holds) > 0), w.Args)
	} else {
		counts, err = s.addUp(ctx, countPlaces(w, &r, len(holds) > 0), w.Args)
	}
	if err != nil {
		return nil, fmt.Errorf("count items: %w", err)
	}
	return counts, nil
}

// countFound counts items of a query that restricts more than stage and status.
func countFound(w *sqldb.Where, words textSearch, held bool) string {
	from := "work_item i"
	if len(words.terms) > 0 && len(words.ids) == 0 {
		from = words.from()
		w.Conds = append(w.Conds, words.cond(w))
	}
	bits := work.AllBits
	if !held {
		bits &^= work.HeldBit
	}
	return `SELECT i.stage, i.status, ` + work.BitsSum(bits) + `, COUNT(*) FROM ` + from + w.String() + ` GROUP BY 1, 2, 3`
}

// countPlaces counts by stage and status, which the indexes contain. It reads rows only where these
// do not determine the state; nearly all items are settled.
func countPlaces(w *sqldb.Where, r *reach, held bool) string {
	counts := make([]string, len(r.places))
	for i, p := range r.places {
		bits := decidingBits(p)
		if !held {
			bits &^= work.HeldBit
		}
		text := fmt.Sprintf(`SELECT '%s' AS stage, '%s' AS status, %%s AS bits, COUNT(*) AS n FROM work_item i%s`, p.Stage, p.Status, w.With(p.Cond()))
		if bits == 0 {
			counts[i] = fmt.Sprintf(text, "0")
		} else {
			counts[i] = fmt.Sprintf(text, work.BitsSum(bits)) + " GROUP BY 3"
		}
	}
	return strings.Join(counts, " UNION ALL ")
}

// decidingBits returns the bits that decide the state of an item at a place.
func decidingBits(p work.Place) (bits int) {
	action, _ := registry.ActionOf(p.Stage)
	for b := 0; b <= work.AllBits; b++ {
		for i := range work.PositionBits {
			if registry.StateOf(work.PositionOf(action, p.Stage, p.Status, b)) != registry.StateOf(work.PositionOf(action, p.Stage, p.Status, b^1<<i)) {
				bits |= 1 << i
			}
		}
	}
	return bits
}

// addUp adds up rows of stage, status, bits and count by state.
func (s *Search) addUp(ctx context.Context, query string, args []any) (counts map[registry.State]int64, err error) {
	counts = map[registry.State]int64{}
	err = sqldb.Each(s.db.Read.Ask(ctx, query, args...), "", func(row sqldb.Scanner) error {
		var at work.Place
		var bits int
		var n int64
		if err := row.Scan(&at.Stage, &at.Status, &bits, &n); err != nil {
			return err
		}
		if n > 0 {
			action, _ := registry.ActionOf(at.Stage)
			counts[registry.StateOf(work.PositionOf(action, at.Stage, at.Status, bits))] += n
		}
		return nil
	})
	return counts, err
}
