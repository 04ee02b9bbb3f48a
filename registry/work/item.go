package work

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// HeldBy is true for the rows i of work_item that some hold keeps from starting in their stage. It is the rule of
// registry.Hold.Covers.
var HeldBy = heldAt("i.stage")

// heldNext is heldBy for the step that starts next, which for a running row is the one after its own.
var heldNext = heldAt(nextStage())

// Each scope is looked up by the key of hold, however many holds there are, and nothing is looked up when there are none.
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

// nextStage is the stage of a row's next step, as SQL: the next one of the route that is not optional, or that the item takes.
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

// IsOther is true for the rows i of work_item whose storages after the first include a name. Holds on volumes have no commas.
func IsOther(name string) string {
	return `(i.other_storages <> '' AND REPLACE(i.other_storages, ',' || ` + name + ` || ',', '') <> i.other_storages)`
}

func writingStages(to ...registry.VolumeKind) string {
	return stagesWhere(func(s registry.Step) bool { return slices.Contains(to, s.Writes) })
}

// LockedOut is true for the rows i of work_item that wait for a lock which another item has, or which an item that
// was submitted earlier waits for too (R1). Jobs stand in line for the identifiers they came with from the moment they
// are made, so that a later deposit never overtakes an earlier one that is still downloading; only in the stages that
// the route calls locked does that keep them from starting.
var LockedOut = `(i.stage IN ` + lockedStages + ` AND EXISTS (SELECT 1 FROM lock_wait w WHERE w.item_id = i.id AND (
	EXISTS (SELECT 1 FROM lock l WHERE l.key = w.key AND l.item_id <> w.item_id)
	OR EXISTS (SELECT 1 FROM lock_wait v WHERE v.key = w.key
		AND (v.submitted_at, v.item_id) < (w.submitted_at, w.item_id)))))`

// Blocked is true for the rows i whose open prerequisites keep them from starting in their stage: any in a gated stage,
// and in every stage those that were required when the item was submitted.
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

// Delayed is true for the rows i that wait for the time of their next try, or of the next look at what they lacked.
const Delayed = `(i.status = 'pending' AND i.ready = 0)`

// ItemColumns are what scanItem reads.
var ItemColumns = `i.id, i.tenant, i.collection, COALESCE(i.parent_id, ''), i.row_no, i.ordinal, i.action, i.stage, i.status,
	i.priority, i.name, (SELECT w.spec FROM work_detail w WHERE w.item_id = i.id), (SELECT w.results FROM work_detail w WHERE w.item_id = i.id), i.size_bytes, i.files, i.done_bytes, i.done_files, i.blocker_count, i.closing,
	i.attempt, i.tries, i.retry_count, i.error_class, i.note, i.created_by, i.graph_id, i.created_at, i.updated_at, i.run_at,
	i.finished_at, i.volume, i.other_storages, i.optional, (i.status IN ('prepare', 'pending', 'running') AND ` + heldNext + `), ` + Delayed + `,
	i.commitment, (i.status IN ('prepare', 'pending', 'running', 'failed') AND EXISTS (
		SELECT 1 FROM hold h WHERE h.scope IN ('item', 'batch') AND h.key = i.id)),
	(i.graph_id <> '' AND i.status IN ('failed', 'cancelled') AND EXISTS (SELECT 1 FROM graph g WHERE g.id = i.graph_id AND g.sealed_at IS NULL)),
	(i.action = 'batch' AND i.status = 'deleted' AND (SELECT COUNT(*) FROM work_item j WHERE j.parent_id = i.id
		AND j.status IN ('prepare', 'pending', 'running', 'failed', 'cancelled', 'aborted')) > 0), ` + mostTries

// mostTries is how many tries the step of a row i has that waits for its next one, 0 when that is not known, and -1 when the
// row waits for nothing, or for something else.
const mostTries = `CASE WHEN i.status = 'pending' AND i.tries > 0 AND i.wait_reason = '' AND i.blocker_count = 0
	THEN COALESCE((SELECT t.max_attempts FROM attempt t WHERE t.item_id = i.id AND t.n = i.attempt), 0) ELSE -1 END`

// SelectItem selects what ScanItem reads, of rows i.
var SelectItem = `SELECT ` + ItemColumns + ` FROM work_item i `

// ScanItem reads a row of itemColumns. HeldBy of an item that is held is not nil, and says which hold it is only after
// nameHolds.
func ScanItem(row sqldb.Scanner) (registry.WorkItem, error) {
	var (
		it                      registry.WorkItem
		spec, results           string
		first, others, optional string
		created, updated, runAt int64
		finished                sql.NullInt64
		held                    bool
		most                    int
	)
	err := row.Scan(&it.ID, &it.Tenant, &it.Collection, &it.ParentID, &it.Line, &it.Row, &it.Action, &it.Stage, &it.Status,
		&it.Priority, &it.Name, &spec, &results, &it.SizeBytes, &it.Files, &it.DoneBytes, &it.DoneFiles, &it.BlockerCount,
		&it.Closing, &it.Attempt, &it.Tries, &it.RetryCount, &it.ErrorClass, &it.Note, &it.CreatedBy, &it.GraphID, &created, &updated,
		&runAt, &finished, &first, &others, &optional, &held, &it.Delayed, &it.Commitment, &it.OwnHold, &it.Unsealed, &it.JobsLeft, &most)
	if err != nil {
		return it, err
	}
	it.Row = RowOf(it)
	it.Spec, it.Optional = json.RawMessage(spec), sqldb.WordsOf[registry.Stage](optional)
	if first != "" {
		it.Storages = append([]string{first}, sqldb.WordsOf[string](others)...)
	}
	if err := json.Unmarshal([]byte(results), &it.Results); err != nil {
		return it, fmt.Errorf("decode results of item %s: %w", it.ID, err)
	}
	it.CreatedAt, it.UpdatedAt, it.RunAt = sqldb.FromMicros(created), sqldb.FromMicros(updated), sqldb.FromMicros(runAt)
	if finished.Valid {
		at := sqldb.FromMicros(finished.Int64)
		it.FinishedAt = &at
	}
	if held {
		it.HeldBy = &registry.Hold{}
	}
	if most >= 0 {
		it.NextTry = &registry.NextTry{Of: most}
	}
	it.NeedsAdminReview = it.Status == registry.Failed
	it.Retry = !it.Status.Settled()
	derive(&it)
	return it, nil
}

// RowOf is the row that an item is shown with, whose ordinal was read into Row.
func RowOf(it registry.WorkItem) int64 { return cmp.Or(it.Row, it.Line) }

// derive fills in what follows from the item's position.
func derive(it *registry.WorkItem) {
	p := it.Position()
	if it.Status != registry.Pending || it.HeldBy != nil {
		it.NextTry = nil
	} else if it.NextTry != nil {
		it.NextTry = &registry.NextTry{At: it.RunAt, Attempt: it.Tries + 1, Of: it.NextTry.Of}
	}
	it.State, it.AllowedActs = registry.StateOf(p), registry.AllowedActs(p)
}

// Item reads one item inside the transaction.
func (t *Tx) Item(id string) (registry.WorkItem, error) {
	it, err := ScanItem(t.Row(SelectItem+`WHERE i.id = $1`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return it, fmt.Errorf("item %s: %w", id, registry.ErrNotFound)
	} else if err != nil {
		return it, err
	}
	return it, nameHolds(t.Ask, &it)
}

// items reads the items that a query of itemColumns selects, with their holds.
func (t *Tx) items(query string, args ...any) ([]registry.WorkItem, error) {
	out, err := sqldb.Collect(t.Ask(query, args...), "", ScanItem)
	if err != nil {
		return nil, err
	}
	return out, nameHolds(t.Ask, Pointers(out)...)
}

// ReadItems is items on the reading connections.
func (e *Engine) ReadItems(ctx context.Context, query string, args ...any) ([]registry.WorkItem, error) {
	out, err := sqldb.Collect(e.db.Read.Ask(ctx, query, args...), "", ScanItem)
	if err != nil {
		return nil, err
	}
	return out, e.NameHolds(ctx, Pointers(out)...)
}

// Live returns the item of a lease, or ErrClaimLost when its attempt is not the live one: the fence of every write.
func (t *Tx) Live(l registry.Lease) (registry.WorkItem, error) {
	it, err := ScanItem(t.Row(SelectItem+`JOIN attempt a ON a.item_id = i.id AND a.n = i.attempt
		WHERE i.id = $1 AND i.attempt = $2 AND i.status = 'running' AND a.finished_at IS NULL AND ($3 = '' OR a.token IS NULL OR a.token = $3)
		AND NOT `+ofRevoked, l.ItemID, l.N, l.Token))
	if errors.Is(err, sql.ErrNoRows) {
		return registry.WorkItem{}, fmt.Errorf("attempt %d of item %s: %w", l.N, l.ItemID, registry.ErrClaimLost)
	} else if err != nil {
		return registry.WorkItem{}, fmt.Errorf("check lease %s/%d: %w", l.ItemID, l.N, err)
	}
	return it, nameHolds(t.Ask, &it)
}

// Item implements registry.ItemReader.
func (e *Engine) Item(ctx context.Context, id string) (registry.WorkItem, error) {
	it, err := ScanItem(e.db.Read.QueryRowContext(ctx, SelectItem+`WHERE i.id = $1`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return it, fmt.Errorf("item %s: %w", id, registry.ErrNotFound)
	} else if err != nil {
		return it, fmt.Errorf("read item %s: %w", id, err)
	}
	return it, e.NameHolds(ctx, &it)
}

// SpecOf is what a batch or a job was submitted with.
func SpecOf(it registry.WorkItem) (spec registry.Spec, err error) {
	if err := json.Unmarshal(it.Spec, &spec); err != nil {
		return spec, fmt.Errorf("decode spec of item %s: %w", it.ID, err)
	}
	return spec, nil
}

// Commit notes how far an item is with what it changes in storage, in the transaction that makes it true.
func (t *Tx) Commit(itemID string, c registry.Commitment) error {
	if err := t.Do(`UPDATE work_item SET commitment = $2 WHERE id = $1`, itemID, c); err != nil {
		return fmt.Errorf("note that item %s has %s something: %w", itemID, c, err)
	}
	return nil
}
