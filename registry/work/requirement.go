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

// Need is one requirement of an item that is being inserted, as it stands now.
type Need struct {
	ID        string // the required item
	WaitFor   registry.WaitFor
	satisfied bool
}

// NeedOf reads the required item. Write transactions are serial, so the required item cannot settle
// between this read and the insertion of the edge. If it has settled, the edge is inserted as
// satisfied; otherwise its settlement finds the edge (R12).
func (t *Tx) NeedOf(r registry.Requirement) (Need, error) {
	var status registry.Status
	err := t.Get(`SELECT status FROM work_item WHERE id = $1`, []any{r.ItemID}, &status)
	if errors.Is(err, sql.ErrNoRows) {
		return Need{}, fmt.Errorf("required item %s: %w", r.ItemID, registry.ErrNotFound)
	} else if err != nil {
		return Need{}, fmt.Errorf("look at required item %s: %w", r.ItemID, err)
	}
	return NeedAt(r, status)
}

// NeedAt is [Tx.NeedOf] for a required item whose status this transaction has read.
func NeedAt(r registry.Requirement, status registry.Status) (Need, error) {
	n := Need{ID: r.ItemID, WaitFor: r.WaitFor}
	if n.WaitFor == "" {
		n.WaitFor = registry.WaitSuccess
	}
	n.satisfied = n.WaitFor.SatisfiedBy(status)
	if problem := r.CheckOn(status); problem != "" {
		return n, &registry.GraphError{Problem: problem}
	}
	return n, nil
}

// NeedsOf is NeedOf for several requirements.
func (t *Tx) NeedsOf(rs []registry.Requirement) (needs []Need, err error) {
	needs = make([]Need, len(rs))
	for i, r := range rs {
		if needs[i], err = t.NeedOf(r); err != nil {
			return nil, err
		}
	}
	return needs, nil
}

// OpenNeeds counts the requirements that keep the item from starting.
func OpenNeeds(needs []Need) (n int64) {
	for _, r := range needs {
		if !r.satisfied {
			n++
		}
	}
	return n
}

// Require inserts the edges of an item, whose blocker count must already be [OpenNeeds] of them.
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

// Block makes a pending item wait until items of this transaction are over, see
// [registry.WaitOver].
func (t *Tx) Block(itemID string, on []string) error {
	needs := make([]Need, len(on))
	for i, id := range on {
		needs[i] = Need{ID: id, WaitFor: registry.WaitOver}
	}
	if err := t.Require(itemID, needs); err != nil {
		return err
	}
	if err := t.Do(`UPDATE work_item SET blocker_count = blocker_count + $2 WHERE id = $1`, itemID, len(on)); err != nil {
		return fmt.Errorf("block item %s: %w", itemID, err)
	}
	return t.refreshReady(itemID)
}

// satisfy closes the edges that settled items satisfy, and makes dependents without open edges
// ready. It subtracts exactly the edges that these statements closed, so that blocker_count always
// equals a recount (I9, R12). A batch is written once, however many of its jobs settled together
// (R23).
func (t *Tx) satisfy(settled []Shift) error {
	type end struct{ completed, over bool }
	by := sqldb.IDsByKey[end]{}
	for _, s := range settled {
		by.Add(end{registry.WaitSuccess.SatisfiedBy(s.Status), registry.WaitOver.SatisfiedBy(s.Status)}, s.Item.ID)
	}
	closed := map[string]int{}
	for e, ids := range by.All() {
		dependents, err := t.Strings(`UPDATE work_dep SET satisfied_at = $2 WHERE `+t.Among("requires_id")+` AND satisfied_at IS NULL
			AND (wait_for = 'settled' OR $3 = 1 OR wait_for = 'over' AND $4 = 1) RETURNING item_id`,
			t.List(ids), t.Now, sqldb.Bit(e.completed), sqldb.Bit(e.over))
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

// unblocked makes a pending item ready that nothing blocks any more. A batch at its report stage
// begins its next closing in the same transaction, so that each closing has exactly one report
// (R22). A batch that is not expanded yet does not wait for its jobs: their settling changes
// nothing, unless the batch was blocked.
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

// reopen is the reverse of satisfy, for an item that runs again. A running dependent finishes its
// step.
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

// Postpone makes a pending item wait until another one has settled, too.
func (t *Tx) Postpone(itemID, requiresID string) error {
	n, err := t.Exec(`INSERT INTO work_dep (item_id, requires_id, wait_for, satisfied_at, at_start)
		SELECT $1, $2, 'settled', NULL, 1 WHERE NOT EXISTS (SELECT 1 FROM work_dep WHERE item_id = $1 AND requires_id = $2)`, itemID, requiresID)
	if err != nil {
		return fmt.Errorf("let %s wait for %s: %w", itemID, requiresID, err)
	}
	if n == 0 {
		return nil // it waits already
	}
	if err := t.Do(`UPDATE work_item SET blocker_count = blocker_count + 1 WHERE id = $1`, itemID); err != nil {
		return fmt.Errorf("block %s: %w", itemID, err)
	}
	return t.refreshReady(itemID)
}

// Overtake lets those go first that wait for a pending item to settle: they wait for it no longer.
// It returns their ids.
func (t *Tx) Overtake(itemID string) ([]string, error) {
	ids, err := t.Strings(`DELETE FROM work_dep WHERE requires_id = $1 AND satisfied_at IS NULL AND wait_for = 'settled' RETURNING item_id`, itemID)
	if err != nil {
		return nil, fmt.Errorf("let others overtake %s: %w", itemID, err)
	}
	for _, id := range ids {
		if err := t.Do(`UPDATE work_item SET blocker_count = blocker_count - 1 WHERE id = $1`, id); err != nil {
			return nil, fmt.Errorf("unblock %s: %w", id, err)
		}
		if err := t.unblocked(id); err != nil {
			return nil, err
		}
	}
	return ids, nil
}
