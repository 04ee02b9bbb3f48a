package sqlstore

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast/holdfast/registry"
)

// heldBy is true for the rows i of work_item that some hold covers.
const heldBy = `EXISTS (SELECT 1 FROM hold h WHERE h.scope = 'all'
	OR (h.scope = 'stage' AND h.key = i.stage)
	OR (h.scope = 'collection' AND h.key = i.collection)
	OR (h.scope = 'batch' AND (h.key = i.parent_id OR h.key = i.id))
	OR (h.scope = 'item' AND h.key = i.id))`

// lockedOut is true for the rows i of work_item that wait for a lock which another item has, or which an item that
// was submitted earlier waits for too (R1). Jobs stand in line for the identifiers they came with from the moment they
// are made, so that a later deposit never overtakes an earlier one that is still downloading; only in the stages that
// the route calls locked does that keep them from starting.
var lockedOut = `(i.stage IN ` + lockedStages + ` AND EXISTS (SELECT 1 FROM lock_wait w WHERE w.item_id = i.id AND (
	EXISTS (SELECT 1 FROM lock l WHERE l.key = w.key AND l.item_id <> w.item_id)
	OR EXISTS (SELECT 1 FROM lock_wait v WHERE v.key = w.key
		AND (v.submitted_at, v.item_id) < (w.submitted_at, w.item_id)))))`

// blocked is true for the rows i whose open prerequisites keep them from starting in their stage.
var blocked = `(i.blocker_count > 0 AND i.stage IN ` + gatedStages + `)`

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

// itemColumns are what scanItem reads.
const itemColumns = `i.id, i.tenant, i.collection, COALESCE(i.parent_id, ''), i.row_no, i.action, i.stage, i.status,
	i.priority, i.name, i.spec, i.state, i.size_bytes, i.files, i.done_bytes, i.done_files, i.blocker_count, i.closing,
	i.attempt, i.tries, i.retry_count, i.error_class, i.note, i.created_by, i.created_at, i.updated_at, i.run_at,
	i.finished_at, (i.status = 'pending' AND ` + heldBy + `)`

const selectItem = `SELECT ` + itemColumns + ` FROM work_item i `

type scanner interface{ Scan(dest ...any) error }

// scanItem reads a row of itemColumns.
func scanItem(row scanner) (registry.WorkItem, error) {
	var (
		it                      registry.WorkItem
		spec, state             string
		created, updated, runAt int64
		finished                sql.NullInt64
		held                    bool
	)
	err := row.Scan(&it.ID, &it.Tenant, &it.Collection, &it.ParentID, &it.Row, &it.Action, &it.Stage, &it.Status,
		&it.Priority, &it.Name, &spec, &state, &it.SizeBytes, &it.Files, &it.DoneBytes, &it.DoneFiles, &it.BlockerCount,
		&it.Closing, &it.Attempt, &it.Tries, &it.RetryCount, &it.ErrorClass, &it.Note, &it.CreatedBy, &created, &updated,
		&runAt, &finished, &held)
	if err != nil {
		return it, err
	}
	it.Spec = json.RawMessage(spec)
	if err := json.Unmarshal([]byte(state), &it.Results); err != nil {
		return it, fmt.Errorf("decode results of item %s: %w", it.ID, err)
	}
	it.CreatedAt, it.UpdatedAt, it.RunAt = fromMicros(created), fromMicros(updated), fromMicros(runAt)
	if finished.Valid {
		at := fromMicros(finished.Int64)
		it.FinishedAt = &at
	}
	p := it.Position()
	p.Held = held
	it.State = registry.StateOf(p)
	it.NeedsAdminReview = it.Status == registry.Failed
	it.Retry = !it.Status.Settled()
	it.AllowedActs = registry.AllowedActs(p)
	return it, nil
}

// item reads one item inside the transaction.
func (t *tx) item(id string) (registry.WorkItem, error) {
	it, err := scanItem(t.row(selectItem+`WHERE i.id = $1`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return it, fmt.Errorf("item %s: %w", id, registry.ErrNotFound)
	}
	return it, err
}

// live returns the item of a lease, or ErrClaimLost when its attempt is not the live one: the fence of every write.
func (t *tx) live(l registry.Lease) (registry.WorkItem, error) {
	var open bool
	err := t.get(`SELECT a.finished_at IS NULL AND i.attempt = a.n AND i.status = 'running'
		FROM attempt a JOIN work_item i ON i.id = a.item_id WHERE a.item_id = $1 AND a.n = $2`, []any{l.ItemID, l.N}, &open)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return registry.WorkItem{}, fmt.Errorf("check lease %s/%d: %w", l.ItemID, l.N, err)
	}
	if !open {
		return registry.WorkItem{}, fmt.Errorf("attempt %d of item %s: %w", l.N, l.ItemID, registry.ErrClaimLost)
	}
	return t.item(l.ItemID)
}
