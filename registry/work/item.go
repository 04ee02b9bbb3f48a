package work

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// rowColumns are the columns that scanRow reads: what is stored of row i.
const rowColumns = `i.id, i.tenant, i.collection, COALESCE(i.parent_id, ''), i.row_no, i.ordinal, i.action, i.stage, i.status,
	i.priority, i.name, (SELECT w.spec FROM work_detail w WHERE w.item_id = i.id), (SELECT w.results FROM work_detail w WHERE w.item_id = i.id), i.size_bytes, i.files, i.done_bytes, i.done_files, i.blocker_count, i.closing,
	i.attempt, i.tries, i.retry_count, i.error_class, i.note, i.created_by, i.graph_id, i.created_at, i.updated_at, i.run_at,
	i.finished_at, i.volume, i.other_storages, i.optional, i.commitment`

// ItemColumns are the columns that ScanItem reads.
var ItemColumns = rowColumns + `, (i.status IN ('prepare', 'pending', 'running') AND ` + heldNext + `), ` + Delayed + `,
	` + OwnHold + `, ` + Unsealed + `, ` + JobsLeft + `, ` + mostTries

// SQL conditions of row i for fields of its registry.Position.
const (
	OwnHold = `(i.status IN ('prepare', 'pending', 'running', 'failed') AND EXISTS (
		SELECT 1 FROM hold h WHERE h.scope IN ('item', 'batch') AND h.key = i.id))`
	Unsealed = `(i.graph_id <> '' AND i.status IN ('failed', 'cancelled') AND EXISTS (SELECT 1 FROM graph g WHERE g.id = i.graph_id AND g.sealed_at IS NULL))`
	JobsLeft = `(i.action = 'batch' AND i.status = 'deleted' AND (SELECT COUNT(*) FROM work_item j WHERE j.parent_id = i.id
		AND j.status IN ('prepare', 'pending', 'running', 'failed', 'cancelled', 'aborted')) > 0)`
)

// mostTries is the number of tries that the step of row i has, if row i waits for its next try. It
// is 0 if the number is unknown, and -1 if the row waits for something else or for nothing.
const mostTries = `CASE WHEN i.status = 'pending' AND i.tries > 0 AND i.wait_reason = '' AND i.blocker_count = 0
	THEN COALESCE((SELECT t.max_attempts FROM attempt t WHERE t.item_id = i.id AND t.n = i.attempt), 0) ELSE -1 END`

// SelectItem selects what ScanItem reads from rows i.
var SelectItem = `SELECT ` + ItemColumns + ` FROM work_item i `

// ScanItem reads a row of ItemColumns. HeldBy of a held item is not nil, but names the hold only
// after nameHolds.
func ScanItem(row sqldb.Scanner) (registry.WorkItem, error) {
	var held, delayed, ownHold, unsealed, jobsLeft bool
	var most int
	it, err := scanRow(sqldb.WithMore(row, &held, &delayed, &ownHold, &unsealed, &jobsLeft, &most))
	if err != nil {
		return it, err
	}
	it.Delayed, it.OwnHold, it.Unsealed, it.JobsLeft = delayed, ownHold, unsealed, jobsLeft
	if held {
		it.HeldBy = &registry.Hold{}
	}
	if most >= 0 {
		it.NextTry = &registry.NextTry{Of: most}
	}
	derive(&it)
	return it, nil
}

// scanRow reads a row of rowColumns. It leaves out the fields that other rows decide, such as
// holds, and what derive sets.
func scanRow(row sqldb.Scanner) (registry.WorkItem, error) {
	var (
		it                      registry.WorkItem
		spec, results           []byte
		first, others, optional string
		created, updated, runAt int64
		finished                sql.NullInt64
	)
	err := row.Scan(&it.ID, &it.Tenant, &it.Collection, &it.ParentID, &it.Line, &it.Row, &it.Action, &it.Stage, &it.Status,
		&it.Priority, &it.Name, &spec, &results, &it.SizeBytes, &it.Files, &it.DoneBytes, &it.DoneFiles, &it.BlockerCount,
		&it.Closing, &it.Attempt, &it.Tries, &it.RetryCount, &it.ErrorClass, &it.Note, &it.CreatedBy, &it.GraphID, &created, &updated,
		&runAt, &finished, &first, &others, &optional, &it.Commitment)
	if err != nil {
		return it, err
	}
	it.Row = RowOf(it)
	it.Spec, it.Optional = spec, sqldb.WordsOf[registry.Stage](optional)
	if first != "" {
		it.Storages = append([]string{first}, sqldb.WordsOf[string](others)...)
	}
	if it.Results, err = decodeResults(results); err != nil {
		return it, fmt.Errorf("decode results of item %s: %w", it.ID, err)
	}
	it.CreatedAt, it.UpdatedAt, it.RunAt = sqldb.FromMicros(created), sqldb.FromMicros(updated), sqldb.FromMicros(runAt)
	if finished.Valid {
		at := sqldb.FromMicros(finished.Int64)
		it.FinishedAt = &at
	}
	it.NeedsAdminReview = it.Status == registry.Failed
	it.Retry = !it.Status.Settled()
	return it, nil
}

// RowOf returns the row number that people see. ScanItem must have read the ordinal into Row.
func RowOf(it registry.WorkItem) int64 { return cmp.Or(it.Row, it.Line) }

// derive sets the fields that follow from the item's position.
func derive(it *registry.WorkItem) {
	p := it.Position()
	if it.Status != registry.Pending || it.HeldBy != nil {
		it.NextTry = nil
	} else if it.NextTry != nil {
		it.NextTry = &registry.NextTry{At: it.RunAt, Attempt: it.Tries + 1, Of: it.NextTry.Of}
	}
	it.State, it.AllowedActs = registry.StateOf(p), registry.AllowedActs(p)
}

// Item reads one item in the transaction.
func (t *Tx) Item(id string) (registry.WorkItem, error) {
	it, err := ScanItem(t.Row(SelectItem+`WHERE i.id = $1`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return it, fmt.Errorf("item %s: %w", id, registry.ErrNotFound)
	} else if err != nil {
		return it, err
	}
	return it, nameHolds(t.Ask, &it)
}

// items reads the items that a query of ItemColumns selects, with their holds.
func (t *Tx) items(query string, args ...any) ([]registry.WorkItem, error) {
	out, err := sqldb.Collect(t.Ask(query, args...), "", ScanItem)
	if err != nil {
		return nil, err
	}
	return out, nameHolds(t.Ask, Pointers(out)...)
}

// ReadItems reads the items that a query of ItemColumns selects, with their holds, on the reading
// connections.
func (e *Engine) ReadItems(ctx context.Context, query string, args ...any) ([]registry.WorkItem, error) {
	out, err := sqldb.Collect(e.db.Read.Ask(ctx, query, args...), "", ScanItem)
	if err != nil {
		return nil, err
	}
	return out, e.NameHolds(ctx, Pointers(out)...)
}

// Live returns the item of a lease, as scanRow reads it. It returns ErrClaimLost unless the lease's
// attempt is the live one.
func (t *Tx) Live(l registry.Lease) (registry.WorkItem, error) {
	it, err := scanRow(t.live(rowColumns, l))
	return it, leaseError(l, err)
}

// Fence returns ErrClaimLost unless the lease's attempt is the live one. Every fenced write begins
// with Fence or Live.
func (t *Tx) Fence(l registry.Lease) error {
	return leaseError(l, t.live(`i.attempt`, l).Scan(&l.N))
}

// live selects columns of the lease's item, row i, with more arguments from $4 on. There is no row
// unless the lease's attempt is the live one.
func (t *Tx) live(columns string, l registry.Lease, more ...any) sqldb.Scanner {
	return t.Row(t.store.selectLive(columns), append([]any{l.ItemID, l.N, l.Token}, more...)...)
}

// selectLive is the query of live.
func (e *Engine) selectLive(columns string) string {
	return `SELECT ` + columns + ` FROM work_item i JOIN attempt a ON a.item_id = i.id AND a.n = i.attempt
		WHERE i.id = $1 AND i.attempt = $2 AND i.status = 'running' AND ` + live + ` AND ($3 = '' OR a.token IS NULL OR a.token = $3)
		AND NOT ` + e.hooks.RevokedToken
}

// LiveItem is [Tx.Live] on the reading connections, for calls that write nothing: they must not wait
// for the writer. The attempt may lose its lease at any time after it; what it then writes is refused.
func (e *Engine) LiveItem(ctx context.Context, l registry.Lease) (registry.WorkItem, error) {
	it, err := scanRow(e.db.Read.QueryRowContext(ctx, e.selectLive(rowColumns), l.ItemID, l.N, l.Token))
	return it, leaseError(l, err)
}

func leaseError(l registry.Lease, err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("attempt %d of item %s: %w", l.N, l.ItemID, registry.ErrClaimLost)
	} else if err != nil {
		return fmt.Errorf("check lease %s/%d: %w", l.ItemID, l.N, err)
	}
	return nil
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

// SpecOf returns the spec of a batch or job.
func SpecOf(it registry.WorkItem) (spec registry.Spec, err error) {
	if err := json.Unmarshal(it.Spec, &spec); err != nil {
		return spec, fmt.Errorf("decode spec of item %s: %w", it.ID, err)
	}
	return spec, nil
}

// Commit records how far an item has changed storage, in the transaction that records the change.
func (t *Tx) Commit(itemID string, c registry.Commitment) error {
	if err := t.Do(`UPDATE work_item SET commitment = $2 WHERE id = $1`, itemID, c); err != nil {
		return fmt.Errorf("record that item %s is %s: %w", itemID, c, err)
	}
	return nil
}
