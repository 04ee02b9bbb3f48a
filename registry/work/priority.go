package work

import (
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// errNoPriority refuses a change of priority that names none.
var errNoPriority = fmt.Errorf("%w: no priority was given", registry.ErrInvalid)

// Rank orders a lane's ready items: age, with every point of priority worth a minute of it. It
// never changes while an item waits, so that nothing starves and nothing has to be updated (R20).
// Below 0 a priority is express: its rank is below any time, so that the item goes before all that
// have one, whenever they were made.
func Rank(createdAt int64, priority int) int64 {
	const minute = 60_000_000
	if priority < 0 {
		return int64(priority) * minute
	}
	return createdAt + int64(priority)*minute
}

// setPriority gives an item another turn, from the very next claim on. A pending one is rung for at
// once.
func (t *Tx) setPriority(it registry.WorkItem, p int) error {
	if err := registry.CheckExpress(&p); err != nil {
		return err
	}
	err := t.Do(`UPDATE work_item SET priority = $2, rank = $3, updated_at = $4 WHERE id = $1`,
		it.ID, p, Rank(sqldb.Micros(it.CreatedAt), p), t.Now)
	if err != nil {
		return fmt.Errorf("change priority of item %s: %w", it.ID, err)
	}
	return t.refreshReady(it.ID)
}

// prioritise carries the act out.
func (t *Tx) prioritise(it registry.WorkItem, c registry.Command) error {
	if err := Check(it, c.Act, it.Status); err != nil {
		return err
	}
	if c.Priority == nil {
		return errNoPriority
	}
	if err := t.setPriority(it, *c.Priority); err != nil {
		return err
	}
	return t.Event(it.ID, it.Attempt, string(c.Act), c.Actor, reprioritised{From: it.Priority, To: *c.Priority, Reason: c.Reason})
}

// reprioritised is the data of the event of a changed priority.
type reprioritised struct {
	From   int    `json:"from"`
	To     int    `json:"to"`
	Reason string `json:"reason,omitempty"`
}
