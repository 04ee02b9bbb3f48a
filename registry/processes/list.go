package processes

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// Processes implements registry.Processing.
func (s *Keeper) Processes(ctx context.Context, q registry.ProcessQuery) (page registry.Page[registry.ProcessInfo], err error) {
	w := sqldb.Where{Conds: []string{"TRUE"}}
	if q.Namespace != "" {
		w.Add("p.namespace = ?", q.Namespace)
	}
	if q.Status != "" {
		w.Add("p.status = ?", q.Status)
	}
	if q.Text != "" {
		w.Add(`LOWER(p.detail) LIKE LOWER(?) ESCAPE '\'`, sqldb.Contains(q.Text))
	}
	w.Within("p.collection", q.Within)
	if q.After != "" {
		seq, _, err := sqldb.ParseCursor(q.After)
		if err != nil {
			return page, fmt.Errorf("list processes: %w", err)
		}
		w.Add("p.seq < ?", seq)
	}
	limit := sqldb.PageSize(q.Limit)
	rows, err := sqldb.Collect(s.db.Read.Ask(ctx, selectProcess+w.String()+` ORDER BY p.seq DESC`+sqldb.Limit(limit+1), w.Args...), "list processes", scanProcess)
	if err != nil {
		return page, err
	}
	found := sqldb.PageOf(rows, limit, func(last *process) string { return sqldb.Cursor(last.seq, "") })
	page.Next = found.Next
	for _, p := range found.Rows {
		page.Rows = append(page.Rows, p.ProcessInfo)
	}
	return page, nil
}

// TraceProcess implements registry.Processing.
func (s *Keeper) TraceProcess(ctx context.Context, q registry.TraceQuery) (page registry.Page[registry.TracedStep], err error) {
	if _, err := s.read(ctx, q.ProcessKey, registry.HistoryRange{None: true}); err != nil {
		return page, fmt.Errorf("trace process %s: %w", q.ProcessKey, err)
	}
	var after int64
	if q.After != "" {
		if after, _, err = sqldb.ParseCursor(q.After); err != nil {
			return page, fmt.Errorf("trace process %s: %w", q.ProcessKey, err)
		}
	}
	type step struct {
		registry.TracedStep

		n int64
	}
	limit := sqldb.PageSize(q.Limit)
	rows, err := sqldb.Collect(s.db.Read.Ask(ctx, `SELECT s.n, i.id, i.status, d.spec, d.results, i.note, i.attempt, i.created_by, i.created_at, i.run_at, i.finished_at
		FROM process_step s JOIN work_item i ON i.id = s.item_id JOIN work_detail d ON d.item_id = i.id
		WHERE s.namespace = $1 AND s.process_id = $2 AND s.n > $3 ORDER BY s.n`+sqldb.Limit(limit+1), q.Namespace, q.ProcessID, after),
		"trace process "+q.String(), func(row sqldb.Scanner) (out step, err error) {
			var it registry.WorkItem
			var results []byte
			var spec []byte
			var created, due int64
			var finished sql.NullInt64
			err = row.Scan(&out.n, &it.ID, &it.Status, &spec, &results, &it.Note, &it.Attempt, &it.CreatedBy, &created, &due, &finished)
			if err != nil {
				return out, err
			}
			it.Action, it.Spec = registry.StepProcess, spec
			of, err := specOf(it)
			if err != nil {
				return out, err
			}
			response, err := returned(results)
			if err != nil {
				return out, fmt.Errorf("decode the results of step %s: %w", it.ID, err)
			}
			out.TracedStep = registry.TracedStep{
				ItemID: it.ID, Kind: of.Kind, Status: it.Status, Args: of.Args, Context: of.Context, Response: response, Error: it.Note, Attempts: it.Attempt,
				CreatedBy: it.CreatedBy, CreatedAt: sqldb.FromMicros(created), RunAt: sqldb.FromMicros(due), FinishedAt: sqldb.Optional(finished),
			}
			return out, nil
		})
	if err != nil {
		return page, err
	}
	found := sqldb.PageOf(rows, limit, func(last step) string { return sqldb.Cursor(last.n, "") })
	page.Next = found.Next
	for _, r := range found.Rows {
		r.Events, err = sqldb.Collect(s.db.Read.Ask(ctx, selectEvent+`WHERE namespace = $1 AND process_id = $2 AND item_id = $3 ORDER BY event_id`,
			q.Namespace, q.ProcessID, r.ItemID), "trace process "+q.String(), scanEvent)
		if err != nil {
			return page, err
		}
		page.Rows = append(page.Rows, r.TracedStep)
	}
	return page, nil
}

// returned returns the response in the results of a step; nil: none.
func returned(results []byte) (json.RawMessage, error) {
	var has struct {
		Returned json.RawMessage `json:"returned"`
	}
	err := json.Unmarshal(results, &has)
	return has.Returned, err
}
