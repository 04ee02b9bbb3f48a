package work

import (
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// WaitsFor selects the ids of what waits, directly or through others, for the success of the item
// $1 and has not been satisfied.
const WaitsFor = `WITH RECURSIVE gone (id) AS (
			SELECT d.item_id FROM work_dep d WHERE d.requires_id = $1 AND d.wait_for = 'success' AND d.satisfied_at IS NULL
			UNION
			SELECT d.item_id FROM gone g JOIN work_dep d ON d.requires_id = g.id
			WHERE d.wait_for = 'success' AND d.satisfied_at IS NULL)
		`

// WaitedNote begins the note of what was aborted because of what it waited for, which may be of
// another collection.
const WaitedNote = "it waited for the success of item "

// Abortable limits items i to those that an abort reaches.
const Abortable = `i.status IN ('prepare', 'pending', 'failed', 'cancelled')`

// abortDependents aborts, in the transaction that ended it, everything that waits directly or
// through others for the success of an item which will never complete. What was satisfied before
// stays as it is, and so do siblings. None of these items can be running: an open requirement of
// success keeps an item from starting, and is never opened again.
func (t *Tx) abortDependents(it registry.WorkItem, reason, actor string) error {
	dependents, err := t.items(WaitsFor+`SELECT `+ItemColumns+` FROM gone g JOIN work_item i ON i.id = g.id WHERE `+Abortable+` ORDER BY i.id`, it.ID)
	if err != nil {
		return fmt.Errorf("find what waits for item %s: %w", it.ID, err)
	}
	for _, dependent := range dependents {
		err := t.Move(dependent, Change{
			act: registry.ActAbort, Stage: dependent.Stage, Status: registry.Aborted, n: dependent.Attempt, Actor: actor, Reason: reason,
			Note: sqldb.Clean(fmt.Sprintf(WaitedNote+"%s (%s), which was given up", it.ID, it.Name)),
		})
		if err != nil {
			return fmt.Errorf("abort what waits for item %s: %w", it.ID, err)
		}
	}
	return nil
}
