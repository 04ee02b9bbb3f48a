package work

import (
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/wording"
)

// AtOnce is the largest number of items that one transaction acts on. A bulk act handles more.
const AtOnce = 100

// Purge deletes an item's rows for good. A batch goes with its jobs, which must all be completed or
// deleted: at once if they are few, otherwise by a bulk act. Events, attempts without
// their logs, commands and the inventory stay (R28).
func (t *Tx) Purge(it registry.WorkItem, c registry.Command) error {
	if err := t.jobsDone(it, c); err != nil {
		return err
	}
	if err := Check(it, c.Act, ""); err != nil {
		return err
	}
	if err := t.purgeable(it, c); err != nil {
		return err
	}
	jobs, err := t.Strings(`SELECT id FROM work_item WHERE parent_id = $1 ORDER BY id`+sqldb.Limit(AtOnce+1), it.ID)
	if err != nil {
		return fmt.Errorf("list jobs: %w", err)
	}
	if len(jobs) > AtOnce {
		return t.actOnJobs(it, c)
	}
	for _, id := range jobs {
		job, err := t.Item(id)
		if err != nil {
			return err
		}
		if err := t.PurgeRows(job, c); err != nil {
			return err
		}
	}
	return t.PurgeRows(it, c)
}

// jobsDone refuses to purge a deleted batch that still has jobs which are neither completed nor
// deleted. The error names some of them.
func (t *Tx) jobsDone(it registry.WorkItem, c registry.Command) error {
	if !it.JobsLeft {
		return nil
	}
	const named = 3
	left, err := t.items(SelectItem+`WHERE i.parent_id = $1 AND i.status NOT IN ('completed', 'deleted') ORDER BY i.row_no`+sqldb.Limit(named+1), it.ID)
	if err != nil {
		return fmt.Errorf("look for unfinished jobs: %w", err)
	}
	var names []string
	for _, job := range left[:min(named, len(left))] {
		names = append(names, fmt.Sprintf("%s (%s)", job.ID, job.State))
	}
	if len(left) > named {
		names = append(names, "and more")
	}
	return fmt.Errorf("it has jobs that are neither completed nor deleted: %s; delete them or let them complete first: %w", strings.Join(names, ", "), refusal(it, c.Act, ""))
}

// purgeable refuses to purge an item that has open jobs, runs, has announced a version that is not
// recorded, or is required by others.
func (t *Tx) purgeable(it registry.WorkItem, c registry.Command) error {
	const family = `(SELECT id FROM work_item WHERE id = $1 OR parent_id = $1)`
	for _, obstacle := range []struct{ query, text string }{
		{`SELECT COUNT(*) FROM work_item WHERE parent_id = $1 AND status NOT IN ('completed', 'deleted')`, "%s not completed or deleted"},
		{`SELECT COUNT(*) FROM attempt WHERE finished_at IS NULL AND item_id IN ` + family, "%s still held by a worker"},
		{`SELECT COUNT(*) FROM work_item WHERE action = 'ingest' AND commitment = 'announced' AND (id = $1 OR parent_id = $1)`, "%s with an object that is not recorded"},
		{`SELECT COUNT(*) FROM work_dep d WHERE d.satisfied_at IS NULL AND d.requires_id IN ` + family + ` AND EXISTS (SELECT 1 FROM work_item w
			WHERE w.id = d.item_id AND w.status NOT IN ('completed', 'aborted', 'deleted'))`, "%s that others wait for"},
	} {
		var n int64
		if err := t.Get(obstacle.query, []any{it.ID}, &n); err != nil {
			return fmt.Errorf("look for obstacles: %w", err)
		}
		if n > 0 {
			return fmt.Errorf(obstacle.text+": %w", "it has "+registry.Count(n, "item"), refusal(it, c.Act, ""))
		}
	}
	return nil
}

// PurgeRows deletes the rows of one item.
func (t *Tx) PurgeRows(it registry.WorkItem, c registry.Command) error {
	if err := t.Event(it.ID, it.Attempt, string(c.Act), c.Actor, Moved{Stage: it.Stage, Status: it.Status, Reason: sqldb.Clean(c.Reason)}); err != nil {
		return err
	}
	t.setEventCollection(it)
	for _, purged := range t.store.hooks.Purged {
		if err := purged(t, it); err != nil {
			return fmt.Errorf("purge item %s: %w", it.ID, err)
		}
	}
	for _, query := range []string{
		`DELETE FROM work_dep WHERE item_id = $1 OR requires_id = $1`,
		`DELETE FROM lock_wait WHERE item_id = $1`,
		`DELETE FROM attempt_log WHERE item_id = $1`,
		`DELETE FROM hold WHERE scope IN ('batch', 'item') AND key = $1`,
		`DELETE FROM work_item WHERE id = $1`,
	} {
		if err := t.Do(query, it.ID); err != nil {
			return fmt.Errorf("purge item %s: %w", it.ID, err)
		}
	}
	return nil
}

// remove deletes an item. A bulk act of its own deletes a batch's jobs.
func (t *Tx) remove(it registry.WorkItem, c registry.Command) error {
	if err := t.may(it, c.Act, registry.Deleted); err != nil {
		return err
	}
	if err := t.confirmed(it, c); err != nil {
		return err
	}
	ch := ChangeBy(it, c, registry.Deleted)
	ch.Note = stopNote(c)
	if err := t.Move(it, ch); err != nil {
		return err
	}
	// An aborted item's staging was cleaned up by the abort. A batch's upload goes only now, with
	// its jobs.
	if it.Status != registry.Aborted || it.Action == registry.Batch {
		if err := t.store.hooks.Stopped(t, it, c.Actor); err != nil {
			return err
		}
	}
	if err := errors.Join(t.endHold(it, c.Actor), t.abortDependents(it, c.Reason, c.Actor)); err != nil {
		return err
	}
	return t.actOnJobs(it, c)
}

// endHold releases the hold on an item that is aborted or deleted. Otherwise it would hold for ever
// those of its jobs that must still be completed.
func (t *Tx) endHold(it registry.WorkItem, actor string) error {
	if !it.OwnHold {
		return nil
	}
	for _, scope := range []registry.HoldScope{registry.HoldItem, registry.HoldBatch} {
		if err := t.removeHold(scope, it.ID, actor); err != nil && !errors.Is(err, registry.ErrNotFound) {
			return fmt.Errorf("release the hold on item %s: %w", it.ID, err)
		}
	}
	return nil
}

// confirmed returns a *registry.ConfirmationNeeded if the act has consequences and the command does
// not confirm them.
func (t *Tx) confirmed(it registry.WorkItem, c registry.Command) error {
	if c.Confirmed {
		return nil
	}
	needed, err := t.store.hooks.Consequences(t, it, c.Act)
	switch {
	case err != nil:
		return fmt.Errorf("look for the consequences of %s for item %s: %w", c.Act, it.ID, err)
	case len(needed) > 0:
		return wording.Confirmation(it.ID, c.Act, needed)
	}
	return nil
}
