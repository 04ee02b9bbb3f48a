package search

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// How PostgreSQL looks for text where there are many rows. Its planner takes words to be spread
// evenly, and would read a million rows for a word that is common, but not where it is looked for;
// and its text index finds all or nothing. So some of the newest rows are looked at first, which is
// enough for a page of what is common there. When it is not, the text is rare there, and all that
// has it is read.

// looked is how many of the newest rows are looked at for a page. Tests, whose databases are small,
// make it less.
var looked = 3000

// lookedFurther is how many times as many are looked at when the first are likely to lead to a full
// page.
const lookedFurther = 7

// sample is a list of the newest rows.
type sample struct {
	itemList
	conds  []string // of the places to look at
	behind string   // the cursor's condition; "" for the first page
}

// tried says that a search is tried on the newest rows before the text index is asked.
func (s search) tried() bool { return len(s.terms) > 0 && s.dialect == sqldb.PostgreSQL }

// planText plans a list of what has some text.
func (s *Search) planText(ctx context.Context, q registry.ItemQuery, l itemList, words search, r *reach, at itemCursor) (itemList, error) {
	first := sample{itemList: itemList{order: l.order, limit: l.limit}}
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
	if err := first.goOn(at); err != nil {
		return l, err
	}
	if len(first.w.Conds) > before {
		first.behind = " AND " + first.w.Conds[before]
	}
	l.sample = &first
	if err := l.goOn(at); err != nil {
		return l, err
	}
	// What the index found is looked up row by row: what it is thought to find may be so much that
	// the planner would read the whole table for it.
	l.with = `WITH found AS MATERIALIZED (SELECT x.seq FROM item_text x WHERE ` + words.cond(l.w) + `), few AS MATERIALIZED (SELECT i.* FROM found,
		LATERAL (SELECT i.* FROM work_item i WHERE i.seq = found.seq OFFSET 0) i` + l.w.String()
	for _, id := range words.ids {
		l.with += ` UNION SELECT i.* FROM work_item i` + l.w.With(idCond(l.w, id))
	}
	l.with += `) `
	l.spots = []spot{{from: "few i", order: l.order.by}}
	return l, nil
}

// trySample reads a page of the newest rows: of more of them when those that were looked at first
// promise it. The page has no next one when it is not full, which says nothing of older rows.
func (s *Search) trySample(ctx context.Context, l *sample) (page registry.Page[registry.WorkItem], err error) {
	for _, rows := range []int{max(looked, 6*l.limit), max(lookedFurther*looked, 6*l.limit)} {
		page, err = s.page(ctx, l.itemList, l.statement(rows))
		if err != nil || page.Next != "" || len(page.Rows)*lookedFurther < l.limit {
			break
		}
	}
	return page, err
}

// statement reads so many of the newest rows, of each place as many, and of these only what is
// younger than the oldest that was looked at in every place: a full page of it is the page.
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

// window is the newest rows of a place.
func (l *sample) window(columns, cond string, most int) string {
	return fmt.Sprintf(`SELECT %s FROM work_item i WHERE i.tenant = '%s' AND %s%s ORDER BY %s LIMIT %d`,
		columns, sqldb.Tenant, cond, l.behind, l.order.by, most)
}

// LookAt makes lists take fewer rows for many than they do, as in a database that is as many times
// larger: for tests. It returns what undoes that.
func LookAt(some, newest int) (undo func()) {
	beforeSome, beforeLooked := someRows, looked
	someRows, looked = some, newest
	return func() { someRows, looked = beforeSome, beforeLooked }
}
