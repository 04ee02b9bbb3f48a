package work

import (
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// errNoPriority refuses a change of priority without a priority.
var errNoPriority = fmt.Errorf("%w: no priority was given", registry.ErrInvalid)

// Rank returns an item's place among a lane's ready items: its age, where one point of priority is
// worth one minute. It stays the same while an item waits, so nothing starves and nothing has to be
// updated (R20). A priority below 0 is express: its rank comes before all ranks that are times.
func Rank(createdAt int64, priority int) int64 {
	const minute = 60_000_000
	if priority < 0 {
		return int64(priority) * minute
	}
	return createdAt + int64(priority)*minute
}

// setPriority changes an item's priority from the next claim on. A pending item becomes due at
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

// prioritise carries out the act that changes a priority.
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
