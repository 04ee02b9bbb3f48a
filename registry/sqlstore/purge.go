package sqlstore

import (
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/registry"
)

// purge removes an item's rows for good. A batch goes with its jobs, which must all be completed or deleted: at once when
// they are few, otherwise by a bulk act. Events, attempts, commands and the inventory stay (R28).
func (t *tx) purge(it registry.WorkItem, c registry.Command) error {
	if err := t.jobsDone(it, c); err != nil {
		return err
	}
	if err := check(it, c.Act, ""); err != nil {
		return err
	}
	if err := t.purgeable(it, c); err != nil {
		return err
	}
	jobs, err := t.strings(`SELECT id FROM work_item WHERE parent_id = $1 ORDER BY id`+limit(applyChunk+1), it.ID)
	if err != nil {
		return fmt.Errorf("list jobs: %w", err)
	}
	if len(jobs) > applyChunk {
		return t.family(it, c)
	}
	for _, id := range jobs {
		job, err := t.item(id)
		if err != nil {
			return err
		}
		if err := t.purgeRows(job, c); err != nil {
			return err
		}
	}
	return t.purgeRows(it, c)
}

// jobsDone refuses the purge of a deleted batch whose jobs were not all deleted with it, and names some of them.
func (t *tx) jobsDone(it registry.WorkItem, c registry.Command) error {
	if !it.JobsLeft {
		return nil
	}
	const named = 3
	left, err := t.items(selectItem+`WHERE i.parent_id = $1 AND i.status NOT IN ('completed', 'deleted') ORDER BY i.row_no`+limit(named+1), it.ID)
	if err != nil {
		return fmt.Errorf("look for jobs that are left: %w", err)
	}
	var names []string
	for _, job := range left[:min(named, len(left))] {
		names = append(names, fmt.Sprintf("%s (%s)", job.ID, job.State))
	}
	if len(left) > named {
		names = append(names, "and more")
	}
	return fmt.Errorf("jobs of it are neither completed nor deleted: %s; delete them, or let them complete, first: %w", strings.Join(names, ", "), refusal(it, c.Act, ""))
}

// purgeable refuses a purge of what somebody still works on, has announced or waits for.
func (t *tx) purgeable(it registry.WorkItem, c registry.Command) error {
	const family = `(SELECT id FROM work_item WHERE id = $1 OR parent_id = $1)`
	for _, obstacle := range []struct{ query, text string }{
		{`SELECT COUNT(*) FROM work_item WHERE parent_id = $1 AND status NOT IN ('completed', 'deleted')`, "%s not completed or deleted"},
		{`SELECT COUNT(*) FROM attempt WHERE finished_at IS NULL AND item_id IN ` + family, "%s still held by a worker"},
		{`SELECT COUNT(*) FROM object_version WHERE status = 'intended' AND item_id IN ` + family, "%s with an object that is not recorded"},
		{`SELECT COUNT(*) FROM work_dep d WHERE d.satisfied_at IS NULL AND d.requires_id IN ` + family + ` AND EXISTS (SELECT 1 FROM work_item w
			WHERE w.id = d.item_id AND w.status NOT IN ('completed', 'aborted', 'deleted'))`, "%s that others wait for"},
	} {
		var n int64
		if err := t.get(obstacle.query, []any{it.ID}, &n); err != nil {
			return fmt.Errorf("look for obstacles: %w", err)
		}
		if n > 0 {
			return fmt.Errorf(obstacle.text+": %w", "it has "+count(n, "item"), refusal(it, c.Act, ""))
		}
	}
	return nil
}

// purgeRest ends a purge that was carried out in portions: the batch goes when none of its jobs is left.
func (t *tx) purgeRest(spec registry.BulkSpec, actor string, p *applied) error {
	batch, err := t.item(spec.Parent)
	if err != nil {
		return err
	}
	refused, err := t.try(func() error {
		return t.purge(batch, registry.Command{ItemID: batch.ID, Act: spec.Act, Reason: spec.Reason, Actor: actor})
	})
	if refused != nil {
		p.Refusals = append(p.Refusals, clean(fmt.Sprintf("%s: %v", batch.ID, refused)))
	}
	return err
}

// purgeRows removes one item's rows.
func (t *tx) purgeRows(it registry.WorkItem, c registry.Command) error {
	if err := t.event(it.ID, it.Attempt, string(c.Act), c.Actor, moved{Stage: it.Stage, Status: it.Status, Reason: clean(c.Reason)}); err != nil {
		return err
	}
	t.keepCollection(it)
	for _, query := range []string{
		`DELETE FROM work_dep WHERE item_id = $1 OR requires_id = $1`,
		`DELETE FROM lock_wait WHERE item_id = $1`,
		`DELETE FROM hold WHERE scope IN ('batch', 'item') AND key = $1`,
		`DELETE FROM report_job WHERE batch_id = $1`,
		`DELETE FROM report WHERE batch_id = $1`,
		`DELETE FROM report_draft WHERE batch_id = $1`,
		// Who was told of it goes with it, and so do the items that told them.
		`DELETE FROM work_item WHERE action = 'deliver' AND status = 'completed' AND id IN (SELECT item_id FROM delivery WHERE subject = $1)`,
		`DELETE FROM delivery WHERE subject = $1`,
		`DELETE FROM work_item WHERE id = $1`,
	} {
		if err := t.do(query, it.ID); err != nil {
			return fmt.Errorf("purge item %s: %w", it.ID, err)
		}
	}
	if it.ParentID == "" {
		return nil
	}
	err := t.do(`DELETE FROM report_job WHERE batch_id = $1 AND row_no = $2
		AND closing IN (SELECT closing FROM report WHERE batch_id = $1)`, it.ParentID, it.Line)
	if err != nil {
		return fmt.Errorf("purge reports of item %s: %w", it.ID, err)
	}
	return nil
}
