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
	return t.RequireAll(map[string][]Need{itemID: needs})
}

// RequireAll is Require for several items.
func (t *Tx) RequireAll(of map[string][]Need) error {
	var rows [][]any
	for _, itemID := range slices.Sorted(maps.Keys(of)) {
		for _, r := range of[itemID] {
			rows = append(rows, []any{itemID, r.ID, r.WaitFor, sql.NullInt64{Int64: t.Now, Valid: r.satisfied}})
		}
	}
	if err := t.InsertRows(insertNeed, rows); err != nil {
		return fmt.Errorf("add requirements: %w", err)
	}
	return nil
}

var (
	insertNeed = sqldb.InsertInto(`INSERT INTO work_dep (item_id, requires_id, wait_for, satisfied_at, at_start)`, `($1, $2, $3, $4, 1)`)
	addBlocked = sqldb.UpdateFrom(`UPDATE work_item SET blocker_count = blocker_count + v.column2`, `($1, CAST($2 AS BIGINT))`, `work_item.id = v.column1`)
)

// addBlockers adds to the blocker counts of items, whose readiness must be computed anew after it.
func (t *Tx) addBlockers(by map[string]int) error {
	var rows [][]any
	for _, id := range slices.Sorted(maps.Keys(by)) {
		rows = append(rows, []any{id, by[id]})
	}
	if err := t.InsertRows(addBlocked, rows); err != nil {
		return fmt.Errorf("count what blocks items: %w", err)
	}
	return nil
}

// Behind makes pending items wait until items of this transaction have settled, too.
func (t *Tx) Behind(of map[string][]string) error {
	needs, count := map[string][]Need{}, map[string]int{}
	for itemID, on := range of {
		count[itemID] = len(on)
		for _, id := range on {
			needs[itemID] = append(needs[itemID], Need{ID: id, WaitFor: registry.WaitSettled})
		}
	}
	if err := t.RequireAll(needs); err != nil {
		return err
	}
	if err := t.addBlockers(count); err != nil {
		return err
	}
	return t.refreshReady(slices.Sorted(maps.Keys(of))...)
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
			closed[id]--
		}
	}
	if err := t.addBlockers(closed); err != nil {
		return err
	}
	return t.unblocked(slices.Sorted(maps.Keys(closed))...)
}

// unblocked makes those of pending items ready that nothing blocks any more. A batch at its report
// stage begins its next closing in the same transaction, so that each closing has exactly one report
// (R22). A batch that is not expanded yet does not wait for its jobs: their settling changes
// nothing, unless the batch was blocked.
func (t *Tx) unblocked(ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	free, err := t.Strings(`UPDATE work_item AS i SET closing = CASE WHEN i.stage = 'report' THEN i.closing + 1 ELSE i.closing END
		WHERE `+t.Among("i.id")+` AND i.status = 'pending' AND (i.blocker_count = 0 OR i.ready = 2) AND NOT `+Blocked+` RETURNING id`, t.List(ids))
	if err != nil {
		return fmt.Errorf("wake items: %w", err)
	}
	return t.refreshReady(free...)
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
