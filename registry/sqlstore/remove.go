package sqlstore

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
)

// remove gives an item up. A batch's jobs follow by a bulk act of their own.
func (t *tx) remove(it registry.WorkItem, c registry.Command) error {
	if err := check(it, c.Act, registry.Deleted); err != nil {
		return err
	}
	if err := t.noReturn(it, c.Act); err != nil {
		return err
	}
	if !c.Confirmed {
		needed, err := t.consequences(it)
		if err != nil {
			return fmt.Errorf("look what a delete of item %s would take along: %w", it.ID, err)
		}
		if len(needed) > 0 {
			return &registry.ConfirmationNeeded{ItemID: it.ID, Act: c.Act, Consequences: needed}
		}
	}
	ch := changeBy(it, c, registry.Deleted)
	ch.note = done(c)
	if err := t.move(it, ch); err != nil {
		return err
	}
	// The staging of what was aborted has been seen to, but not the upload of a batch whose jobs go only now.
	if it.Status != registry.Aborted || it.Action == registry.Batch {
		if err := t.tidy(it, c.Actor); err != nil {
			return err
		}
	}
	if err := t.abortDependents(it, c.Reason, c.Actor); err != nil {
		return err
	}
	return t.family(it, c)
}

// consequences are what a delete cannot take back, a sentence each.
func (t *tx) consequences(it registry.WorkItem) ([]string, error) {
	if it.Action == registry.Batch {
		return t.consequencesOfBatch(it)
	}
	var out []string
	if it.ParentID != "" {
		var status registry.Status
		err := t.get(`SELECT status FROM work_item WHERE id = $1`, []any{it.ParentID}, &status)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return nil, err
		}
		if err == nil && !status.Settled() {
			out = append(out, fmt.Sprintf("batch %s is not completed: its depositor will not be told of this job", it.ParentID))
		}
	}
	if it.DoneBytes > 0 && it.Status != registry.Aborted {
		out = append(out, bytesText(it.DoneBytes)+" in staging go")
	}
	return out, nil
}

func (t *tx) consequencesOfBatch(it registry.WorkItem) (out []string, err error) {
	var reported bool
	if err := t.get(`SELECT EXISTS (SELECT 1 FROM report WHERE batch_id = $1)`, []any{it.ID}, &reported); err != nil {
		return nil, err
	}
	if reported {
		out = append(out, "the depositor is told nothing more than what the last report said")
	} else {
		out = append(out, "the depositor is not notified of this")
	}
	var gone, open, kept, staged, bytes int64
	err = t.get(`SELECT COUNT(CASE WHEN status NOT IN ('completed', 'deleted') THEN 1 END),
			COUNT(CASE WHEN status IN ('prepare', 'pending', 'running') THEN 1 END),
			COUNT(CASE WHEN status = 'completed' THEN 1 END),
			COUNT(CASE WHEN status NOT IN ('completed', 'deleted', 'aborted') AND done_bytes > 0 THEN 1 END),
			COALESCE(SUM(CASE WHEN status NOT IN ('completed', 'deleted', 'aborted') THEN done_bytes ELSE 0 END), 0)
		FROM work_item WHERE parent_id = $1`, []any{it.ID}, &gone, &open, &kept, &staged, &bytes)
	if err != nil {
		return nil, err
	}
	if gone > 0 {
		text := "1 job is deleted"
		if gone > 1 {
			text = count(gone, "job") + " are deleted"
		}
		if open > 0 {
			text += fmt.Sprintf(", %d of them stopped first", open)
		}
		out = append(out, text)
	}
	if staged > 0 {
		out = append(out, fmt.Sprintf("%s in staging of %s go", bytesText(bytes), count(staged, "job")))
	}
	if kept > 0 {
		out = append(out, fmt.Sprintf("what %s stored stays", count(kept, "completed job")))
	}
	return out, nil
}

// bytesText is a size for people.
func bytesText(n int64) string {
	v, unit := float64(n), 0
	for units := len(" kMGTPE"); v >= 999.95 && unit < units-1; unit++ {
		v /= 1000
	}
	if unit == 0 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%.1f %cB", v, " kMGTPE"[unit])
}
