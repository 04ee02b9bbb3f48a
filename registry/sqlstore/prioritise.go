package sqlstore

import (
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
)

// prioritise changes when an item has its turn.
func (t *tx) prioritise(it registry.WorkItem, c registry.Command) error {
	if err := check(it, c.Act, it.Status); err != nil {
		return err
	}
	if c.Priority == nil {
		return errors.New("no priority was given")
	}
	_, err := t.exec(`UPDATE work_item SET priority = $2, rank = $3, updated_at = $4 WHERE id = $1`,
		it.ID, *c.Priority, rank(micros(it.CreatedAt), *c.Priority), t.now)
	if err != nil {
		return fmt.Errorf("change priority of item %s: %w", it.ID, err)
	}
	return t.event(it.ID, it.Attempt, string(c.Act), c.Actor, moved{Stage: it.Stage, Status: it.Status, Reason: clean(c.Reason)})
}
