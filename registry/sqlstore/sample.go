package sqlstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/registry"
)

// How PostgreSQL looks for text at places where there are many rows. Its planner takes words to be spread evenly, and would read a
// million rows for a word that is common, but not where it is looked for. So some of the newest rows are looked at first,
// which is enough for a page of what is common there. When it is not, the text is rare there, and all that has it is read.

// looked is how many of the newest rows are looked at for a page. Tests, whose databases are small, make it less.
var looked = 3000

// sample is a list of the newest rows.
type sample struct {
	itemList
	conds  []string // of the places to look at
	behind string   // the cursor's condition; "" for the first page
}

// planText plans a list of what has some text.
func (s *Store) planText(ctx context.Context, q registry.ItemQuery, l itemList, r *reach, at itemCursor) (itemList, error) {
	first := sample{itemList: itemList{order: l.order, limit: l.limit}}
	var err error
	if first.w, err = itemWhere(q, s.dialect.name(), micros(s.now())); err != nil {
		return l, err
	}
	if first.conds, _, err = s.narrow(ctx, r, first.w); err != nil {
		return l, err
	}
	before := len(first.w.conds)
	if err := first.goOn(at); err != nil {
		return l, err
	}
	if len(first.w.conds) > before {
		first.behind = " AND " + first.w.conds[before]
	}
	l.sample = &first
	if err := l.goOn(at); err != nil {
		return l, err
	}
	l.with = `WITH few AS MATERIALIZED (SELECT i.* FROM work_item i` + l.w.String() + `) `
	l.spots = []spot{{from: "few i", order: l.order.by}}
	return l, nil
}

// statement reads the newest rows of each place, and of these only what is younger than the oldest that was looked at in
// every place: a full page of it is the page.
func (l *sample) statement() string {
	each := max(looked, 6*l.limit) / len(l.conds)
	var windows, rows, ends []string
	for n, c := range l.conds {
		windows = append(windows, fmt.Sprintf(`w%d AS MATERIALIZED (SELECT i.* FROM work_item i WHERE i.tenant = '%s' AND %s%s ORDER BY %s LIMIT %d)`,
			n, Tenant, c, l.behind, l.order.by, each))
		rows = append(rows, fmt.Sprintf(`SELECT * FROM w%d`, n))
		ends = append(ends, fmt.Sprintf(`SELECT MIN(created_at) AS at FROM w%d HAVING COUNT(*) = %d`, n, each))
	}
	return `WITH ` + strings.Join(windows, `, `) + ` SELECT ` + itemColumns + `, i.seq FROM (` + strings.Join(rows, ` UNION ALL `) + `) i` +
		l.w.with(`i.created_at > COALESCE((SELECT MAX(at) FROM (`+strings.Join(ends, ` UNION ALL `)+`) e), -1)`) +
		fmt.Sprintf(` ORDER BY %s LIMIT %d`, l.order.by, l.limit)
}
