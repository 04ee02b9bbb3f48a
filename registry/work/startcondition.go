package work

import (
	"strings"

	"github.com/holdfast/holdfast/registry"
)

// The SQL conditions that keep an item from starting: a lock, a requirement, its time. holdcheck.go
// has the holds. Claims and the relay ask them; nothing else decides whether an item may start.

// LockedOut is an SQL condition: row i of work_item waits for a lock that another item holds, or
// for which an earlier submission waits too (R1). Jobs stand in line for their identifiers as soon
// as they are inserted, so that a later deposit never overtakes an earlier one that is still
// downloading. The line keeps an item from starting only in stages that the route calls locked.
var LockedOut = `(i.stage IN ` + lockedStages + ` AND EXISTS (SELECT 1 FROM lock_wait w WHERE w.item_id = i.id AND (
	EXISTS (SELECT 1 FROM lock l WHERE l.key = w.key AND l.item_id <> w.item_id)
	OR EXISTS (SELECT 1 FROM lock_wait v WHERE v.key = w.key
		AND (v.submitted_at, v.item_id) < (w.submitted_at, w.item_id)))))`

// Blocked is an SQL condition: open requirements keep row i from starting in its stage. In a gated
// stage every requirement counts; in others only those made at submission.
var Blocked = `(i.blocker_count > 0 AND (i.stage IN ` + gatedStages + ` OR EXISTS (SELECT 1 FROM work_dep d
	WHERE d.item_id = i.id AND d.at_start = 1 AND d.satisfied_at IS NULL)))`

// Gated and locked stages of all routes, as SQL lists.
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

// Delayed is an SQL condition: row i waits for the time of its next try.
const Delayed = `(i.status = 'pending' AND i.ready = 0)`
