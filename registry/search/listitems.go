package search

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/bounds"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// order is the order of a list. seq grows with created_at, unless a clock was set back.
type order struct {
	name     string // stored in the cursor: later pages keep the order of the first
	by, back string // forwards, and in the opposite direction
}

var (
	byRow  = order{name: "row", by: "i.row_no, i.seq", back: "i.row_no DESC, i.seq DESC"}
	byAge  = order{name: "age", by: "i.created_at DESC, i.seq DESC", back: "i.created_at, i.seq"}
	byText = order{name: "seq", by: "i.seq DESC", back: "i.seq"} // the order of the text index
)

// backwards returns the order in the opposite direction.
func (o order) backwards() order { return order{name: o.name, by: o.back, back: o.by} }

// is reports whether the order is o, in either direction.
func (o order) is(other order) bool { return o.name == other.name }

// Items implements registry.ItemReader.
func (s *Search) Items(ctx context.Context, q registry.ItemQuery) (page registry.Page[registry.WorkItem], err error) {
	if err := bounds.Check(q); err != nil {
		return page, err
	}
	limit := sqldb.PageSize(q.Limit)
	l, err := s.planList(ctx, q, limit+1)
	if err != nil {
		return page, fmt.Errorf("list items: %w", err)
	}
	if len(l.spots) == 0 {
		return page, nil
	}
	if l.sample != nil {
		page, err = s.trySample(ctx, l.sample)
	}
	if err == nil && page.Next == "" {
		page, err = s.page(ctx, l, l.statement())
	}
	if err != nil {
		return page, fmt.Errorf("list items: %w", err)
	}
	turn(q, &page)
	return page, s.work.NameHolds(ctx, work.Pointers(page.Rows)...)
}

// turn brings a page that was read backwards into the order of its list.
func turn(q registry.ItemQuery, page *registry.Page[registry.WorkItem]) {
	if q.Before == "" {
		return
	}
	slices.Reverse(page.Rows)
	page.Next, page.Prev = page.Prev, page.Next
}

// page reads one page of a list.
func (s *Search) page(ctx context.Context, l itemList, statement string) (registry.Page[registry.WorkItem], error) {
	limit := l.limit - 1
	var seqs []int64
	rows, err := sqldb.Collect(s.db.Read.Ask(ctx, statement, l.w.Args...), "", func(row sqldb.Scanner) (registry.WorkItem, error) {
		var seq int64
		it, err := work.ScanItem(sqldb.WithMore(row, &seq))
		seqs = append(seqs, seq)
		return it, err
	})
	page := sqldb.PageOf(rows, limit, func(last registry.WorkItem) string { return l.cursor(last, seqs[limit-1]) })
	if l.later && len(page.Rows) > 0 {
		page.Prev = l.cursor(page.Rows[0], seqs[0])
	}
	return page, err
}

// itemList is the plan for a page of items: it reads spots that together contain all rows of the
// page.
type itemList struct {
	w      *sqldb.Where // the complete condition, which applies at every spot
	order  order
	later  bool // rows were read before this page
	back   bool // the rows are read in the opposite order
	limit  int
	with   string  // WITH clause before the statement
	sample *sample // what is read first, or nil
	spots  []spot  // none: no row matches
}

// spot is a part of an index, in the order of the list.
type spot struct {
	from  string
	cond  string
	order string
	seq   string // the column of the text index with the items' seq, if it is read by that index
}

// planList plans how a list is read.
func (s *Search) planList(ctx context.Context, q registry.ItemQuery, limit int) (l itemList, err error) {
	l = itemList{order: byAge, limit: limit}
	if l.w, err = ItemWhere(q, s.db.Dialect.Name(), sqldb.Micros(s.db.Now())); err != nil {
		return l, err
	}
	r := reachOf(q)
	if len(r.batches) == 1 {
		l.order = byRow
	}
	at, err := cursorOf(q)
	if err != nil {
		return l, err
	}
	l.later, l.back = at.order != "", q.Oldest != (q.Before != "")
	if err := s.checkShort(ctx, q, r); err != nil {
		return l, err
	}
	words, err := s.searchFor(ctx, q, r)
	if err != nil {
		return l, err
	}
	switch {
	case words.none:
		return l, nil
	case words.sampledFirst() && r.batches == nil && r.graphs == nil:
		many, empty, err := s.manyRows(ctx, &r)
		if err != nil || empty {
			return l, err
		}
		if many || at.order == byText.name {
			return s.planText(ctx, q, l, words, &r, at)
		}
		conds, empty, err := s.narrow(ctx, &r, l.w)
		if err != nil || empty {
			return l, err
		}
		l.readFewFirst(conds)
	case !words.few:
		conds, empty, err := s.narrow(ctx, &r, l.w)
		if err != nil || empty {
			return l, err
		}
		if l.order.is(byAge) && at.order != byAge.name && len(words.terms) > 0 {
			many, _, err := s.manyRows(ctx, &r)
			if err != nil {
				return l, err
			}
			if many || at.order == byText.name {
				l.order = byText
			}
		}
		l.spots = s.spots(r, conds, l.order)
	}
	if words.few || l.order.is(byText) {
		l.readByText(words)
	}
	l.direct()
	return l, l.startAfter(at)
}

// direct turns the plan around if the rows are read backwards.
func (l *itemList) direct() {
	if !l.back {
		return
	}
	l.order = l.order.backwards()
	for i := range l.spots {
		l.spots[i].order = l.order.by
		if seq := l.spots[i].seq; seq != "" && l.order.is(byText) {
			l.spots[i].order = seq
		}
	}
}

// spots returns the spots of some places; without places, of all rows.
func (s *Search) spots(r reach, conds []string, o order) []spot {
	if len(conds) == 0 {
		return []spot{{from: "work_item i", cond: ofTenant + "1 = 1", order: o.by}}
	}
	spots := make([]spot, len(conds))
	for i, c := range conds {
		spots[i] = spot{from: s.rowsAt(r, c), cond: c, order: o.by}
	}
	return spots
}

// readFewFirst plans to read all rows at a few places before it compares their text. The planner
// assumes that words are spread evenly, and would rather search for a word that seems common.
func (l *itemList) readFewFirst(conds []string) {
	at := make([]string, len(conds))
	for i, c := range conds {
		at[i] = `SELECT i.* FROM work_item i WHERE i.tenant = '` + sqldb.Tenant + `' AND ` + c
	}
	l.with = `WITH few AS MATERIALIZED (` + strings.Join(at, ` UNION `) + `) `
	l.spots = []spot{{from: "few i", order: l.order.by}}
}

// readByText plans to read the list through the text index, which contains no ids.
func (l *itemList) readByText(words textSearch) {
	by, seq := l.order.by, "x."+words.key()
	if l.order.is(byText) {
		by = seq + " DESC"
	}
	l.spots = []spot{{
		from: words.from(), cond: words.cond(l.w), order: by, seq: seq,
	}}
	for _, id := range words.ids {
		l.spots = append(l.spots, spot{from: "work_item i", cond: idCond(l.w, id), order: l.order.by})
	}
}

// statement returns the SQL of the list.
func (l *itemList) statement() string {
	columns := l.with + `SELECT ` + work.ItemColumns + `, i.seq FROM `
	if len(l.spots) == 1 {
		return columns + l.rows(l.spots[0])
	}
	parts := make([]string, len(l.spots))
	for i, p := range l.spots {
		parts[i] = `SELECT seq FROM (SELECT i.seq AS seq FROM ` + l.rows(p) + `) p`
	}
	return columns + `work_item i WHERE i.seq IN (` + strings.Join(parts, " UNION ALL ") + `) ORDER BY ` + l.order.by +
		fmt.Sprintf(" LIMIT %d", l.limit)
}

func (l *itemList) rows(p spot) string {
	return p.from + l.w.With(p.cond) + " ORDER BY " + p.order + fmt.Sprintf(" LIMIT %d", l.limit)
}

// itemCursor is the position of a page's last row.
type itemCursor struct {
	order  string // "" for the first page
	n, seq int64
}

// startAfter makes the list begin behind a cursor.
func (l *itemList) startAfter(at itemCursor) error {
	switch {
	case at.order == "":
		return nil
	case at.order != l.order.name:
		return fmt.Errorf("page cursor of another list: %w", registry.ErrNotFound)
	}
	beyond, column := l.beyond(), "i.created_at"
	switch l.order.name {
	case byRow.name:
		column = "i.row_no"
	case byText.name:
		l.w.Add("i.seq "+beyond+" ?", at.seq)
		for i, p := range l.spots {
			if p.seq != "" {
				l.spots[i].cond += l.w.Bind(" AND "+p.seq+" "+beyond+" ?", at.seq)
			}
		}
		return nil
	}
	// The first condition is for the index, which it bounds.
	l.w.Add(fmt.Sprintf("%[1]s %[2]s= ? AND (%[1]s %[2]s ? OR i.seq %[2]s ?)", column, beyond), at.n, at.n, at.seq)
	return nil
}

// beyond compares a row's position with the cursor's.
func (l *itemList) beyond() string {
	if l.back != l.order.is(byRow) {
		return ">"
	}
	return "<"
}

func (l *itemList) cursor(last registry.WorkItem, seq int64) string {
	n := sqldb.Micros(last.CreatedAt)
	if l.order.is(byRow) {
		n = last.Line
	}
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%s %d %d", l.order.name, n, seq))
}

// cursorOf returns the position at which a page begins, in the direction of reading.
func cursorOf(q registry.ItemQuery) (itemCursor, error) {
	if q.After != "" && q.Before != "" {
		return itemCursor{}, fmt.Errorf("%w: a page is after one row or before one", registry.ErrInvalid)
	}
	return parseItemCursor(cmp.Or(q.After, q.Before))
}

func parseItemCursor(text string) (c itemCursor, err error) {
	if text == "" {
		return c, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		_, err = fmt.Sscanf(string(raw), "%s %d %d", &c.order, &c.n, &c.seq)
	}
	if err != nil || c.order == "" {
		return c, fmt.Errorf("page cursor %q: %w", text, registry.ErrNotFound)
	}
	return c, nil
}
