package search

import (
	"context"
	"fmt"
	"slices"
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
	if q.Most > 0 {
		return s.countUpTo(ctx, q, r)
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
		counts, err = s.addUp(ctx, s.countPlaces(w, &r, len(holds) > 0), w.Args)
	}
	if err != nil {
		return nil, fmt.Errorf("count items: %w", err)
	}
	return counts, nil
}

// countUpTo counts no more than q.Most items. It reads where a list of them would read, so that it
// costs as much as a list of so many rows.
func (s *Search) countUpTo(ctx context.Context, q registry.ItemQuery, r reach) (map[registry.State]int64, error) {
	none := map[registry.State]int64{}
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
	if words.none {
		return none, nil
	}
	holds, err := s.work.Holds(ctx)
	if err != nil {
		return nil, fmt.Errorf("count items: %w", err)
	}
	bits := work.AllBits
	if len(holds) == 0 {
		bits &^= work.HeldBit
	}
	l := itemList{w: w, order: byAge, limit: q.Most}
	if len(r.batches) == 1 {
		l.order = byRow
	}
	if len(words.terms) > 0 && (words.few || !r.indexed()) {
		if !words.few {
			l.order = byText
		}
		l.readByText(words)
	} else {
		conds, empty, err := s.narrow(ctx, &r, w)
		if err != nil {
			return nil, fmt.Errorf("count items: %w", err)
		}
		if empty {
			return none, nil
		}
		l.spots = s.spots(r, conds, l.order)
	}
	counts, err := s.addUp(ctx, l.counts(bits, r.held || r.ids != nil), w.Args)
	if err != nil {
		return nil, fmt.Errorf("count items: %w", err)
	}
	return counts, nil
}

// counts returns the SQL that counts the first rows of the list, up to its limit. They are read in
// its order, because that is the order of the indexes. Places overlap if rows may lie at several.
func (l *itemList) counts(bits int, overlap bool) string {
	union := " UNION ALL "
	if overlap {
		union = " UNION " // compares whole rows, so that each counts once
	}
	parts := make([]string, len(l.spots))
	for i, p := range l.spots {
		parts[i] = fmt.Sprintf(`SELECT * FROM (SELECT i.seq AS seq, i.stage AS stage, i.status AS status, %s AS bits FROM %s) p%d`,
			openBits(bits), l.rows(p), i)
	}
	return `SELECT stage, status, bits, COUNT(*) FROM (` + strings.Join(parts, union) + fmt.Sprintf(` LIMIT %d) c GROUP BY 1, 2, 3`, l.limit)
}

// openBits is work.BitsSum for rows whose status does not decide their state, and 0 for the others,
// whose rows then need not be read.
func openBits(bits int) string {
	var open []string
	for _, status := range registry.Statuses() {
		if slices.ContainsFunc(work.Places(), func(p work.Place) bool { return p.Status == status && decidingBits(p) != 0 }) {
			open = append(open, string(status))
		}
	}
	return "CASE WHEN i.status IN " + sqldb.Names(open) + " THEN " + work.BitsSum(bits) + " ELSE 0 END"
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
func (s *Search) countPlaces(w *sqldb.Where, r *reach, held bool) string {
	counts := make([]string, len(r.places))
	for i, p := range r.places {
		bits := decidingBits(p)
		if !held {
			bits &^= work.HeldBit
		}
		text := fmt.Sprintf(`SELECT '%s' AS stage, '%s' AS status, %%s AS bits, COUNT(*) AS n FROM %s%s`, p.Stage, p.Status, s.rowsAt(*r, p.Cond()), w.With(p.Cond()))
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
