package work

import (
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// HeldBy is an SQL condition: a hold keeps row i of work_item from starting in its stage. It is the
// same rule as registry.Hold.Covers. Claims and the relay ask it; nothing else decides whether an
// item is held.
var HeldBy = heldAt("i.stage")

// heldNext is HeldBy for the step that starts next. For a running row that is the step after the
// present one.
var heldNext = heldAt(nextStage())

// heldAt looks each scope up by the key of table hold, however many holds there are. Without holds
// it looks up nothing more.
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
// which the statement calls alias. There is one staging volume, so a hold on that covers whole
// stages, too.
func Shut(alias string) string {
	return `EXISTS (SELECT 1 FROM hold h WHERE h.scope = 'all'
	OR (h.scope = 'stage' AND h.key = ` + alias + `.stage)
	OR (` + alias + `.stage IN ` + sqldb.Names(registry.DepositStages()) + ` AND (h.scope = 'ingest' OR (h.scope = 'collection' AND h.key = ` + alias + `.collection)))
	OR (h.scope = 'volume' AND h.key = '` + registry.DefaultStaging + `' AND ` + alias + `.stage IN ` + stagingStages + `))`
}
