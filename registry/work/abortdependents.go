package work

import (
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// WaitsFor begins a statement: its rows gone are the items that wait, directly or through others,
// for the success of the item $1.
const WaitsFor = `WITH RECURSIVE gone (id) AS (
			SELECT d.item_id FROM work_dep d WHERE d.requires_id = $1 AND d.wait_for = 'success' AND d.satisfied_at IS NULL
			UNION
			SELECT d.item_id FROM gone g JOIN work_dep d ON d.requires_id = g.id
			WHERE d.wait_for = 'success' AND d.satisfied_at IS NULL)
		`

// WaitedNote begins the note of an item that was aborted because a required item was. That item may
// belong to another collection.
const WaitedNote = "it waited for the success of item "

// Abortable is an SQL condition: an abort reaches row i.
const Abortable = `i.status IN ('prepare', 'pending', 'failed', 'cancelled')`

// abortDependents aborts all items that wait, directly or through others, for the success of an
// item that will never complete. Satisfied edges and siblings stay as they are. None of the items
// can be running: an open requirement of success keeps an item from starting, and a satisfied one
// of them never opens again.
func (t *Tx) abortDependents(it registry.WorkItem, reason, actor string) error {
	dependents, err := t.items(WaitsFor+`SELECT `+ItemColumns+` FROM gone g JOIN work_item i ON i.id = g.id WHERE `+Abortable+` ORDER BY i.id`, it.ID)
	if err != nil {
		return fmt.Errorf("find items that wait for item %s: %w", it.ID, err)
	}
	for _, dependent := range dependents {
		err := t.Move(dependent, Change{
			act: registry.ActAbort, Stage: dependent.Stage, Status: registry.Aborted, n: dependent.Attempt, Actor: actor, Reason: reason,
			Note: sqldb.Clean(fmt.Sprintf(WaitedNote+"%s (%s), which was given up", it.ID, it.Name)),
		})
		if err != nil {
			return fmt.Errorf("abort item that waits for item %s: %w", it.ID, err)
		}
	}
	return nil
}
