package work

import (
	"strings"

	"github.com/holdfast/holdfast/registry"
)

// What keeps an item from being started, as SQL: a hold, a lock, a requirement, its time. Claims
// and the relay ask it of rows, and nobody else decides it.

// LockedOut is true for the rows i of work_item that wait for a lock which another item has, or
// which an item that was submitted earlier waits for too (R1). Jobs stand in line for the
// identifiers they came with from the moment they are made, so that a later deposit never overtakes
// an earlier one that is still downloading; only in the stages that the route calls locked does
// that keep them from starting.
var LockedOut = `(i.stage IN ` + lockedStages + ` AND EXISTS (SELECT 1 FROM lock_wait w WHERE w.item_id = i.id AND (
	EXISTS (SELECT 1 FROM lock l WHERE l.key = w.key AND l.item_id <> w.item_id)
	OR EXISTS (SELECT 1 FROM lock_wait v WHERE v.key = w.key
		AND (v.submitted_at, v.item_id) < (w.submitted_at, w.item_id)))))`

// Blocked is true for the rows i whose open prerequisites keep them from starting in their stage:
// any in a gated stage, and in every stage those that were required when the item was submitted.
var Blocked = `(i.blocker_count > 0 AND (i.stage IN ` + gatedStages + ` OR EXISTS (SELECT 1 FROM work_dep d
	WHERE d.item_id = i.id AND d.at_start = 1 AND d.satisfied_at IS NULL)))`

// The stages that the routes call gated and locked, as SQL lists.
var (
	gatedStages  = stagesWhere(func(s registry.Step) bool { return s.Gated })
	lockedStages = stagesWhere(func(s registry.Step) bool { return s.Locked })
)

func stagesWhere(is func(registry.Step) bool) string {
	var names []string
	for _, r := range registry.Routes() {
		for _, s := range r.Steps {
			if is(s) {
				names = append(names, "'"+string(s.Stage)+"'")
			}
		}
	}
	return "(" + strings.Join(names, ", ") + ")"
}

// Delayed is true for the rows i that wait for the time of their next try, or of the next look at
// what they lacked.
const Delayed = `(i.status = 'pending' AND i.ready = 0)`
