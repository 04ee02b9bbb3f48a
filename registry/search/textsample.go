package search

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// How PostgreSQL searches text among many rows. Its planner assumes that words are spread evenly,
// and would read a million rows for a word that is common elsewhere. Its text index returns all
// matches or none. So a list first reads some of the newest rows, which fill a page if the text is
// common there. If they do not, the text is rare there, and all rows with it are read.

// sampleRows is how many of the newest rows are read for a page. Tests with small databases lower
// it.
var sampleRows = 3000

// sampleFactor is how many times more rows are read if the first sample makes a full page likely.
const sampleFactor = 7

// sample is a list that reads only the newest rows.
type sample struct {
	itemList
	conds  []string // conditions of the places to read
	behind string   // the cursor's condition; "" for the first page
}

// sampledFirst reports whether the newest rows are read before the text index.
func (s textSearch) sampledFirst() bool { return len(s.terms) > 0 && s.dialect == sqldb.PostgreSQL }

// planText plans a list of items with some text.
func (s *Search) planText(ctx context.Context, q registry.ItemQuery, l itemList, words textSearch, r *reach, at itemCursor) (itemList, error) {
	if at.order != byAge.name {
		l.order = byText
	}
	if err := l.startAfter(at); err != nil {
		return l, err
	}
	l.readFound(words, at)
	if l.back || at.order == byText.name {
		// Backwards the newest rows are at the other end of the list. In the order of the text index
		// they are on an earlier page.
		l.direct()
		return l, nil
	}
	first := sample{itemList: itemList{order: byAge, limit: l.limit, later: l.later}}
	var err error
	if first.w, err = ItemWhere(q, s.db.Dialect.Name(), sqldb.Micros(s.db.Now())); err != nil {
		return l, err
	}
	if first.conds, _, err = s.narrow(ctx, r, first.w); err != nil {
		return l, err
	}
	if len(first.conds) == 0 {
		first.conds = []string{"TRUE"}
	}
	before := len(first.w.Conds)
	if err := first.startAfter(at); err != nil {
		return l, err
	}
	if len(first.w.Conds) > before {
		first.behind = " AND " + first.w.Conds[before]
	}
	l.sample = &first
	return l, nil
}

// readFound plans to read the rows that the text index finds, row by row: if the planner expected
// many of them, it would read the whole table instead. In the order of the text index it stops when
// the page is full. Later pages of a list that began in another order keep that order, and read all
// rows.
func (l *itemList) readFound(words textSearch, at itemCursor) {
	order, within := l.order, ""
	if l.back {
		order = order.backwards()
	}
	by := order.by
	if l.order.is(byText) {
		by = strings.ReplaceAll(by, "i.seq", "found.seq")
		if at.order != "" {
			within = l.w.Bind(" AND x.seq "+l.beyond()+" ?", at.seq)
		}
		within += " ORDER BY " + strings.ReplaceAll(order.by, "i.seq", "x.seq")
	}
	l.with = `WITH few AS MATERIALIZED ((SELECT i.* FROM ` + words.found(l.w, within) + l.w.String() + ` ORDER BY ` + by + fmt.Sprintf(" LIMIT %d)", l.limit)
	for _, id := range words.ids {
		l.with += ` UNION SELECT i.* FROM work_item i` + l.w.With(idCond(l.w, id))
	}
	l.with += `) `
	l.spots = []spot{{from: "few i", order: l.order.by}}
}

// trySample reads a page of the newest rows, and of more of them if the first sample promises it. A
// page that is not full has no next one, although older rows may match.
func (s *Search) trySample(ctx context.Context, l *sample) (page registry.Page[registry.WorkItem], err error) {
	for _, rows := range []int{max(sampleRows, 6*l.limit), max(sampleFactor*sampleRows, 6*l.limit)} {
		page, err = s.page(ctx, l.itemList, l.statement(rows))
		if err != nil || page.Next != "" || len(page.Rows)*sampleFactor < l.limit {
			break
		}
	}
	return page, err
}

// statement reads the given number of newest rows, the same number at each place. It keeps only
// rows younger than the oldest row read at every place, so that a full page is complete.
func (l *sample) statement(newest int) string {
	each := newest / len(l.conds)
	if len(l.conds) == 1 {
		return `SELECT ` + work.ItemColumns + `, i.seq FROM (` + l.window("i.*", l.conds[0], each) + `) i` +
			l.w.String() + fmt.Sprintf(` ORDER BY %s LIMIT %d`, l.order.by, l.limit)
	}
	var rows, ends []string
	for n, c := range l.conds {
		rows = append(rows, fmt.Sprintf(`SELECT * FROM (%s) w%d`, l.window("i.*", c, each), n))
		ends = append(ends, fmt.Sprintf(`SELECT MIN(at) AS at FROM (%s) w%d HAVING COUNT(*) = %d`, l.window("i.created_at AS at", c, each), n, each))
	}
	return `SELECT ` + work.ItemColumns + `, i.seq FROM (` + strings.Join(rows, ` UNION ALL `) + `) i` +
		l.w.With(`i.created_at > COALESCE((SELECT MAX(at) FROM (`+strings.Join(ends, ` UNION ALL `)+`) e), -1)`) +
		fmt.Sprintf(` ORDER BY %s LIMIT %d`, l.order.by, l.limit)
}

// window selects the newest rows of a place.
func (l *sample) window(columns, cond string, most int) string {
	return fmt.Sprintf(`SELECT %s FROM work_item i WHERE i.tenant = '%s' AND %s%s ORDER BY %s LIMIT %d`,
		columns, sqldb.Tenant, cond, l.behind, l.order.by, most)
}

// SetSampleSizes lowers the bounds of lists, as if the database were larger. It is for tests. undo
// restores the bounds.
func SetSampleSizes(some, newest int) (undo func()) {
	beforeSome, beforeLooked := someRows, sampleRows
	someRows, sampleRows = some, newest
	return func() { someRows, sampleRows = beforeSome, beforeLooked }
}

// SetCommonShare changes from which share of all rows on a text is common. It is for tests. undo
// restores it.
func SetCommonShare(share int64) (undo func()) {
	before := commonShare
	commonShare = share
	return func() { commonShare = before }
}
