package work

import (
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// Need is one requirement of an item that is being born, as it stands at this moment.
type Need struct {
	ID        string // of the required item
	WaitFor   registry.WaitFor
	satisfied bool
}

// NeedOf looks at the item that is required by its id. Writers are one after the other, so it
// cannot settle between this look and the edge's birth: either it has settled, and the edge is born
// satisfied, or its settlement finds the edge (R12).
func (t *Tx) NeedOf(r registry.Requirement) (Need, error) {
	n := Need{ID: r.ItemID, WaitFor: r.WaitFor}
	if n.WaitFor == "" {
		n.WaitFor = registry.WaitSuccess
	}
	var status registry.Status
	err := t.Get(`SELECT status FROM work_item WHERE id = $1`, []any{r.ItemID}, &status)
	if errors.Is(err, sql.ErrNoRows) {
		return n, fmt.Errorf("required item %s: %w", r.ItemID, registry.ErrNotFound)
	} else if err != nil {
		return n, fmt.Errorf("look at required item %s: %w", r.ItemID, err)
	}
	n.satisfied = n.WaitFor.SatisfiedBy(status)
	if problem := r.CheckOn(status); problem != "" {
		return n, &registry.GraphError{Problem: problem}
	}
	return n, nil
}

// OpenNeeds counts those that keep the item from starting.
func OpenNeeds(needs []Need) (n int64) {
	for _, r := range needs {
		if !r.satisfied {
			n++
		}
	}
	return n
}

// Require writes the edges of an item that was inserted with as many blockers as of them are open.
func (t *Tx) Require(itemID string, needs []Need) error {
	for _, r := range needs {
		satisfied := sql.NullInt64{Int64: t.Now, Valid: r.satisfied}
		err := t.Do(`INSERT INTO work_dep (item_id, requires_id, wait_for, satisfied_at, at_start) VALUES ($1, $2, $3, $4, 1)`,
			itemID, r.ID, r.WaitFor, satisfied)
		if err != nil {
			return fmt.Errorf("require %s of %s: %w", r.ID, itemID, err)
		}
	}
	return nil
}

// satisfy closes the edges that settled items satisfy, and lets dependents go whose last one it
// was. The count taken off is that of the edges these very statements closed, so that blocker_count
// always equals a recount (I9, R12). A batch is written once, however many of its jobs settled
// together (R23).
func (t *Tx) satisfy(settled []Shift) error {
	by := sqldb.Groups[bool]{} // whether they completed
	for _, s := range settled {
		by.Add(s.Status == registry.Completed, s.Item.ID)
	}
	closed := map[string]int{}
	for completed, ids := range by.All() {
		dependents, err := t.Strings(`UPDATE work_dep SET satisfied_at = $2 WHERE `+t.Among("requires_id")+` AND satisfied_at IS NULL
			AND (wait_for = 'settled' OR $3 = 1) RETURNING item_id`, t.List(ids), t.Now, sqldb.Bit(completed))
		if err != nil {
			return fmt.Errorf("close edges: %w", err)
		}
		for _, id := range dependents {
			closed[id]++
		}
	}
	for _, id := range slices.Sorted(maps.Keys(closed)) {
		if err := t.Do(`UPDATE work_item SET blocker_count = blocker_count - $2 WHERE id = $1`, id, closed[id]); err != nil {
			return fmt.Errorf("unblock %s: %w", id, err)
		}
		if err := t.unblocked(id); err != nil {
			return err
		}
	}
	return nil
}

// unblocked rings for a pending item that nothing blocks any more. A batch that stands at its
// report begins its next closing in the same transaction, so that there is exactly one report for
// each (R22). One that is to be expanded does not wait for its jobs: they settle without a ring,
// unless there was none yet.
func (t *Tx) unblocked(id string) error {
	n, err := t.Exec(`UPDATE work_item AS i SET closing = CASE WHEN i.stage = 'report' THEN i.closing + 1 ELSE i.closing END
		WHERE i.id = $1 AND i.status = 'pending' AND (i.blocker_count = 0 OR i.ready = 2) AND NOT `+Blocked, id)
	if err != nil {
		return fmt.Errorf("wake %s: %w", id, err)
	}
	if n == 0 {
		return nil
	}
	return t.refreshReady(id)
}

// reopen is the mirror image of satisfy, for an item that runs again. A running dependent finishes
// its step.
func (t *Tx) reopen(itemID string) error {
	dependents, err := t.Strings(`UPDATE work_dep SET satisfied_at = NULL WHERE requires_id = $1 AND satisfied_at IS NOT NULL
		RETURNING item_id`, itemID)
	if err != nil {
		return fmt.Errorf("reopen edges to %s: %w", itemID, err)
	}
	for _, id := range dependents {
		if err := t.Do(`UPDATE work_item SET blocker_count = blocker_count + 1 WHERE id = $1`, id); err != nil {
			return fmt.Errorf("block %s: %w", id, err)
		}
		if err := t.refreshReady(id); err != nil {
			return err
		}
	}
	return nil
}
