package sqlstore

import (
	"fmt"

	"github.com/holdfast/holdfast/registry"
)

// abortDependents aborts, in the transaction that ended it, everything that waits directly or through others for the
// success of an item which will never complete. What was satisfied before stays as it is, and so do siblings. None of
// these items can be running: an open requirement of success keeps an item from starting, and is never opened again.
func (t *tx) abortDependents(it registry.WorkItem, reason, actor string) error {
	dependents, err := t.items(`WITH RECURSIVE gone (id) AS (
			SELECT d.item_id FROM work_dep d WHERE d.requires_id = $1 AND d.wait_for = 'success' AND d.satisfied_at IS NULL
			UNION
			SELECT d.item_id FROM gone g JOIN work_dep d ON d.requires_id = g.id
			WHERE d.wait_for = 'success' AND d.satisfied_at IS NULL)
		SELECT `+itemColumns+` FROM gone g JOIN work_item i ON i.id = g.id
		WHERE i.status IN ('prepare', 'pending', 'failed', 'cancelled') ORDER BY i.id`, it.ID)
	if err != nil {
		return fmt.Errorf("find what waits for item %s: %w", it.ID, err)
	}
	for _, dependent := range dependents {
		err := t.move(dependent, change{
			act: registry.ActAbort, stage: dependent.Stage, status: registry.Aborted, n: dependent.Attempt, actor: actor, reason: reason,
			note: clean(fmt.Sprintf("it waited for the success of item %s (%s), which was given up", it.ID, it.Name)),
		})
		if err != nil {
			return fmt.Errorf("abort what waits for item %s: %w", it.ID, err)
		}
	}
	return nil
}
