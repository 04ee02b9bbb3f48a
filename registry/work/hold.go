package work

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// checkHold refuses a hold that would cover nothing, or everything by mistake.
func checkHold(h registry.Hold) error {
	if sqldb.Clean(h.Key) != h.Key {
		return fmt.Errorf("%w: the key is too long or not valid text", registry.ErrInvalid)
	}
	switch h.Scope {
	case registry.HoldAll, registry.HoldIngest:
		if h.Key != "" {
			return fmt.Errorf("%w: a hold on %s has no key", registry.ErrInvalid, h.Scope)
		}
		return nil
	case registry.HoldVolume:
		if h.Key == registry.DefaultStaging {
			return nil
		}
		return registry.CheckStorageName(h.Key)
	case registry.HoldStage, registry.HoldCollection, registry.HoldBatch, registry.HoldItem, registry.HoldWorker:
		if h.Key == "" {
			return fmt.Errorf("%w: a hold needs a key", registry.ErrInvalid)
		}
		return nil
	}
	return fmt.Errorf("%w: unknown scope", registry.ErrInvalid)
}

// AddHold implements registry.Holding.
func (e *Engine) AddHold(ctx context.Context, h registry.Hold) error {
	err := e.Write(ctx, func(t *Tx) error { return t.addHold(h) })
	if err != nil {
		return fmt.Errorf("hold %s %s: %w", h.Scope, h.Key, err)
	}
	return nil
}

func (t *Tx) addHold(h registry.Hold) error {
	t.dropCached()
	if err := checkHold(h); err != nil {
		return err
	}
	if err := t.holdable(h); err != nil {
		return err
	}
	err := t.Do(`INSERT INTO hold (scope, key, reason, actor, created_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (scope, key) DO UPDATE SET reason = $3, actor = $4`, h.Scope, h.Key, sqldb.Clean(h.Reason), sqldb.Clean(h.Actor), t.Now)
	if err != nil {
		return err
	}
	if h.Scope == registry.HoldWorker {
		if err := t.closeWindow(h); err != nil {
			return err
		}
	}
	return t.Event(h.Key, 0, string(registry.ActHold), h.Actor, heldEvent{Scope: h.Scope, Key: h.Key, Reason: sqldb.Clean(h.Reason)})
}

// holdable refuses a hold on an item or batch that could not start anyway. A hold on an item with a
// retention is allowed, because it prevents the purge.
func (t *Tx) holdable(h registry.Hold) error {
	if h.Scope != registry.HoldItem && h.Scope != registry.HoldBatch {
		return nil
	}
	it, err := t.Item(h.Key)
	if errors.Is(err, registry.ErrNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	var kept bool
	err = t.Get(`SELECT EXISTS (SELECT 1 FROM work_item WHERE id IN ($1, $2) AND purge_at IS NOT NULL)`, []any{it.ID, it.ParentID}, &kept)
	if err != nil || kept {
		return err
	}
	return Check(it, registry.ActHold, it.Status)
}

// heldEvent is the data of the events of a hold and of its release.
type heldEvent struct {
	Scope  registry.HoldScope `json:"scope"`
	Key    string             `json:"key"`
	Reason string             `json:"reason,omitempty"`
	// Apart counts the items that got a hold of their own instead.
	Apart int64 `json:"held_apart,omitempty"`
}

// RemoveHold implements registry.Holding.
func (e *Engine) RemoveHold(ctx context.Context, scope registry.HoldScope, key, actor string) error {
	err := e.Write(ctx, func(t *Tx) error { return t.removeHold(scope, key, actor) })
	if err != nil {
		return fmt.Errorf("release hold on %s %s: %w", scope, key, err)
	}
	return nil
}

func (t *Tx) removeHold(scope registry.HoldScope, key, actor string) error {
	t.dropCached()
	h := registry.Hold{Scope: scope, Key: key}
	if sqldb.Clean(key) != key {
		return registry.ErrNotFound // no such key can exist
	}
	var at int64
	err := t.Get(`DELETE FROM hold WHERE scope = $1 AND key = $2 RETURNING reason, actor, created_at`, []any{scope, key},
		&h.Reason, &h.Actor, &at)
	if errors.Is(err, sql.ErrNoRows) {
		return registry.ErrNotFound
	} else if err != nil {
		return err
	}
	h.CreatedAt = sqldb.FromMicros(at)
	if scope == registry.HoldAll {
		if err := t.Do(`DELETE FROM setting WHERE name = 'drain'`); err != nil {
			return err
		}
	}
	apart, err := t.holdOneByOne(h)
	if err != nil {
		return err
	}
	if scope != registry.HoldWorker {
		// Make waiting items due again; offering skips those that another hold covers. Only items
		// offered before the hold have their next message in the future, so these are few.
		err = t.Do(`UPDATE work_item SET nudge_at = $1, nudges = 0 WHERE status = 'pending' AND nudge_at > $1 AND run_at <= $1`, t.Now)
		if err != nil {
			return err
		}
		if err := t.putBack(scope, key); err != nil {
			return err
		}
	}
	t.wake, t.asked = true, true
	return t.Event(key, 0, string(registry.ActUnhold), actor, heldEvent{Scope: scope, Key: key, Apart: apart})
}

// holdOneByOne handles the release of a hold on a collection that releases items one by one. Each
// waiting item that no other hold covers gets a hold of its own. It returns how many. The
// collection's hold must be deleted already.
func (t *Tx) holdOneByOne(h registry.Hold) (int64, error) {
	if h.Scope != registry.HoldCollection {
		return 0, nil
	}
	if oneByOne, err := t.store.hooks.OneByOne(t, h.Key); err != nil || !oneByOne {
		return 0, err
	}
	apart, err := t.Exec(`INSERT INTO hold (scope, key, reason, actor, created_at)
		SELECT 'item', i.id, CAST($3 AS TEXT), CAST($4 AS TEXT), CAST($5 AS BIGINT) FROM work_item i
		WHERE i.tenant = $1 AND i.collection = $2 AND i.status IN ('prepare', 'pending')
			AND i.stage IN `+sqldb.Names(registry.DepositStages())+` AND NOT `+HeldBy+`
		ON CONFLICT (scope, key) DO NOTHING`,
		sqldb.Tenant, h.Key, sqldb.Clean("released one by one; was held: "+h.Reason), h.Actor, sqldb.Micros(h.CreatedAt))
	if err != nil {
		return 0, fmt.Errorf("hold the items of %s one by one: %w", h.Key, err)
	}
	return apart, nil
}

// SelectHold selects what ScanHold reads.
const SelectHold = `SELECT scope, key, reason, actor, created_at FROM hold `

// Holds implements registry.Queue.
func (e *Engine) Holds(ctx context.Context) ([]registry.Hold, error) {
	return sqldb.Collect(e.db.Read.Ask(ctx, SelectHold+`ORDER BY scope, key`), "list holds", ScanHold)
}

// ScanHold reads a row of SelectHold.
func ScanHold(row sqldb.Scanner) (h registry.Hold, err error) {
	var at int64
	err = row.Scan(&h.Scope, &h.Key, &h.Reason, &h.Actor, &at)
	h.CreatedAt = sqldb.FromMicros(at)
	return h, err
}

// NameHolds is nameHolds on the reading connections.
func (e *Engine) NameHolds(ctx context.Context, items ...*registry.WorkItem) error {
	return nameHolds(func(query string, args ...any) sqldb.Asking { return e.db.Read.Ask(ctx, query, args...) }, items...)
}

// nameHolds sets the HeldBy of each held item to the oldest hold that covers it, or to nil if the
// hold was released since the item was read. Without held items it runs no statement.
func nameHolds(ask func(string, ...any) sqldb.Asking, items ...*registry.WorkItem) error {
	var held []*registry.WorkItem
	var keys []any
	for _, it := range items {
		if it.HeldBy == nil {
			continue
		}
		held = append(held, it)
		for _, key := range []any{it.ID, it.ParentID} {
			if key != "" && !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	if len(held) == 0 {
		return nil
	}
	marks := make([]string, len(keys))
	for i := range keys {
		marks[i] = "$" + strconv.Itoa(i+1)
	}
	// There may be many holds on single items, so read only those of these items.
	holds, err := sqldb.Collect(ask(SelectHold+`WHERE scope IN ('all', 'ingest', 'stage', 'collection', 'volume')
		OR (scope IN ('batch', 'item') AND key IN (`+strings.Join(marks, ", ")+`)) ORDER BY created_at, scope, key`, keys...), "look up holds", ScanHold)
	if err != nil {
		return err
	}
	for _, it := range held {
		it.HeldBy = nil
		if i := slices.IndexFunc(holds, func(h registry.Hold) bool { return h.Covers(*it) }); i >= 0 {
			it.HeldBy = &holds[i]
		}
		derive(it)
	}
	return nil
}

// Pointers returns the addresses of the elements of rows.
func Pointers[T any](rows []T) []*T {
	out := make([]*T, len(rows))
	for i := range rows {
		out[i] = &rows[i]
	}
	return out
}

// resendAfter is when an item gets its next message after a worker was refused that may have
// nothing. Soon, because another worker may take the item; not at once, because the same worker may
// ask again.
const resendAfter = time.Second

// heldWorker reports whether a hold covers a worker, which then gets no items.
func (t *Tx) heldWorker(id string) (bool, error) {
	holds, err := t.workerHolds()
	return slices.ContainsFunc(holds, func(h registry.Hold) bool { return h.CoversWorker(id) }), err
}

func (t *Tx) workerHolds() ([]registry.Hold, error) {
	if t.onWorkers != nil {
		return t.onWorkers, nil
	}
	holds, err := sqldb.Collect(t.Ask(SelectHold+`WHERE scope = 'worker'`), "look up holds on workers", ScanHold)
	if err != nil {
		return nil, err
	}
	t.onWorkers = append([]registry.Hold{}, holds...)
	return t.onWorkers, nil
}

// refuseForNow refuses the claim of a worker that may have nothing. The claim used up the hinted
// item's message, so the item becomes due again soon (R20).
func (t *Tx) refuseForNow(r registry.ClaimRequest, why registry.Reason) (*registry.NotClaimable, error) {
	err := t.Do(`UPDATE work_item SET nudge_at = $3, nudges = 0
		WHERE id = $1 AND stage = $2 AND status = 'pending' AND nudges > 0 AND nudge_at > $3`,
		r.Hint, r.Stage, t.Now+resendAfter.Microseconds())
	if err != nil {
		return nil, fmt.Errorf("send another message for item %s: %w", r.Hint, err)
	}
	return &registry.NotClaimable{ItemID: r.Hint, Reason: why}, nil
}

// closeWindow removes the slots of the workers that a new hold covers from the relay's window. The
// workers' next renewals keep them out.
func (t *Tx) closeWindow(h registry.Hold) error {
	ids, err := t.Strings(`SELECT id FROM worker WHERE seen_at > $1`, t.Now-workerAlive.Microseconds())
	if err != nil {
		return fmt.Errorf("list workers: %w", err)
	}
	var errs []error
	for _, id := range ids {
		if h.CoversWorker(id) {
			err := t.Do(`UPDATE worker_stage SET capacity = 0, spare = 0 WHERE worker_id = $1`, id)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Restored returns the mark of a database that was restored from a backup, zero if it was not.
func (e *Engine) Restored(ctx context.Context) (r registry.Restored, err error) {
	return scanRestored(e.db.Read.QueryRowContext(ctx, selectRestored, sqldb.SettingRestored))
}

const selectRestored = `SELECT value FROM setting WHERE name = $1`

// scanRestored reads the mark, and what a statement has behind it.
func scanRestored(row sqldb.Scanner, more ...any) (r registry.Restored, err error) {
	var text string
	err = row.Scan(append([]any{&text}, more...)...)
	if errors.Is(err, sql.ErrNoRows) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &r)
	}
	if err != nil {
		return r, fmt.Errorf("read the mark of a restored database: %w", err)
	}
	return r, nil
}

// restoring is the actor of the holds of a restored database.
const restoring = "backup restore"

// RestoredHeld reports whether the database was restored from a backup, and a hold of its first start is
// still in place: nobody has judged yet whether the record may go on.
func (e *Engine) RestoredHeld(ctx context.Context) (bool, error) {
	return scanRestoredHeld(e.db.Read.QueryRowContext(ctx, selectRestoredHeld, sqldb.SettingRestored, restoring))
}

const selectRestoredHeld = `SELECT value, EXISTS (SELECT 1 FROM hold WHERE actor = $2) FROM setting WHERE name = $1`

func scanRestoredHeld(row sqldb.Scanner) (held bool, err error) {
	r, err := scanRestored(row, &held)
	return r.Open() && (held || !r.Held), err
}

// WhileRestored returns an ErrInvalid while RestoredHeld is true. Who writes an event to an object's
// chain outside of the held stages asks it: the number of the event may be that of a signed one that
// the record lost.
func (t *Tx) WhileRestored() error {
	held, err := scanRestoredHeld(t.Row(selectRestoredHeld, sqldb.SettingRestored, restoring))
	if err == nil && held {
		err = fmt.Errorf("%w: this Registry was restored from a backup, and its record may be older than the storages; first stop it, and compare them with `holdfast reconcile` (docs/receipt.md, After a backup was restored)", registry.ErrInvalid)
	}
	return err
}

// HoldRestored holds registry.RestoredStages if the database was restored and record and storages were
// not compared yet. It does so once: who releases the holds decided it. It returns the mark.
func (e *Engine) HoldRestored(ctx context.Context) (r registry.Restored, err error) {
	err = e.Write(ctx, func(t *Tx) error {
		if r, err = scanRestored(t.Row(selectRestored, sqldb.SettingRestored)); err != nil || !r.Open() || r.Held {
			return err
		}
		return t.holdRestored(&r)
	})
	if err != nil {
		return r, fmt.Errorf("hold what a restored database must not do: %w", err)
	}
	return r, nil
}

// MarkRestored marks a database as restored by other means than `holdfast backup restore`, and holds what
// it must not do. The record is taken to be as old as its newest event. A database that bears a mark
// already keeps it.
func (e *Engine) MarkRestored(ctx context.Context) (r registry.Restored, err error) {
	err = e.Write(ctx, func(t *Tx) error {
		if r, err = scanRestored(t.Row(selectRestored, sqldb.SettingRestored)); err != nil || r.Open() {
			return err
		}
		var newest int64
		if err := t.Get(`SELECT COALESCE(MAX(at), $1) FROM event`, []any{t.Now}, &newest); err != nil {
			return err
		}
		r = registry.Restored{BackupAt: sqldb.FromMicros(newest), RestoredAt: sqldb.FromMicros(t.Now)}
		return t.holdRestored(&r)
	})
	if err != nil {
		return r, fmt.Errorf("mark the database as restored: %w", err)
	}
	return r, nil
}

func (t *Tx) holdRestored(r *registry.Restored) error {
	reason := "restored from a backup of " + r.BackupAt.UTC().Format("2006-01-02T15:04:05Z") + ": the storages may be newer than the record; see `holdfast reconcile --help`"
	for _, stage := range registry.RestoredStages() {
		if err := t.addHold(registry.Hold{Scope: registry.HoldStage, Key: string(stage), Reason: reason, Actor: restoring}); err != nil {
			return err
		}
	}
	r.Held = true
	return t.putRestored(*r, restoring)
}

func (t *Tx) putRestored(r registry.Restored, actor string) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode the mark of a restored database: %w", err)
	}
	return t.Do(sqldb.PutRestored, sqldb.SettingRestored, string(text), r.From, actor, t.Now)
}

// Reconciled notes that record and storages were compared, and releases the holds of a restored
// database. accepted says why what disagrees is left so; "": nothing disagrees. A database that was not
// restored, or is judged already, stays as it is.
func (e *Engine) Reconciled(ctx context.Context, accepted, actor string) error {
	err := e.Write(ctx, func(t *Tx) error {
		r, err := scanRestored(t.Row(selectRestored, sqldb.SettingRestored))
		if err != nil || !r.Open() {
			return err
		}
		stages, err := t.Strings(`SELECT key FROM hold WHERE actor = $1 AND scope = $2 ORDER BY key`, restoring, registry.HoldStage)
		if err != nil {
			return err
		}
		for _, stage := range stages {
			if err := t.removeHold(registry.HoldStage, stage, actor); err != nil {
				return err
			}
		}
		r.ReconciledAt, r.Accepted = sqldb.FromMicros(t.Now), sqldb.Clean(accepted)
		return t.putRestored(r, actor)
	})
	if err != nil {
		return fmt.Errorf("note that record and storages were compared: %w", err)
	}
	return nil
}

// Adopt moves a job behind the steps that make a version, because the storages have its version. An
// attempt that runs is taken away from its worker. A job that is further, or was given up for good, or
// waits for its graph to be sealed, stays as it is.
func (t *Tx) Adopt(it registry.WorkItem, actor, reason string) error {
	if allowed := Check(it, registry.ActAdopt, registry.Pending) == nil; !allowed {
		return nil
	}
	if it.Status == registry.Running {
		if err := t.withdraw(it, reason, registry.Pending); err != nil {
			return err
		}
	}
	return t.Move(it, Change{act: registry.ActAdopt, Stage: registry.Notify, Status: registry.Pending, n: it.Attempt, Actor: actor, Reason: reason})
}
