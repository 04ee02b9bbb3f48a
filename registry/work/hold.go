package work

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// checkHold refuses what would cover nothing, or everything by mistake.
func checkHold(h registry.Hold) error {
	if sqldb.Clean(h.Key) != h.Key {
		return fmt.Errorf("%w: the key is too long, or no text", registry.ErrInvalid)
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

// holdable refuses a hold on an item, or on a batch, that the state machine has none for: nothing
// of it would start anyway. What retention would purge may be held, since that keeps it.
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

// heldEvent is the data of a hold's event, and of its release.
type heldEvent struct {
	Scope  registry.HoldScope `json:"scope"`
	Key    string             `json:"key"`
	Reason string             `json:"reason,omitempty"`
	// Apart is how many items got a hold of their own instead.
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
		return registry.ErrNotFound // it cannot even be asked for
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
	apart, err := t.holdOneByOne(h)
	if err != nil {
		return err
	}
	if scope != registry.HoldWorker {
		// Ring for what waited; what another hold covers is skipped when it is offered. Only what
		// was offered before the hold has its next message in the future, so these are few.
		err = t.Do(`UPDATE work_item SET nudge_at = $1, nudges = 0 WHERE status = 'pending' AND nudge_at > $1 AND run_at <= $1`, t.Now)
		if err != nil {
			return err
		}
		if err := t.putBack(scope, key); err != nil {
			return err
		}
	}
	t.wake = true
	return t.Event(key, 0, string(registry.ActUnhold), actor, heldEvent{Scope: scope, Key: key, Apart: apart})
}

// holdOneByOne gives every item that waits and that the hold, which is gone by now, covered alone a
// hold of its own, when it was that of a collection that releases one by one. It returns how many
// these are.
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

// NameHolds is the function of that name on the reading connections.
func (e *Engine) NameHolds(ctx context.Context, items ...*registry.WorkItem) error {
	return nameHolds(func(query string, args ...any) sqldb.Asking { return e.db.Read.Ask(ctx, query, args...) }, items...)
}

// nameHolds says of each item that is held by which hold: the oldest that covers it. A hold that
// was released since the item was read holds it no more. Items that are not held cost nothing.
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
	// There may be many holds on single items, so only those of these items are read.
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

// Pointers are the addresses of rows.
func Pointers[T any](rows []T) []*T {
	out := make([]*T, len(rows))
	for i := range rows {
		out[i] = &rows[i]
	}
	return out
}

// resendAfter is when an item is rung for again that a worker asked for which is to have nothing:
// soon, since another worker may have it, and not at once, since this one may be asked again.
const resendAfter = time.Second

// heldWorker says whether a hold keeps a worker from being given anything.
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

// refuseForNow refuses a worker that is to have nothing. The message that brought the hint is used up,
// so the item is due again soon (R20).
func (t *Tx) refuseForNow(r registry.ClaimRequest, why registry.Reason) (*registry.NotClaimable, error) {
	err := t.Do(`UPDATE work_item SET nudge_at = $3, nudges = 0
		WHERE id = $1 AND stage = $2 AND status = 'pending' AND nudges > 0 AND nudge_at > $3`,
		r.Hint, r.Stage, t.Now+resendAfter.Microseconds())
	if err != nil {
		return nil, fmt.Errorf("ring for %s again: %w", r.Hint, err)
	}
	return &registry.NotClaimable{ItemID: r.Hint, Reason: why}, nil
}

// closeWindow takes the slots of the workers that a new hold covers out of the relay's window.
// Their next renewals keep them out.
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
