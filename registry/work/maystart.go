package work

import (
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// What keeps an item from being started, as SQL: a hold, a lock, a requirement, its time. Claims
// and the relay ask it of rows, and nobody else decides it.

// HeldBy is true for the rows i of work_item that some hold keeps from starting in their stage. It
// is the rule of registry.Hold.Covers.
var HeldBy = heldAt("i.stage")

// heldNext is heldBy for the step that starts next, which for a running row is the one after its
// own.
var heldNext = heldAt(nextStage())

// Each scope is looked up by the key of hold, however many holds there are, and nothing is looked
// up when there are none.
func heldAt(stage string) string {
	return `(EXISTS (SELECT 1 FROM hold) AND (EXISTS (SELECT 1 FROM hold WHERE scope = 'all')
	OR EXISTS (SELECT 1 FROM hold h WHERE h.scope = 'stage' AND h.key = ` + stage + `)
	OR EXISTS (SELECT 1 FROM hold h WHERE h.scope = 'item' AND h.key = i.id)
	OR (` + stage + ` IN ` + sqldb.Names(registry.DepositStages()) + ` AND (EXISTS (SELECT 1 FROM hold WHERE scope = 'ingest')
		OR EXISTS (SELECT 1 FROM hold h WHERE h.scope = 'collection' AND h.key = i.collection)
		OR EXISTS (SELECT 1 FROM hold h WHERE h.scope = 'batch' AND h.key IN (i.parent_id, i.id))))
	OR (` + stage + ` IN ` + writingStages(registry.StorageVolume, registry.AllStorages) + `
		AND EXISTS (SELECT 1 FROM hold h WHERE h.scope = 'volume' AND h.key = i.volume))
	OR (` + stage + ` IN ` + writingStages(registry.OtherStorages, registry.AllStorages) + `
		AND EXISTS (SELECT 1 FROM hold h WHERE h.scope = 'volume' AND ` + IsOther("h.key") + `))
	OR (` + stage + ` IN ` + writingStages(registry.StagingVolume) + `
		AND EXISTS (SELECT 1 FROM hold WHERE scope = 'volume' AND key = '` + registry.DefaultStaging + `'))))`
}

// nextStage is the stage of a row's next step, as SQL: the next one of the route that is not
// optional, or that the item takes.
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

// IsOther is true for the rows i of work_item whose storages after the first include a name. Holds
// on volumes have no commas.
func IsOther(name string) string {
	return `(i.other_storages <> '' AND REPLACE(i.other_storages, ',' || ` + name + ` || ',', '') <> i.other_storages)`
}

func writingStages(to ...registry.VolumeKind) string {
	return stagesWhere(func(s registry.Step) bool { return slices.Contains(to, s.Writes) })
}

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

// Shut is true for the rows of work_item or lane, called by an alias, that a hold covers as a
// whole, whatever the items. There is one staging volume, so a hold on it covers stages as a whole,
// too.
func Shut(alias string) string {
	return `EXISTS (SELECT 1 FROM hold h WHERE h.scope = 'all'
	OR (h.scope = 'stage' AND h.key = ` + alias + `.stage)
	OR (` + alias + `.stage IN ` + sqldb.Names(registry.DepositStages()) + ` AND (h.scope = 'ingest' OR (h.scope = 'collection' AND h.key = ` + alias + `.collection)))
	OR (h.scope = 'volume' AND h.key = '` + registry.DefaultStaging + `' AND ` + alias + `.stage IN ` + stagingStages + `))`
}
