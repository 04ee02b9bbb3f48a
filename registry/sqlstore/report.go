package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
)

// CloseReport implements registry.Working. The rows are copied by one statement, so the report is one snapshot and
// needs no memory, whatever the number of jobs (R22).
func (s *Store) CloseReport(ctx context.Context, l registry.Lease) (registry.BatchReport, error) {
	var closing int64
	err := s.write(ctx, func(t *tx) error {
		batch, err := t.live(l)
		if err != nil {
			return err
		}
		if batch.Action != registry.Batch || batch.Stage != registry.Report {
			return fmt.Errorf("%w: item %s is not a batch at its report", registry.ErrInvalid, batch.ID)
		}
		closing = batch.Closing
		var there int
		err = t.get(`SELECT COUNT(*) FROM report WHERE batch_id = $1 AND closing = $2`, []any{batch.ID, closing}, &there)
		if err != nil || there > 0 {
			return err
		}
		err = t.do(`INSERT INTO report_job (batch_id, closing, row_no, item_id, name, status, state, spec, error, error_class)
			SELECT parent_id, $2, row_no, id, name, status, state, spec, note, error_class FROM work_item WHERE parent_id = $1`,
			batch.ID, closing)
		if err != nil {
			return err
		}
		err = t.do(`INSERT INTO report (batch_id, closing, created_at, jobs, completed, failed)
			SELECT $1, $2, $3, COUNT(*), COUNT(CASE WHEN status = 'completed' THEN 1 END),
				COUNT(CASE WHEN status <> 'completed' THEN 1 END)
			FROM report_job WHERE batch_id = $1 AND closing = $2`, batch.ID, closing, t.now)
		return err
	})
	if err != nil {
		return registry.BatchReport{}, fmt.Errorf("close report of batch %s: %w", l.ItemID, err)
	}
	return s.ReportOf(ctx, l.ItemID, closing)
}

// ReportOf implements registry.Reading.
func (s *Store) ReportOf(ctx context.Context, batchID string, closing int64) (registry.BatchReport, error) {
	r := registry.BatchReport{BatchID: batchID}
	var at int64
	err := s.read.QueryRowContext(ctx, `SELECT closing, created_at, jobs, completed, failed FROM report
		WHERE batch_id = $1 AND ($2 = 0 OR closing = $2) ORDER BY closing DESC LIMIT 1`, batchID, closing).
		Scan(&r.Closing, &at, &r.Jobs, &r.Completed, &r.Failed)
	if errors.Is(err, sql.ErrNoRows) {
		return r, fmt.Errorf("report of batch %s: %w", batchID, registry.ErrNotFound)
	} else if err != nil {
		return r, fmt.Errorf("read report of batch %s: %w", batchID, err)
	}
	r.CreatedAt = fromMicros(at)
	return r, nil
}

// ReportJobs implements registry.Reading.
func (s *Store) ReportJobs(ctx context.Context, batchID string, closing, afterRow int64, limit int) (out []registry.JobResult, err error) {
	report, err := s.ReportOf(ctx, batchID, closing)
	if err != nil {
		return nil, err
	}
	rows, err := s.read.QueryContext(ctx, `SELECT row_no, item_id, name, status, state, spec, error, error_class FROM report_job
		WHERE batch_id = $1 AND closing = $2 AND row_no > $3 ORDER BY row_no LIMIT $4`, batchID, report.Closing, afterRow, pageSize(limit))
	if err != nil {
		return nil, fmt.Errorf("read report of batch %s: %w", batchID, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		it := registry.WorkItem{Action: registry.Ingest}
		var state, spec string
		if err := rows.Scan(&it.Row, &it.ID, &it.Name, &it.Status, &state, &spec, &it.Note, &it.ErrorClass); err != nil {
			return nil, fmt.Errorf("read report of batch %s: %w", batchID, err)
		}
		it.State = registry.StateOf(registry.Position{Action: it.Action, Status: it.Status})
		it.Spec = json.RawMessage(spec)
		if err := json.Unmarshal([]byte(state), &it.Results); err != nil {
			return nil, fmt.Errorf("decode results of item %s: %w", it.ID, err)
		}
		j, err := registry.JobResultOf(it)
		if err != nil {
			return nil, err
		}
		out = append(out, j)
	}
	return out, rows.Err()
}
