package sqlstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/registry"
)

// CountItems implements registry.Reading.
func (s *Store) CountItems(ctx context.Context, q registry.ItemQuery) (map[registry.State]int64, error) {
	r := reachOf(q)
	if len(r.places) == 0 {
		return map[registry.State]int64{}, nil
	}
	w, err := itemWhere(q, s.dialect.name(), micros(s.now()))
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
	holds, err := s.Holds(ctx)
	if err != nil {
		return nil, fmt.Errorf("count items: %w", err)
	}
	var counts map[registry.State]int64
	if len(words.terms) > 0 || r.ids != nil || r.batches != nil || r.graphs != nil || r.classes != nil || r.causes != nil || r.by != nil || r.requeued {
		counts, err = s.addUp(ctx, countFound(w, words, len(holds) > 0), w.args)
	} else {
		counts, err = s.addUp(ctx, countPlaces(w, &r, len(holds) > 0), w.args)
	}
	if err != nil {
		return nil, fmt.Errorf("count items: %w", err)
	}
	return counts, nil
}

// countFound counts what is found by something else than its place.
func countFound(w *where, words search, held bool) string {
	from := "work_item i"
	if len(words.terms) > 0 && len(words.ids) == 0 {
		from = words.from()
		w.conds = append(w.conds, words.cond(w))
	}
	bits := allBits
	if !held {
		bits &^= heldBit
	}
	return `SELECT i.stage, i.status, ` + bitsSum(bits) + `, COUNT(*) FROM ` + from + w.String() + ` GROUP BY 1, 2, 3`
}

// countPlaces counts place by place, and reads a row only where its state does not follow from its place, which the
// indexes have: nearly all items are settled.
func countPlaces(w *where, r *reach, held bool) string {
	counts := make([]string, len(r.places))
	for i, p := range r.places {
		bits := decisive(p)
		if !held {
			bits &^= heldBit
		}
		text := fmt.Sprintf(`SELECT '%s' AS stage, '%s' AS status, %%s AS bits, COUNT(*) AS n FROM work_item i%s`, p.stage, p.status, w.with(atPlace(p)))
		if bits == 0 {
			counts[i] = fmt.Sprintf(text, "0")
		} else {
			counts[i] = fmt.Sprintf(text, bitsSum(bits)) + " GROUP BY 3"
		}
	}
	return strings.Join(counts, " UNION ALL ")
}

// decisive are the bits that decide which state an item at a place is in.
func decisive(p place) (bits int) {
	action, _ := registry.ActionOf(p.stage)
	for b := 0; b <= allBits; b++ {
		for i := range positionBits {
			if registry.StateOf(positionOf(action, p.stage, p.status, b)) != registry.StateOf(positionOf(action, p.stage, p.status, b^1<<i)) {
				bits |= 1 << i
			}
		}
	}
	return bits
}

// addUp adds up rows of stage, status, bits and how many items have them.
func (s *Store) addUp(ctx context.Context, query string, args []any) (counts map[registry.State]int64, err error) {
	counts = map[registry.State]int64{}
	err = each(s.read.ask(ctx, query, args...), "", func(row scanner) error {
		var at place
		var bits int
		var n int64
		if err := row.Scan(&at.stage, &at.status, &bits, &n); err != nil {
			return err
		}
		if n > 0 {
			action, _ := registry.ActionOf(at.stage)
			counts[registry.StateOf(positionOf(action, at.stage, at.status, bits))] += n
		}
		return nil
	})
	return counts, err
}
