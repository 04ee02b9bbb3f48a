package search

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

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
	statement, args, err := s.planCount(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("count items: %w", err)
	}
	counts := map[registry.State]int64{}
	if statement == "" {
		return counts, nil // nothing can match
	}
	if err := s.addUp(ctx, statement, args, counts); err != nil {
		return nil, fmt.Errorf("count items: %w", err)
	}
	return counts, nil
}

// planCount returns the statement that counts the items of a query; "" if nothing can match. It reads
// where a list of them would read. If the query says no more than what indexes of places contain, and
// all are to be counted, it reads only indexes.
func (s *Search) planCount(ctx context.Context, q registry.ItemQuery) (statement string, args []any, err error) {
	r := reachOf(q)
	if len(r.places) == 0 {
		return "", nil, nil
	}
	w, err := ItemWhere(q, s.db.Dialect.Name(), sqldb.Micros(s.db.Now()))
	if err != nil {
		return "", nil, err
	}
	if err := s.checkShort(ctx, q, r); err != nil {
		return "", nil, err
	}
	words, err := s.searchFor(ctx, q, r)
	if err != nil || words.none {
		return "", nil, err
	}
	holds, err := s.work.Holds(ctx)
	if err != nil {
		return "", nil, err
	}
	bits := 0
	for _, p := range r.places {
		bits |= decidingBits()[p]
	}
	if len(holds) == 0 {
		bits &^= work.HeldBit
	}
	l := itemList{w: w, order: byAge, limit: q.Most}
	if len(r.batches) == 1 {
		l.order = byRow
	}
	common := false
	if q.Most == 0 && !r.few() && len(words.ids) == 0 {
		if common, err = s.common(ctx, words); err != nil {
			return "", nil, err
		}
	}
	switch {
	case common:
		l.spots = []spot{{from: "work_item i", cond: "1 = 1"}}
	case len(words.terms) > 0 && (words.few || !r.few()):
		if !words.few {
			l.order = byText
		}
		if words.dialect == sqldb.PostgreSQL && q.Most > 0 {
			l.readFound(words, itemCursor{})
		} else {
			l.readByText(words)
		}
	case q.Most == 0 && len(words.terms) == 0 && !r.few() && r.classes == nil && r.by == nil && !r.requeued:
		return s.countPlaces(w, &r, bits), w.Args, nil
	default:
		conds, empty, err := s.narrow(ctx, &r, w)
		if err != nil || empty {
			return "", nil, err
		}
		l.spots = s.spots(r, conds, l.order)
	}
	return s.counts(&l, bits, r.held || r.ids != nil || r.graphs != nil || len(words.ids) > 0), w.Args, nil
}

// counts returns the SQL that counts the first rows of the list, up to its limit; all if that is 0.
// The first rows are read in the list's order, because that is the order of the indexes. Places
// overlap if rows may lie at several. What decides the state is one column, because SQLite sorts what
// it groups, which takes longer with each column.
func (s *Search) counts(l *itemList, bits int, overlap bool) string {
	union, most := " UNION ALL ", ""
	if overlap {
		union = " UNION " // compares whole rows, so that each counts once
	}
	if l.limit > 0 {
		most = fmt.Sprintf(" LIMIT %d", l.limit)
	}
	parts := make([]string, len(l.spots))
	for i, p := range l.spots {
		first := ""
		if l.limit > 0 {
			first = " ORDER BY " + p.order + most
		}
		parts[i] = fmt.Sprintf(`SELECT * FROM (SELECT i.seq AS seq, %s AS place FROM %s%s%s) p%d`,
			placeOf(bits), p.from, l.w.With(p.cond), first, i)
	}
	if l.limit == 0 {
		most = s.db.Dialect.Apart()
	}
	return l.with + `SELECT place, COUNT(*) FROM (` + strings.Join(parts, union) + most + `) c GROUP BY 1`
}

// placeOf is an SQL expression: the status of row i and, if that does not decide the state, its bits
// and its stage. Otherwise these need not be read.
func placeOf(bits int) string {
	sum := "0"
	if bits != 0 {
		sum = work.BitsSum(bits)
	}
	return "CASE WHEN i.status IN " + sqldb.Names(openStatuses()) + " THEN i.status || ' ' || (" + sum + ") || ' ' || i.stage ELSE i.status END"
}

// openStatuses returns the statuses that do not decide a state alone.
var openStatuses = sync.OnceValue(func() (open []registry.Status) {
	for _, status := range registry.Statuses() {
		for p, deciding := range decidingBits() {
			if p.Status == status && deciding != 0 {
				open = append(open, status)
				break
			}
		}
	}
	return open
})

// countPlaces counts by stage and status, which the indexes contain. It reads rows only where these
// do not determine the state; nearly all items are settled.
func (s *Search) countPlaces(w *sqldb.Where, r *reach, all int) string {
	counts := make([]string, len(r.places))
	for i, p := range r.places {
		bits := decidingBits()[p] & all
		text := fmt.Sprintf(`SELECT '%s ' || (%%s) || ' %s' AS place, COUNT(*) AS n FROM %s%s`, p.Status, p.Stage, s.rowsAt(*r, p.Cond()), w.With(p.Cond()))
		if bits == 0 {
			counts[i] = fmt.Sprintf(text, "0")
		} else {
			counts[i] = fmt.Sprintf(text, work.BitsSum(bits)) + " GROUP BY 1"
		}
	}
	return strings.Join(counts, " UNION ALL ")
}

// decidingBits are the bits that decide the state of an item at each place. They are found once, by
// asking for the state of all combinations.
var decidingBits = sync.OnceValue(func() map[work.Place]int {
	deciding := map[work.Place]int{}
	for _, p := range work.Places() {
		action, _ := registry.ActionOf(p.Stage)
		for b := 0; b <= work.AllBits; b++ {
			for i := range work.PositionBits {
				if registry.StateOf(work.PositionOf(action, p.Stage, p.Status, b)) != registry.StateOf(work.PositionOf(action, p.Stage, p.Status, b^1<<i)) {
					deciding[p] |= 1 << i
				}
			}
		}
	}
	return deciding
})

// addUp adds rows of placeOf and count to counts.
func (s *Search) addUp(ctx context.Context, query string, args []any, counts map[registry.State]int64) error {
	return sqldb.Each(s.db.Read.Ask(ctx, query, args...), "", func(row sqldb.Scanner) error {
		var place string
		var n int64
		if err := row.Scan(&place, &n); err != nil {
			return err
		}
		if n == 0 {
			return nil
		}
		status, more, open := strings.Cut(place, " ")
		bits, stage, _ := strings.Cut(more, " ")
		b := 0
		if open {
			var err error
			if b, err = strconv.Atoi(bits); err != nil {
				return err
			}
		}
		action, _ := registry.ActionOf(registry.Stage(stage))
		counts[registry.StateOf(work.PositionOf(action, registry.Stage(stage), registry.Status(status), b))] += n
		return nil
	})
}
