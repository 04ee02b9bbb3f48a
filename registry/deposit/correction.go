package deposit

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// mostCorrections is how many corrections a batch remembers, the newest: results are small, and read
// with their item.
const mostCorrections = 50

// correct notes which rows of a batch a new batch corrects, if anything. See [tx.judgeCorrection].
func (t *tx) correct(batch work.NewItem) error {
	c := batch.Spec.Corrects
	if c == nil {
		return nil
	}
	old, rows, err := t.judgeCorrection(*c, batch.Collection, batch.ID)
	if err != nil {
		return err
	}
	return t.noteCorrection(old, batch, rows)
}

// judgeCorrection writes which rows of a batch the batch by of a collection corrects. It returns the
// former, and how many rows these are; 0: all that failed. Both batches are of one collection, so whoever
// sees one sees the other. It refuses a correction of nothing, and with a *[registry.CorrectedError] what
// another batch corrects. Transactions take turns: of two that correct a row, one is refused.
func (t *tx) judgeCorrection(c registry.Corrects, collection, by string) (old registry.WorkItem, rows int64, err error) {
	if err := c.Check(); err != nil {
		return old, 0, err
	}
	old, err = t.Item(c.BatchID)
	if errors.Is(err, registry.ErrNotFound) || err == nil && (old.Action != registry.Batch || old.Collection != collection) {
		err = registry.ErrNotFound // the same error for all, so that it tells nothing
	}
	if err != nil {
		return old, 0, fmt.Errorf("batch %s, to be corrected, in collection %s: %w", c.BatchID, collection, err)
	}
	whole := len(c.Lines) == 0
	if whole {
		if err := t.correctable(old); err != nil {
			return old, 0, err
		}
		c.Lines = []registry.LineRange{{First: 1, Last: math.MaxInt64}}
	}
	ranges := make([][]any, len(c.Lines))
	for i, l := range c.Lines {
		ranges[i] = []any{old.ID, l.First, l.Last, by}
	}
	if err := t.InsertRows(insertCorrection, ranges); err != nil {
		return old, 0, fmt.Errorf("write which rows of batch %s are corrected: %w", old.ID, err)
	}
	if !whole {
		rows, err = t.judgeRows(c, by)
	}
	return old, rows, err
}

// JudgeCorrection implements registry.CorrectionReader.
func (s *Deposits) JudgeCorrection(ctx context.Context, collection string, c registry.Corrects) error {
	only := errors.New("only judged") // undoes what the transaction wrote
	err := s.write(ctx, func(t *tx) error {
		_, _, err := t.judgeCorrection(c, collection, "")
		return cmp.Or(err, only)
	})
	if errors.Is(err, only) {
		return nil
	}
	return err
}

var insertCorrection = sqldb.InsertInto(`INSERT INTO correction (batch_id, first_line, last_line, corrected_by)`, `($1, $2, $3, $4)`)

// correction are the batches b that have the row of job j.
const correction = `FROM correction o JOIN work_item b ON b.id = o.corrected_by WHERE ` + correctedHere

// faulty selects of the jobs j of a batch the rows that failed because of their content.
const faulty = `j.status = 'failed' AND j.error_class = 'content'`

// correctedHere selects of the ranges o of corrections, and the batches b that have them, those that
// have the row of job j: it had failed when b was submitted, and b stands.
const correctedHere = `o.batch_id = j.parent_id AND j.row_no BETWEEN o.first_line AND o.last_line AND j.finished_at <= b.created_at
	AND ` + stands

// stands selects the corrections b that were not given up as a whole. See [correctionsOf] for the same in Go.
const stands = `b.status NOT IN ('cancelled', 'aborted', 'deleted') AND (b.status <> 'failed' OR b.error_class = 'jobs')`

// Unresolved is the SQL condition of batches i of which something failed that nobody corrects: the batch,
// or, before it ends, rows of it. [registry.BatchProgress] says the same of one batch. Of a batch that
// failed and has no faulty row, only a correction as a whole can have its content. A batch of one object
// can be corrected only as a whole, when it has ended, which it does soon after its object failed.
var Unresolved = `(i.action = 'batch' AND (i.status = 'failed' OR i.status IN ('prepare', 'pending', 'running') AND ` + several + `) AND (
	(EXISTS (SELECT 1 FROM work_item j WHERE j.parent_id = i.id AND ` + faulty + ` AND NOT EXISTS (SELECT 1 ` + correction + `)) AND NOT ` + wholly + `)
	OR (i.status = 'failed' AND NOT (i.error_class = 'content' AND ` + wholly + `) AND NOT EXISTS (SELECT 1 FROM work_item j WHERE j.parent_id = i.id AND ` + faulty + `))))`

// several selects the batches i of more than one job.
const several = `EXISTS (SELECT 1 FROM work_item j WHERE j.parent_id = i.id AND j.row_no > 1)`

// wholly selects the batches i that another corrects as a whole.
var wholly = fmt.Sprintf(`EXISTS (SELECT 1 FROM correction o JOIN work_item b ON b.id = o.corrected_by WHERE o.batch_id = i.id AND o.last_line = %d AND %s)`, math.MaxInt64, stands)

// correctable refuses the correction of a whole batch that has not ended, since other rows may still
// fail; one of which nothing failed because of its content; and one of which others correct all that did.
func (t *tx) correctable(old registry.WorkItem) error {
	refuse := func(text string, args ...any) error {
		return registry.InField("corrects.batch_id", fmt.Errorf("%w: "+text, append([]any{registry.ErrInvalid, old.ID}, args...)...))
	}
	if !old.Status.Settled() {
		return refuse("batch %s is %v, and more of it may fail; wait until it has ended, or name the lines to correct", old.State)
	}
	all, err := correctionsOf(old, t.Item)
	if err != nil {
		return err
	}
	for _, c := range all {
		if c.Rows == 0 && !c.Void {
			return &registry.CorrectedError{BatchID: old.ID, By: c.BatchID}
		}
	}
	if old.FailedItself() && old.ErrorClass == registry.ContentFault {
		return nil
	}
	var failed, left int64
	var by sql.NullString // the oldest correction of one of them
	err = t.Get(`SELECT COUNT(j.id), COUNT(CASE WHEN NOT EXISTS (SELECT 1 `+correction+`) THEN 1 END), MIN((SELECT MIN(b.id) `+correction+`)) FROM work_item j WHERE j.parent_id = $1 AND `+faulty,
		[]any{old.ID}, &failed, &left, &by)
	switch {
	case err != nil:
		return fmt.Errorf("look for what failed of batch %s: %w", old.ID, err)
	case failed == 0 && old.Status == registry.Failed:
		return refuse("batch %s failed, but not because of its content; there is nothing to correct. An operator sees to it")
	case failed == 0:
		return refuse("batch %s is %v, and none of its jobs failed because of its content; there is nothing to correct", old.State)
	case left == 0:
		return &registry.CorrectedError{BatchID: old.ID, By: by.String}
	}
	return nil
}

// judgeRows returns how many rows a correction has. It refuses lines without a failed row, another
// number of rows than the caller gave, and rows that another batch corrects.
func (t *tx) judgeRows(c registry.Corrects, by string) (rows int64, err error) {
	at := 0
	err = sqldb.Each(t.Ask(`SELECT COUNT(j.id) FROM correction c LEFT JOIN work_item j ON j.parent_id = c.batch_id AND j.row_no BETWEEN c.first_line AND c.last_line
		AND `+faulty+` WHERE c.corrected_by = $1 GROUP BY c.first_line ORDER BY c.first_line`, by), "count the failed rows", func(row sqldb.Scanner) error {
		var here int64
		if err := row.Scan(&here); err != nil {
			return err
		}
		if here == 0 {
			return registry.InField(fmt.Sprintf("corrects.lines[%d]", at), fmt.Errorf("%w: no row of batch %s on line %s failed because of its content", registry.ErrInvalid, c.BatchID, c.Lines[at]))
		}
		rows += here
		at++
		return nil
	})
	if err != nil {
		return 0, err
	}
	if c.Rows > 0 && c.Rows != rows {
		return 0, registry.InField("corrects.rows", fmt.Errorf("%w: %d rows on these lines of batch %s failed because of their content, not %d; list them again", registry.ErrInvalid, rows, c.BatchID, c.Rows))
	}
	taken := registry.CorrectedError{BatchID: c.BatchID}
	err = t.Get(`SELECT j.row_no, b.id FROM correction c JOIN correction o ON o.batch_id = c.batch_id AND o.corrected_by <> c.corrected_by
			AND o.first_line <= c.last_line AND o.last_line >= c.first_line
		JOIN work_item b ON b.id = o.corrected_by
		JOIN work_item j ON j.parent_id = c.batch_id AND j.row_no BETWEEN c.first_line AND c.last_line AND `+faulty+` AND `+correctedHere+`
		WHERE c.corrected_by = $1 ORDER BY j.row_no, b.id LIMIT 1`, []any{by}, &taken.Line, &taken.By)
	if errors.Is(err, sql.ErrNoRows) {
		return rows, nil
	} else if err != nil {
		return 0, fmt.Errorf("look for other corrections of batch %s: %w", c.BatchID, err)
	}
	return 0, &taken
}

// noteCorrection lists a correction at the batch that it corrects.
func (t *tx) noteCorrection(old registry.WorkItem, batch work.NewItem, rows int64) error {
	had, err := correctionsOf(old, t.Item)
	if err != nil {
		return err
	}
	kept := []registry.Correction{{BatchID: batch.ID, Rows: rows}}
	for _, one := range had[:min(len(had), mostCorrections-1)] {
		kept = append(kept, registry.Correction{BatchID: one.BatchID, Rows: one.Rows})
	}
	raw, err := json.Marshal(kept)
	if err != nil {
		return fmt.Errorf("encode the corrections of batch %s: %w", old.ID, err)
	}
	if err := t.SetResult(old, registry.ResultCorrections, raw); err != nil {
		return err
	}
	return t.Event(old.ID, old.Attempt, registry.EventCorrected, batch.Actor, kept[0])
}

// CorrectedJobs implements registry.CorrectionReader.
func (s *Deposits) CorrectedJobs(ctx context.Context, batchID string, ids []string) (map[string]string, error) {
	w := &sqldb.Where{}
	w.Add("j.parent_id = ?", sqldb.Clean(batchID))
	w.AddIn("j.id", ids)
	w.Conds = append(w.Conds, faulty)
	by := map[string]string{}
	err := sqldb.Each(s.db.Read.Ask(ctx, `SELECT j.id, MIN(b.id) FROM work_item j JOIN correction o ON o.batch_id = j.parent_id JOIN work_item b ON b.id = o.corrected_by AND `+correctedHere+
		w.String()+` GROUP BY j.id`, w.Args...), "list the corrected rows of batch "+batchID, func(row sqldb.Scanner) error {
		var id, batch string
		err := row.Scan(&id, &batch)
		by[id] = batch
		return err
	})
	return by, err
}

// sumCorrected adds the corrected jobs with row numbers from first to last.
func (s *Deposits) sumCorrected(ctx context.Context, p *registry.BatchProgress, first, last int64) error {
	if len(p.Corrections) == 0 {
		return nil
	}
	var corrected int64
	err := s.db.Read.QueryRowContext(ctx, `SELECT COUNT(*) FROM work_item j WHERE j.parent_id = $1 AND j.row_no BETWEEN $2 AND $3 AND `+faulty+`
		AND EXISTS (SELECT 1 `+correction+`)`, p.BatchID, first, last).Scan(&corrected)
	p.Corrected += corrected
	return err
}

// correctionsOf returns the corrections of a batch as they stand, newest first. Those that were
// removed are left out.
func correctionsOf(batch registry.WorkItem, item func(id string) (registry.WorkItem, error)) ([]registry.Correction, error) {
	raw, ok := batch.Results[registry.ResultCorrections]
	if !ok {
		return nil, nil
	}
	var all []registry.Correction
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("decode the corrections of batch %s: %w", batch.ID, err)
	}
	gone := func(c registry.Correction) bool { return c.State == "" }
	for i := range all {
		it, err := item(all[i].BatchID)
		if errors.Is(err, registry.ErrNotFound) {
			continue
		} else if err != nil {
			return nil, err
		}
		all[i].State, all[i].Status = it.State, it.Status
		all[i].Void = it.FailedItself() || slices.Contains([]registry.Status{registry.Cancelled, registry.Aborted, registry.Deleted}, it.Status)
	}
	return slices.DeleteFunc(all, gone), nil
}
