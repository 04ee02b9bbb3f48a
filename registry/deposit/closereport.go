package deposit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// Bounds of a transaction of CloseReport (R25).
const (
	reportRows   = 500
	reportEvents = 1000
)

// CloseReport implements registry.Batching. The jobs are copied some hundred at a time, so that
// nobody waits long behind a report, and the report is one snapshot all the same (R22): that of its
// last transaction. There it looks at the events since the copying began, and what they tell of is
// copied again. Until that transaction nobody sees any of it; whoever takes over after a kill goes
// on with the copy.
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

// closeReport is a report on its way.
type closeReport struct {
	store  *Deposits
	lease  registry.Lease
	batch  registry.WorkItem
	before int64 // the closing of the report before; 0: there is none
	rows   int64 // the batch's last row
	seen   int64 // the last event whose change is in the copy
	copied bool  // all rows
	counts []any // of the copy, in the order of reportCounts; nil: it changed since
}

// run runs a step in a transaction. There is no more to do when the report is there.
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

// copy copies the next jobs, until there are no more.
func (c *closeReport) copy(t *tx) (more bool, err error) {
	if err := t.Do(`INSERT INTO report_draft (batch_id, closing, copied, seen) SELECT $1, $2, 0, COALESCE(MAX(feed_seq), 0) FROM event
		WHERE true ON CONFLICT DO NOTHING`, c.batch.ID, c.batch.Closing); err != nil {
		return false, fmt.Errorf("begin: %w", err)
	}
	if err := c.forget(t); err != nil {
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
		return false, fmt.Errorf("look for the next jobs: %w", err)
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

// forget removes a draft of an earlier closing, which a job that was sent back has kept from
// becoming a report.
func (c *closeReport) forget(t *tx) error {
	n, err := t.Exec(`DELETE FROM report_draft WHERE batch_id = $1 AND closing < $2`, c.batch.ID, c.batch.Closing)
	if err == nil && n > 0 {
		_, err = t.Exec(`DELETE FROM report_job WHERE batch_id = $1 AND closing < $2
			AND closing NOT IN (SELECT closing FROM report WHERE batch_id = $1)`, c.batch.ID, c.batch.Closing)
	}
	if err != nil {
		return fmt.Errorf("forget what was begun before: %w", err)
	}
	return nil
}

// copyRows copies the jobs of the rows after one, up to another.
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

// end makes the copy the report if it is what the jobs are at this moment, and otherwise brings it
// nearer to that.
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
		c.counts = nil // otherwise they are right still, however many events others make
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

// changed returns the rows of jobs that some of the next events tell of, and whether those are all
// events that there are. What other writes of this transaction did has no number yet.
func (c *closeReport) changed(t *tx) (rows []int64, all bool, err error) {
	err = t.Get(`SELECT seen FROM report_draft WHERE batch_id = $1 AND closing = $2`, []any{c.batch.ID, c.batch.Closing}, &c.seen)
	if err != nil {
		return nil, false, fmt.Errorf("look how far the report is: %w", err)
	}
	events, err := t.Query(`SELECT feed_seq, item_id FROM event WHERE feed_seq > $1 ORDER BY feed_seq`+sqldb.Limit(reportEvents), c.seen)
	if err != nil {
		return nil, false, fmt.Errorf("look what changed: %w", err)
	}
	items, err := c.told(events)
	if err != nil {
		return nil, false, fmt.Errorf("look what changed: %w", err)
	}
	all = len(items) < reportEvents
	items = append(items, t.Told()...)
	found, err := t.Query(`SELECT row_no FROM work_item WHERE `+t.Among("id")+` AND parent_id = $2`, t.List(items), c.batch.ID)
	if err != nil {
		return nil, false, fmt.Errorf("look what changed: %w", err)
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	for found.Next() {
		var row int64
		if err := found.Scan(&row); err != nil {
			return nil, false, err
		}
		rows = append(rows, row)
	}
	return rows, all, found.Err()
}

// told returns the items that events are of, and notes the last of these.
func (c *closeReport) told(events *sql.Rows) (items []string, err error) {
	defer func() { err = errors.Join(err, events.Close()) }()
	for events.Next() {
		var id string
		if err := events.Scan(&c.seen, &id); err != nil {
			return nil, err
		}
		items = append(items, id)
	}
	return items, events.Err()
}
