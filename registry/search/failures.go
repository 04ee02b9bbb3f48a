package search

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/bounds"
	"github.com/holdfast/holdfast/registry/remedy"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// Failures implements registry.ItemReader. The database groups failed items from an index, so that
// memory does not grow with their number. It reads one row of each group in the same snapshot.
func (s *Search) Failures(ctx context.Context, q registry.ItemQuery) (page registry.Page[registry.FailureGroup], err error) {
	if err := bounds.Check(q); err != nil {
		return page, err
	}
	limit := sqldb.PageSize(q.Limit)
	r := reachOf(q)
	r.keep(func(p work.Place) bool { return p.Status == registry.Failed })
	statement, w, err := s.planFailures(ctx, q, r, limit+1)
	if err != nil {
		return page, fmt.Errorf("group failures: %w", err)
	}
	if len(r.places) == 0 {
		return page, nil // the query asks for items that have not failed
	}
	rows, err := sqldb.Collect(s.db.Read.Ask(ctx, statement, w.Args...), "group failures", scanFailures)
	return sqldb.PageOf(rows, limit, func(last registry.FailureGroup) string { return sqldb.Cursor(last.Count, last.Fingerprint) }), err
}

func scanFailures(row sqldb.Scanner) (g registry.FailureGroup, err error) {
	var first, last int64
	var stage registry.Stage
	var class registry.ErrorClass
	var code, host, known string
	var spec string
	it := registry.WorkItem{Status: registry.Failed}
	if err := row.Scan(&g.Fingerprint, &g.Count, &first, &last, &it.ID, &it.Name, &it.Action, &stage, &class, &code, &host, &g.Note, &it.Attempt, &spec, &known); err != nil {
		return g, err
	}
	g.First, g.Last = sqldb.FromMicros(first), sqldb.FromMicros(last)
	it.Stage, it.ErrorClass, it.Spec = stage, class, json.RawMessage(spec)
	g.ItemID, g.Name = it.ID, it.Heading()
	fix := remedy.Of(it, code, known)
	g.Cause, g.Act, g.Remedy = registry.CauseOf(stage, class, code, host, g.Note), fix.Text, fix.Remedy
	g.Useless, g.From = !fix.Requeue, fix.From
	return g, nil
}

// planFailures returns the statement that groups failed items.
func (s *Search) planFailures(ctx context.Context, q registry.ItemQuery, r reach, limit int) (statement string, w *sqldb.Where, err error) {
	if w, err = ItemWhere(q, s.db.Dialect.Name(), sqldb.Micros(s.db.Now())); err != nil {
		return "", w, err
	}
	w.Conds = append(w.Conds, "i.status = 'failed'", work.StandingFailure)
	if err := s.checkShort(ctx, q, r); err != nil {
		return "", w, err
	}
	if err := s.AddText(ctx, w, q); err != nil {
		return "", w, err
	}
	having := ""
	if q.After != "" {
		n, fingerprint, err := sqldb.ParseCursor(q.After)
		if err != nil {
			return "", w, err
		}
		having = w.Bind(" HAVING COUNT(*) < ? OR (COUNT(*) = ? AND i.cause > ?)", n, n, fingerprint)
	}
	var b strings.Builder
	b.WriteString(`WITH g AS (SELECT i.cause AS cause, COUNT(*) AS n, MIN(i.finished_at) AS first, MAX(i.finished_at) AS last, MAX(i.seq) AS seq
		FROM work_item i` + s.failureIndex(r) + w.String() + ` GROUP BY i.cause` + having)
	fmt.Fprintf(&b, " ORDER BY n DESC, cause LIMIT %d)", limit)
	b.WriteString(` SELECT g.cause, g.n, g.first, g.last, e.id, e.name, e.action, e.stage, e.error_class, e.cause_code, e.cause_host, e.note, e.attempt, w.spec, COALESCE(a.remedy, '')
		FROM g JOIN work_item e ON e.seq = g.seq JOIN work_detail w ON w.item_id = e.id LEFT JOIN attempt a ON a.item_id = e.id AND a.n = e.attempt ORDER BY g.n DESC, g.cause`)
	return b.String(), w, nil
}

// failureIndex names the index with which SQLite, which has no statistics here, must read failed
// items: no other is as small. Other conditions are checked row by row.
func (s *Search) failureIndex(r reach) string {
	switch {
	case r.ids != nil:
		return ""
	case r.batches != nil:
		return s.indexedBy("work_item_batch_cause")
	}
	return s.indexedBy("work_item_cause")
}
