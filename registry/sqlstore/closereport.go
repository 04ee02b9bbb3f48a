package sqlstore

import (
	"context"
	"fmt"

	"github.com/holdfast/holdfast/registry"
)

// CloseReport implements registry.Working. The rows are copied by one statement, which compares them with those of the report
// before, so the report is one snapshot and needs no memory, whatever the number of jobs (R22).
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
		return t.closeReport(batch)
	})
	if err != nil {
		return registry.BatchReport{}, fmt.Errorf("close report of batch %s: %w", l.ItemID, err)
	}
	return s.ReportOf(ctx, l.ItemID, closing)
}

// closeReport stores the report of a batch's current closing, unless it is there.
func (t *tx) closeReport(batch registry.WorkItem) error {
	var there bool
	var before int64
	err := t.get(`SELECT EXISTS (SELECT 1 FROM report WHERE batch_id = $1 AND closing = $2),
		(SELECT COALESCE(MAX(closing), 0) FROM report WHERE batch_id = $1 AND closing < $2)`, []any{batch.ID, batch.Closing}, &there, &before)
	if err != nil || there {
		return err
	}
	if batch.BlockerCount > 0 {
		return fmt.Errorf("%w: %d of them", registry.ErrJobsOpen, batch.BlockerCount)
	}
	if err := t.do(t.store.copyJobs, batch.ID, batch.Closing, before); err != nil {
		return fmt.Errorf("copy jobs: %w", err)
	}
	return t.do(insertReport, batch.ID, batch.Closing, t.now, before)
}

// copyJobs is the statement that makes a batch's jobs ($1) the rows of a report ($2), compared with the rows of the report
// before ($3, 0: there is none). Of what a job was given and of what came of it, only what a report tells is kept: with the
// profile in it, each row would be some kilobytes.
func copyJobs(d dialect) string {
	return `INSERT INTO report_job (batch_id, closing, row_no, item_id, name, status, stage, state, spec, error, error_class, cause, code, remedy, change)
		SELECT i.parent_id, $2, i.row_no, i.id, i.name, i.status, i.stage,
			` + d.members("i.state", registry.ResultARK, registry.ResultVersion) + `, ` + d.members("i.spec", "local_ids") + `,
			i.note, i.error_class, i.cause, i.cause_code, COALESCE(a.remedy, ''),
			CASE WHEN $3 = 0 THEN ''
				WHEN p.status IS NULL THEN 'new'
				WHEN i.status = 'failed' AND p.status = 'failed' THEN 'still-failed'
				WHEN i.status = p.status THEN 'unchanged'
				WHEN i.status = 'completed' THEN 'now-completed'
				WHEN i.status = 'failed' THEN 'newly-failed'
				ELSE 'now-stopped' END
		FROM work_item i
		LEFT JOIN attempt a ON a.item_id = i.id AND a.n = i.attempt AND i.status = 'failed'
		LEFT JOIN report_job p ON p.batch_id = i.parent_id AND p.closing = $3 AND p.row_no = i.row_no
		WHERE i.parent_id = $1`
}

const insertReport = `INSERT INTO report (batch_id, closing, created_at, since, jobs, completed, failed, content, stopped,
		now_completed, still_failed, newly_failed, now_stopped, new_jobs)
	SELECT $1, $2, $3, $4, COUNT(*), COUNT(CASE WHEN status = 'completed' THEN 1 END), COUNT(CASE WHEN status <> 'completed' THEN 1 END),
		COUNT(CASE WHEN error_class = 'content' THEN 1 END), COUNT(CASE WHEN status IN ('cancelled', 'aborted', 'deleted') THEN 1 END),
		COUNT(CASE WHEN change = 'now-completed' THEN 1 END), COUNT(CASE WHEN change = 'still-failed' THEN 1 END),
		COUNT(CASE WHEN change = 'newly-failed' THEN 1 END), COUNT(CASE WHEN change = 'now-stopped' THEN 1 END),
		COUNT(CASE WHEN change = 'new' THEN 1 END)
	FROM report_job WHERE batch_id = $1 AND closing = $2`
