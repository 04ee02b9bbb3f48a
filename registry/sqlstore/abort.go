package sqlstore

import (
	"fmt"

	"github.com/holdfast/holdfast/registry"
)

// waitsFor selects the ids of what waits, directly or through others, for the success of the item $1 and has not been satisfied.
const waitsFor = `WITH RECURSIVE gone (id) AS (
			SELECT d.item_id FROM work_dep d WHERE d.requires_id = $1 AND d.wait_for = 'success' AND d.satisfied_at IS NULL
			UNION
			SELECT d.item_id FROM gone g JOIN work_dep d ON d.requires_id = g.id
			WHERE d.wait_for = 'success' AND d.satisfied_at IS NULL)
		`

// waitedNote begins the note of what was aborted because of what it waited for, which may be of another collection.
const waitedNote = "it waited for the success of item "

// abortable limits items i to those that an abort reaches.
const abortable = `i.status IN ('prepare', 'pending', 'failed', 'cancelled')`

// consequencesOfAbort are what an abort cannot take back, a sentence each. That it is for good is one for every item.
func (t *tx) consequencesOfAbort(it registry.WorkItem) (out []string, err error) {
	switch it.Action {
	case registry.Batch:
		out = []string{"the batch ends for good: neither it nor what is aborted with it can be requeued; what is still wanted has to be submitted again"}
		told, err := t.endToldTo(it, registry.Aborted)
		if err != nil {
			return nil, err
		}
		jobs, err := t.consequencesForJobs(it, registry.ActAbort)
		if err != nil {
			return nil, err
		}
		out = append(append(out, told), jobs...)
	case registry.Ingest:
		out = []string{"the job ends for good: it cannot be requeued; what is still wanted has to be submitted again"}
		open, err := t.inOpenBatch(it)
		if err != nil {
			return nil, err
		}
		if open {
			out = append(out, fmt.Sprintf("batch %s reports it as failed", it.ParentID))
		}
	default:
		out = []string{"it ends for good: it cannot be requeued"}
	}
	if it.DoneBytes > 0 {
		out = append(out, bytesText(it.DoneBytes)+" in staging go")
	}
	var waiting int64
	if err := t.get(waitsFor+`SELECT COUNT(*) FROM gone g JOIN work_item i ON i.id = g.id WHERE `+abortable, []any{it.ID}, &waiting); err != nil {
		return nil, err
	}
	if waiting > 0 {
		out = append(out, either(waiting, "1 item that waits for its success is aborted, too", "%d items that wait for its success are aborted, too"))
	}
	return out, nil
}

// abortDependents aborts, in the transaction that ended it, everything that waits directly or through others for the
// success of an item which will never complete. What was satisfied before stays as it is, and so do siblings. None of
// these items can be running: an open requirement of success keeps an item from starting, and is never opened again.
func (t *tx) abortDependents(it registry.WorkItem, reason, actor string) error {
	dependents, err := t.items(waitsFor+`SELECT `+itemColumns+` FROM gone g JOIN work_item i ON i.id = g.id WHERE `+abortable+` ORDER BY i.id`, it.ID)
	if err != nil {
		return fmt.Errorf("find what waits for item %s: %w", it.ID, err)
	}
	for _, dependent := range dependents {
		err := t.move(dependent, change{
			act: registry.ActAbort, stage: dependent.Stage, status: registry.Aborted, n: dependent.Attempt, actor: actor, reason: reason,
			note: clean(fmt.Sprintf(waitedNote+"%s (%s), which was given up", it.ID, it.Name)),
		})
		if err != nil {
			return fmt.Errorf("abort what waits for item %s: %w", it.ID, err)
		}
	}
	return nil
}
