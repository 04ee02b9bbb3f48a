package deposit

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/bounds"
	"github.com/holdfast/holdfast/registry/remedy"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

const selectReport = `SELECT batch_id, closing, created_at, jobs, completed, preserved, failed, content, stopped, since, now_completed, still_failed,
	newly_failed, now_stopped, new_jobs, repeats FROM report `

func scanReport(row sqldb.Scanner) (r registry.BatchReport, err error) {
	var at int64
	var d registry.ReportDifference
	err = row.Scan(&r.BatchID, &r.Closing, &at, &r.Jobs, &r.Completed, &r.Preserved, &r.Failed, &r.Content, &r.Stopped, &d.Since, &d.NowCompleted,
		&d.StillFailed, &d.NewlyFailed, &d.NowStopped, &d.NewJobs, &r.Repeats)
	r.CreatedAt = sqldb.FromMicros(at)
	if d.Since > 0 {
		d.Unchanged = r.Jobs - d.NowCompleted - d.StillFailed - d.NewlyFailed - d.NowStopped - d.NewJobs
		r.Difference = &d
	}
	return r, err
}

// ReportOf implements registry.ReportReader.
func (s *Deposits) ReportOf(ctx context.Context, batchID string, closing int64) (registry.BatchReport, error) {
	r, err := scanReport(s.db.Read.QueryRowContext(ctx, selectReport+`WHERE batch_id = $1 AND ($2 = 0 OR closing = $2)
		ORDER BY closing DESC LIMIT 1`, sqldb.Clean(batchID), closing))
	if errors.Is(err, sql.ErrNoRows) {
		return registry.BatchReport{}, fmt.Errorf("report of batch %s: %w", batchID, registry.ErrNotFound)
	} else if err != nil {
		return registry.BatchReport{}, fmt.Errorf("read report of batch %s: %w", batchID, err)
	}
	return r, nil
}

// Reports implements registry.ReportLister.
func (s *Deposits) Reports(ctx context.Context, batchID string, before int64, most int) (out []registry.BatchReport, err error) {
	return sqldb.Collect(s.db.Read.Ask(ctx, selectReport+`WHERE batch_id = $1 AND ($2 = 0 OR closing < $2)
		ORDER BY closing DESC LIMIT $3`, sqldb.Clean(batchID), before, sqldb.PageSize(most)), "list reports of batch "+batchID, scanReport)
}

// ReportJobs implements registry.ReportReader.
func (s *Deposits) ReportJobs(ctx context.Context, q registry.ReportQuery) (out []registry.JobResult, err error) {
	if err := bounds.Check(q); err != nil {
		return nil, err
	}
	if err := q.Check(); err != nil {
		return nil, fmt.Errorf("list jobs of a report: %w", err)
	}
	report, err := s.ReportOf(ctx, q.BatchID, q.Closing)
	if err != nil {
		return nil, err
	}
	w := &sqldb.Where{}
	w.Add("batch_id = ?", report.BatchID)
	w.Add("closing = ?", report.Closing)
	w.Add("row_no > ?", q.AfterRow) // a line number is never below its row number
	w.Add("(ordinal = 0 OR ordinal > ?)", q.AfterRow)
	switch q.List {
	case registry.ListCompleted:
		w.Conds = append(w.Conds, "status = 'completed'")
	case registry.ListFailed:
		w.Conds = append(w.Conds, "status <> 'completed' AND preserved = 0")
	case registry.ListPreserved:
		w.Conds = append(w.Conds, "status <> 'completed' AND preserved = 1")
	}
	if q.Repeats {
		w.Conds = append(w.Conds, "repeats = 1")
	}
	if len(q.Changes) > 0 {
		changes := make([]string, len(q.Changes))
		for i, c := range q.Changes {
			changes[i] = string(c)
		}
		w.AddIn("change", changes)
	}
	return sqldb.Collect(s.db.Read.Ask(ctx, `SELECT row_no, ordinal, item_id, name, status, stage, state, spec, error, error_class, cause, code, remedy, change, preserved
		FROM report_job`+w.String()+` ORDER BY row_no`+sqldb.Limit(sqldb.PageSize(q.Limit)), w.Args...), "read report of batch "+q.BatchID, scanReportJob)
}

func scanReportJob(row sqldb.Scanner) (registry.JobResult, error) {
	it := registry.WorkItem{Action: registry.Ingest}
	var state, spec, cause, code, known string
	var change registry.JobChange
	var preserved bool
	err := row.Scan(&it.Line, &it.Row, &it.ID, &it.Name, &it.Status, &it.Stage, &state, &spec, &it.Note, &it.ErrorClass, &cause, &code, &known, &change, &preserved)
	if err != nil {
		return registry.JobResult{}, err
	}
	it.Row, it.State = work.RowOf(it), registry.StateOf(it.Position())
	if preserved {
		it.Commitment = registry.Preserved
	}
	if !refusedRow(it) {
		it.Attempt = 1 // the report keeps no number; only "any" matters
	}
	it.Spec = json.RawMessage(spec)
	if err := json.Unmarshal([]byte(state), &it.Results); err != nil {
		return registry.JobResult{}, fmt.Errorf("decode results of item %s: %w", it.ID, err)
	}
	j, err := registry.JobResultOf(it)
	j.Code, j.Cause, j.Fix, j.Change = code, cause, remedy.Of(it, code, known).Text, change
	return j, err
}

// refusedRow says whether a job of a report is a row that was refused. No worker fails a job's
// first stage on content, so a content failure there is a row that never ran.
func refusedRow(it registry.WorkItem) bool {
	route, _ := registry.RouteOf(it.Action)
	return it.Status == registry.Failed && it.ErrorClass == registry.ContentFault && it.Stage == route.First()
}
