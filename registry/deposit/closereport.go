package deposit

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// Bounds of a transaction of CloseReport (R25).
const (
	reportRows   = 500
	reportEvents = 1000
)

// CloseReport implements registry.Batching. It copies the jobs a few hundred at a time, so that
// other writes do not wait for it. The report is still one snapshot (R22), that of the last
// transaction: the report copies again every job that has an event since the copying began. Nobody
// sees a part of it before. After a kill the next attempt continues the copy.
func (s *Deposits) CloseReport(ctx context.Context, l registry.Lease) (registry.BatchReport, error) {
	c := closeReport{store: s, lease: l}
	for _, step := range []func(*tx) (more bool, err error){c.copy, c.end} {
		for more := true; more; {
			if err := c.count(ctx); err != nil {
				return registry.BatchReport{}, fmt.Errorf("close report of batch %s: count its jobs: %w", l.ItemID, err)
			}
			err := s.write(ctx, func(t *tx) (err error) {
				more, err = c.run(t, step)
				return err
			})
			if err != nil {
				return registry.BatchReport{}, fmt.Errorf("close report of batch %s: %w", l.ItemID, err)
			}
		}
	}
	return s.ReportOf(ctx, l.ItemID, c.batch.Closing)
}

// closeReport is a report that is being made.
type closeReport struct {
	store  *Deposits
	lease  registry.Lease
	batch  registry.WorkItem
	before int64 // the closing of the previous report; 0: none
	rows   int64 // the last row of the batch
	seen   int64 // the last event that the copy includes
	copied bool  // all rows are copied
	counts []any // of the copy, in the order of reportCounts; nil: to be counted again
}

// run runs a step in a transaction. more is false if the report exists already.
func (c *closeReport) run(t *tx, step func(*tx) (bool, error)) (more bool, err error) {
	if c.batch, err = t.Live(c.lease); err != nil {
		return false, err
	}
	if c.batch.Action != registry.Batch || c.batch.Stage != registry.Report {
		return false, fmt.Errorf("%w: item %s is not a batch at its report", registry.ErrInvalid, c.batch.ID)
	}
	var there bool
	err = t.Get(`SELECT EXISTS (SELECT 1 FROM report WHERE batch_id = $1 AND closing = $2),
		(SELECT COALESCE(MAX(closing), 0) FROM report WHERE batch_id = $1 AND closing < $2)`,
		[]any{c.batch.ID, c.batch.Closing}, &there, &c.before)
	if err != nil || there {
		return false, err
	}
	if c.batch.BlockerCount > 0 {
		return false, fmt.Errorf("%w: %d of them", registry.ErrJobsOpen, c.batch.BlockerCount)
	}
	return step(t)
}

// copy copies the next jobs. more is false when all are copied.
func (c *closeReport) copy(t *tx) (more bool, err error) {
	if err := t.Do(`INSERT INTO report_draft (batch_id, closing, copied, seen) SELECT $1, $2, 0, COALESCE(MAX(feed_seq), 0) FROM event
		WHERE true ON CONFLICT DO NOTHING`, c.batch.ID, c.batch.Closing); err != nil {
		return false, fmt.Errorf("begin: %w", err)
	}
	if err := c.dropOldDraft(t); err != nil {
		return false, err
	}
	var last int64
	var next, end sql.NullInt64
	err = t.Get(`SELECT copied FROM report_draft WHERE batch_id = $1 AND closing = $2`, []any{c.batch.ID, c.batch.Closing}, &last)
	if err == nil {
		err = t.Get(`SELECT MAX(row_no), (SELECT MAX(row_no) FROM work_item WHERE parent_id = $1)
			FROM (SELECT row_no FROM work_item WHERE parent_id = $1 AND row_no > $2 ORDER BY row_no`+sqldb.Limit(reportRows)+`) AS next`,
			[]any{c.batch.ID, last}, &next, &end)
	}
	if err != nil {
		return false, fmt.Errorf("list the next jobs: %w", err)
	}
	c.rows, c.copied = end.Int64, !next.Valid
	if c.copied {
		return false, nil
	}
	if err := c.copyRows(t, last, next.Int64); err != nil {
		return false, err
	}
	return true, t.Do(`UPDATE report_draft SET copied = $3 WHERE batch_id = $1 AND closing = $2`, c.batch.ID, c.batch.Closing, next.Int64)
}

// dropOldDraft deletes the draft of an earlier closing. A requeued job kept that draft from
// becoming a report.
func (c *closeReport) dropOldDraft(t *tx) error {
	n, err := t.Exec(`DELETE FROM report_draft WHERE batch_id = $1 AND closing < $2`, c.batch.ID, c.batch.Closing)
	if err == nil && n > 0 {
		_, err = t.Exec(`DELETE FROM report_job WHERE batch_id = $1 AND closing < $2
			AND closing NOT IN (SELECT closing FROM report WHERE batch_id = $1)`, c.batch.ID, c.batch.Closing)
	}
	if err != nil {
		return fmt.Errorf("delete the draft of an earlier closing: %w", err)
	}
	return nil
}

// copyRows copies the jobs of the rows from after+1 to upTo.
func (c *closeReport) copyRows(t *tx, after, upTo int64) error {
	args := []any{c.batch.ID, c.batch.Closing, after, upTo}
	if c.before > 0 {
		args = append(args, c.before)
	}
	if err := t.Do(copyJobs(t.store.db.Dialect, c.rows, c.before > 0), args...); err != nil {
		return fmt.Errorf("copy jobs: %w", err)
	}
	return nil
}

// end makes the copy the report if the copy matches the jobs at this moment. Otherwise it copies
// the changed jobs again.
func (c *closeReport) end(t *tx) (more bool, err error) {
	changed, all, err := c.changed(t)
	if err != nil {
		return false, err
	}
	for _, row := range changed {
		err := t.Do(`DELETE FROM report_job WHERE batch_id = $1 AND closing = $2 AND row_no = $3`, c.batch.ID, c.batch.Closing, row)
		if err == nil {
			err = c.copyRows(t, row-1, row)
		}
		if err != nil {
			return false, err
		}
	}
	if len(changed) > 0 {
		c.counts = nil // events of other items leave the counts valid
	}
	if len(changed) > 0 || !all || c.counts == nil {
		return true, t.Do(`UPDATE report_draft SET seen = $3 WHERE batch_id = $1 AND closing = $2`, c.batch.ID, c.batch.Closing, c.seen)
	}
	if err := t.Do(`DELETE FROM report_draft WHERE batch_id = $1 AND closing = $2`, c.batch.ID, c.batch.Closing); err != nil {
		return false, err
	}
	if err := t.Do(insertReport, append([]any{c.batch.ID, c.batch.Closing, t.Now, c.before}, c.counts...)...); err != nil {
		return false, err
	}
	return false, t.out.MailReport(c.batch)
}

// changed returns the rows of jobs that the next events are about. all is true if there are no
// later events. The events of this transaction's other writes have no number yet; it adds their
// items.
func (c *closeReport) changed(t *tx) (rows []int64, all bool, err error) {
	err = t.Get(`SELECT seen FROM report_draft WHERE batch_id = $1 AND closing = $2`, []any{c.batch.ID, c.batch.Closing}, &c.seen)
	if err != nil {
		return nil, false, fmt.Errorf("read the report's draft: %w", err)
	}
	var items []string
	events := t.Ask(`SELECT feed_seq, item_id FROM event WHERE feed_seq > $1 ORDER BY feed_seq`+sqldb.Limit(reportEvents), c.seen)
	err = sqldb.Each(events, "list events", func(row sqldb.Scanner) error {
		var id string
		err := row.Scan(&c.seen, &id)
		items = append(items, id)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	all = len(items) < reportEvents
	items = append(items, t.NotedItems()...)
	jobs := t.Ask(`SELECT row_no FROM work_item WHERE `+t.Among("id")+` AND parent_id = $2`, t.List(items), c.batch.ID)
	rows, err = sqldb.Collect(jobs, "list changed jobs", func(row sqldb.Scanner) (n int64, err error) { return n, row.Scan(&n) })
	return rows, all, err
}
