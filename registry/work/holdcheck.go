package work

import (
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

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

// stagingStages write to the staging volume.
var stagingStages = stagesWhere(func(s registry.Step) bool { return s.Writes == registry.StagingVolume })

// Shut is true for the rows of work_item or lane, called by an alias, that a hold covers as a
// whole, whatever the items. There is one staging volume, so a hold on it covers stages as a whole,
// too.
func Shut(alias string) string {
	return `EXISTS (SELECT 1 FROM hold h WHERE h.scope = 'all'
	OR (h.scope = 'stage' AND h.key = ` + alias + `.stage)
	OR (` + alias + `.stage IN ` + sqldb.Names(registry.DepositStages()) + ` AND (h.scope = 'ingest' OR (h.scope = 'collection' AND h.key = ` + alias + `.collection)))
	OR (h.scope = 'volume' AND h.key = '` + registry.DefaultStaging + `' AND ` + alias + `.stage IN ` + stagingStages + `))`
}
