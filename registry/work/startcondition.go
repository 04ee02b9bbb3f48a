package work

import (
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// The SQL conditions that keep an item from starting: a lock, a requirement, its time, a hold.
// Claims and the relay ask them; nothing else decides whether an item may start.

// LockedOut is an SQL condition: row i of work_item waits for a lock that another item holds, or
// for which an earlier submission waits too (R1). Jobs stand in line for their identifiers as soon
// as they are inserted, so that a later deposit never overtakes an earlier one that is still
// downloading. The line keeps an item from starting only in stages that the route calls locked.
var LockedOut = lockedOutAt("i.stage")

func lockedOutAt(stage string) string {
	return `(` + stage + ` IN ` + lockedStages + ` AND EXISTS (SELECT 1 FROM lock_wait w WHERE w.item_id = i.id AND (
	EXISTS (SELECT 1 FROM lock l WHERE l.key = w.key AND l.item_id <> w.item_id)
	OR EXISTS (SELECT 1 FROM lock_wait v WHERE v.key = w.key
		AND (v.submitted_at, v.item_id) < (w.submitted_at, w.item_id)))))`
}

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

// HeldBy is an SQL condition: a hold keeps row i of work_item from starting in its stage. It is the
// same rule as registry.Hold.Covers. Claims and the relay ask it; nothing else decides whether an
// item is held.
var HeldBy = heldAt("i.stage")

// heldNext is HeldBy for the step that starts next. For a running row that is the step after the
// present one.
var heldNext = heldAt(nextStage())

// heldAt is the SQL condition that a hold covers row i when it is at a stage.
func heldAt(stage string) string {
	return `(EXISTS (SELECT 1 FROM hold) AND (` + placeHeld(stage, "i.collection") + `
	OR EXISTS (SELECT 1 FROM hold h WHERE h.scope = 'item' AND h.key = i.id)
	OR (` + stage + ` IN ` + sqldb.Names(registry.DepositStages()) + `
		AND EXISTS (SELECT 1 FROM hold h WHERE h.scope = 'batch' AND h.key IN (i.parent_id, i.id)))
	OR (` + stage + ` IN ` + writingStages(registry.StorageVolume, registry.AllStorages) + `
		AND EXISTS (SELECT 1 FROM hold h WHERE h.scope = 'volume' AND h.key = i.volume))
	OR (` + stage + ` IN ` + writingStages(registry.OtherStorages, registry.AllStorages) + `
		AND EXISTS (SELECT 1 FROM hold h WHERE h.scope = 'volume' AND ` + IsOther("h.key") + `))))`
}

// placeHeld is the SQL condition that a hold covers all items of a collection at a stage. There is
// one staging volume, so a hold on that covers whole stages, too. Each scope is looked up by the key
// of table hold, however many holds there are.
func placeHeld(stage, collection string) string {
	return `EXISTS (SELECT 1 FROM hold WHERE scope = 'all')
	OR EXISTS (SELECT 1 FROM hold h WHERE h.scope = 'stage' AND h.key = ` + stage + `)
	OR (` + stage + ` IN ` + sqldb.Names(registry.DepositStages()) + ` AND (EXISTS (SELECT 1 FROM hold WHERE scope = 'ingest')
		OR EXISTS (SELECT 1 FROM hold h WHERE h.scope = 'collection' AND h.key = ` + collection + `)))
	OR (` + stage + ` IN ` + stagingStages + ` AND EXISTS (SELECT 1 FROM hold WHERE scope = 'volume' AND key = '` + registry.DefaultStaging + `'))`
}

// nextStage returns the SQL expression for the stage of row i's next step: the next on the route
// that is not optional, or that the item takes.
func nextStage() string {
	var b strings.Builder
	b.WriteString("CASE WHEN i.status <> 'running' THEN i.stage")
	for _, r := range registry.Routes() {
		for n, s := range r.Steps {
			for _, next := range r.Steps[n+1:] {
				b.WriteString(" WHEN i.stage = '" + string(s.Stage) + "'")
				if next.Optional {
					b.WriteString(" AND i.optional LIKE '%" + sqldb.WordList([]registry.Stage{next.Stage}) + "%'")
				}
				b.WriteString(" THEN '" + string(next.Stage) + "'")
				if !next.Optional {
					break
				}
			}
		}
	}
	return b.String() + " ELSE i.stage END"
}

// IsOther returns the SQL condition that the storages of row i after the first include a name.
// Names of storages have no commas.
func IsOther(name string) string {
	return `(i.other_storages <> '' AND REPLACE(i.other_storages, ',' || ` + name + ` || ',', '') <> i.other_storages)`
}

func writingStages(to ...registry.VolumeKind) string {
	return stagesWhere(func(s registry.Step) bool { return slices.Contains(to, s.Writes) })
}

// stagingStages are the stages that write to the staging volume.
var stagingStages = stagesWhere(func(s registry.Step) bool { return s.Writes == registry.StagingVolume })

// Shut returns the SQL condition that a hold covers all items like a row of work_item or lane,
// which the statement calls alias.
func Shut(alias string) string {
	return `(EXISTS (SELECT 1 FROM hold) AND (` + placeHeld(alias+".stage", alias+".collection") + `))`
}
