package sqlstore

import (
	"fmt"

	"github.com/holdfast/holdfast/registry"
)

// satisfy closes the edges that a settled item satisfies, and lets parents go whose last one it was. The count taken
// off is that of the edges this very statement closed, so that blocker_count always equals a recount (I9, R12).
func (t *tx) satisfy(itemID string, to registry.Status) error {
	parents, err := t.strings(`UPDATE work_dep SET satisfied_at = $2 WHERE requires_id = $1 AND satisfied_at IS NULL
		AND (wait_for = 'settled' OR $3 = 'completed') RETURNING item_id`, itemID, t.now, to)
	if err != nil {
		return fmt.Errorf("close edges to %s: %w", itemID, err)
	}
	for _, parent := range parents {
		if _, err := t.exec(`UPDATE work_item SET blocker_count = blocker_count - 1 WHERE id = $1`, parent); err != nil {
			return fmt.Errorf("unblock %s: %w", parent, err)
		}
		if err := t.unblocked(parent); err != nil {
			return err
		}
	}
	return nil
}

// unblocked rings for an item whose last prerequisite is gone. A batch that stands at its report begins its next closing
// in the same transaction, so that there is exactly one report for each (R22).
func (t *tx) unblocked(id string) error {
	n, err := t.exec(`UPDATE work_item SET closing = CASE WHEN stage = 'report' THEN closing + 1 ELSE closing END
		WHERE id = $1 AND blocker_count = 0 AND status = 'pending'`, id)
	if err != nil {
		return fmt.Errorf("wake %s: %w", id, err)
	}
	if n == 0 {
		return nil
	}
	return t.place(id)
}

// reopen is the mirror image of satisfy, for an item that runs again.
func (t *tx) reopen(itemID string) error {
	parents, err := t.strings(`UPDATE work_dep SET satisfied_at = NULL WHERE requires_id = $1 AND satisfied_at IS NOT NULL
		RETURNING item_id`, itemID)
	if err != nil {
		return fmt.Errorf("reopen edges to %s: %w", itemID, err)
	}
	for _, parent := range parents {
		if _, err := t.exec(`UPDATE work_item SET blocker_count = blocker_count + 1 WHERE id = $1`, parent); err != nil {
			return fmt.Errorf("block %s: %w", parent, err)
		}
		if err := t.place(parent); err != nil {
			return err
		}
	}
	return nil
}
