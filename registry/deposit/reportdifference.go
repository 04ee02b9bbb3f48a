package deposit

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// count sums up a complete copy, unless that was done since its last change. It runs outside a
// transaction because it takes a while. Nobody else writes the copy.
func (c *closeReport) count(ctx context.Context) error {
	if !c.copied || c.counts != nil {
		return nil
	}
	counts := make([]int64, reportCountsN)
	into := make([]any, reportCountsN)
	for i := range counts {
		into[i] = &counts[i]
	}
	if err := c.store.db.Read.QueryRowContext(ctx, reportCounts, c.batch.ID, c.batch.Closing).Scan(into...); err != nil {
		return err
	}
	for _, n := range counts {
		c.counts = append(c.counts, n)
	}
	return nil
}

// reportCountsN is the number of columns of reportCounts.
const reportCountsN = 12

// reportCounts sums up the rows of a report, in the order of insertReport's parameters.
const reportCounts = `SELECT COUNT(*), COUNT(CASE WHEN status = 'completed' THEN 1 END), COUNT(CASE WHEN preserved = 1 THEN 1 END),
	COUNT(CASE WHEN status <> 'completed' AND preserved = 0 THEN 1 END), COUNT(CASE WHEN error_class = 'content' AND preserved = 0 THEN 1 END),
	COUNT(CASE WHEN status IN ('cancelled', 'aborted', 'deleted') AND preserved = 0 THEN 1 END),
	COUNT(CASE WHEN change = 'now-completed' THEN 1 END), COUNT(CASE WHEN change = 'still-failed' THEN 1 END),
	COUNT(CASE WHEN change = 'newly-failed' THEN 1 END), COUNT(CASE WHEN change = 'now-stopped' THEN 1 END),
	COUNT(CASE WHEN change = 'new' THEN 1 END), COUNT(CASE WHEN repeats = 1 THEN 1 END)
	FROM report_job WHERE batch_id = $1 AND closing = $2`

const insertReport = `INSERT INTO report (batch_id, closing, created_at, since, jobs, completed, preserved, failed, content, stopped,
	now_completed, still_failed, newly_failed, now_stopped, new_jobs, repeats)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`

// copyJobs is the statement that copies jobs of a batch ($1), from row $3+1 to row $4, into a
// report ($2). If there is a previous report ($5), it compares them with that. A deleted job is
// left out, unless its object is preserved. Of a job's spec and results it copies only what a
// report shows: with the profile, each row would have some kilobytes.
//
// The text depends on the batch's size, in powers of two. PostgreSQL plans a statement once a
// connection, and a plan made for the tables of a new Registry would scan a large batch for every
// row.
func copyJobs(d sqldb.Dialect, rows int64, compared bool) string {
	const stored = `(SELECT COUNT(*) FROM object_version v WHERE v.item_id = i.id AND v.status = 'recorded') > 0`
	change, before := `''`, ``
	if compared {
		change = `CASE WHEN p.status IS NULL THEN 'new'
				WHEN i.status = 'failed' AND p.status = 'failed' THEN 'still-failed'
				WHEN i.status = p.status THEN 'unchanged'
				WHEN i.status = 'completed' THEN 'now-completed'
				WHEN i.status = 'failed' THEN 'newly-failed'
				ELSE 'now-stopped' END`
		before = `LEFT JOIN report_job p ON p.batch_id = i.parent_id AND p.closing = $5 AND p.row_no = i.row_no`
	}
	return fmt.Sprintf(`INSERT INTO report_job (batch_id, closing, row_no, ordinal, item_id, name, status, stage, state, spec, error, error_class, cause, code, remedy, change, preserved, repeats)
		SELECT i.parent_id, $2, i.row_no, i.ordinal, i.id, i.name, i.status, i.stage, %s, %s,
			i.note, i.error_class, i.cause, i.cause_code, COALESCE(a.remedy, ''), %s,
			CASE WHEN i.status <> 'completed' AND `+stored+` THEN 1 ELSE 0 END,
			CASE WHEN w.spec LIKE '%%"repeats":{%%' THEN 1 ELSE 0 END -- as encoding/json writes it; within a text the quotes have backslashes
		FROM work_item i JOIN work_detail w ON w.item_id = i.id
		LEFT JOIN attempt a ON a.item_id = i.id AND a.n = i.attempt AND i.status = 'failed'
		%s
		WHERE i.parent_id = $1 AND i.row_no > $3 AND i.row_no <= $4 AND (i.status <> 'deleted' OR `+stored+`) -- 2^%d rows`,
		d.Members("w.results", registry.ResultARK, registry.ResultVersion), d.Members("w.spec", "local_ids", "repeats", "title", "title_shared"), change, before, bits.Len64(uint64(rows)))
}
