package deposit

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// count adds up a copy that is whole and was not added up since it changed, outside a transaction:
// it takes a while, and nobody else writes it.
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

// reportCountsN is how many figures reportCounts has.
const reportCountsN = 12

// reportCounts adds up the rows of a report, in the order in which insertReport takes the figures.
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

// copyJobs is the statement that makes a batch's jobs ($1) after a row ($3) up to another ($4) the
// rows of a report ($2), compared with those of the report before ($5), if there is one. A job that
// was deleted is in no report from then on, unless its object is preserved. Of what a job was given
// and of what came of it, only what a report tells is kept: with the profile in it, each row would
// be some kilobytes.
//
// The text depends on how large the batch is, in powers of two: PostgreSQL plans a statement when a
// connection first has it, and what was planned for the tables of a new Registry would read them
// from end to end for every row of a large batch.
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
		d.Members("w.results", registry.ResultARK, registry.ResultVersion), d.Members("w.spec", "local_ids", "repeats"), change, before, bits.Len64(uint64(rows)))
}
