package work

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast/holdfast/metrics"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/bounds"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// waits is an SQL condition: row i cannot be claimed although it is marked ready.
var waits = `(` + Blocked + ` OR ` + HeldBy + ` OR ` + LockedOut + `)`

// getsNoMessage is an SQL condition: programs outside Holdfast carry out row i. They ask for work, see
// [messageAt].
var getsNoMessage = `(i.action IN ` + sqldb.Names(functionActions) + `)`

// functionActions are the actions whose stages are functions.
var functionActions = func() (out []registry.Action) {
	for _, r := range registry.Routes() {
		if r.Functions {
			out = append(out, r.Action)
		}
	}
	return out
}()

// messageAt returns when the message is due for an item that can run at a time in microseconds. The
// programs that serve functions ask the Registry for work: items of their stages get no messages.
func messageAt(s registry.Stage, at int64) sql.NullInt64 {
	return sql.NullInt64{Int64: at, Valid: s.Function() == ""}
}

// refreshReady computes the readiness of items and the times of their messages anew. Call it after
// anything changed that the items wait for. The time from which an item that becomes ready could run
// is now, not when it was submitted.
func (t *Tx) refreshReady(ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	ready := map[Lane]bool{}
	err := sqldb.Each(t.Ask(`UPDATE work_item AS i SET nudges = 0,
			run_at = CASE WHEN i.status = 'pending' AND i.ready <> 1 AND i.run_at < $2 AND NOT `+Blocked+` AND NOT `+LockedOut+` THEN $2 ELSE i.run_at END,
			ready = CASE WHEN i.status <> 'pending' THEN 0 WHEN `+Blocked+` THEN 2 WHEN i.run_at > $2 THEN 0
				WHEN `+LockedOut+` THEN 3 ELSE 1 END,
			nudge_at = CASE WHEN i.status <> 'pending' OR `+getsNoMessage+` OR `+Blocked+` THEN NULL WHEN i.run_at > $2 THEN i.run_at
				WHEN `+LockedOut+` THEN NULL ELSE $2 END
		WHERE `+t.Among("i.id")+` RETURNING stage, collection, ready`, t.List(ids), t.Now), "update the readiness of items", func(row sqldb.Scanner) error {
		var l Lane
		var is int
		err := row.Scan(&l.stage, &l.collection, &is)
		if is == 1 {
			ready[l] = true
		}
		return err
	})
	if err != nil {
		return err
	}
	for l := range ready {
		t.wake = true
		if err := t.openLane(l.stage, l.collection); err != nil {
			return err
		}
	}
	return nil
}

// promote makes items ready whose time has come, and continues to put back items that released
// holds had set aside. It handles a bounded number; the next call continues. It also looks whether
// there are limits.
func (t *Tx) promote() error {
	if t.promoted {
		return nil
	}
	var due, released bool
	err := t.Get(`SELECT EXISTS (SELECT 1 FROM work_item WHERE status = 'pending' AND ready = 0 AND run_at <= $1),
		EXISTS (SELECT 1 FROM putback), EXISTS (SELECT 1 FROM work_limit)`, []any{t.Now}, &due, &released, &t.limited)
	if err != nil {
		return fmt.Errorf("look for items that became due: %w", err)
	}
	t.promoted = !due && !released
	if due {
		ids, err := t.Strings(`SELECT id FROM work_item WHERE status = 'pending' AND ready = 0 AND run_at <= $1
			ORDER BY run_at`+sqldb.Limit(sqldb.GroupWrites), t.Now)
		if err == nil {
			_, err = t.enter(`UPDATE work_item AS i SET ready = 1, nudge_at = CASE WHEN `+getsNoMessage+` THEN NULL ELSE COALESCE(nudge_at, $2) END
				WHERE `+t.Among("id")+` RETURNING id, stage, collection`, t.List(ids), t.Now)
		}
		if err != nil {
			return fmt.Errorf("make due items ready: %w", err)
		}
	}
	if released {
		return t.putBackMore()
	}
	return nil
}

// enter runs an update that makes items ready, opens their lanes and returns their ids. The update
// must return id, stage and collection.
func (t *Tx) enter(query string, args ...any) (ids []string, err error) {
	lanes := map[Lane]bool{}
	err = sqldb.Each(t.Ask(query, args...), "", func(row sqldb.Scanner) error {
		var id string
		var l Lane
		err := row.Scan(&id, &l.stage, &l.collection)
		ids, lanes[l] = append(ids, id), true
		return err
	})
	if err != nil {
		return nil, err
	}
	for l := range lanes {
		if err := t.openLane(l.stage, l.collection); err != nil {
			return nil, err
		}
	}
	t.wake = t.wake || len(ids) > 0
	return ids, nil
}

// setAside marks those of a lane's first items as not ready that cannot be claimed, so that claims
// need not step over them. It returns how many. With own it looks only at uploads.
func (t *Tx) setAside(stage registry.Stage, collection string, own bool) (int64, error) {
	among := ``
	if own {
		among = ` AND f.own = 1`
	}
	n, err := t.Exec(`UPDATE work_item AS i SET ready = CASE WHEN `+Blocked+` THEN 2 ELSE 3 END, nudge_at = NULL, nudges = 0
		WHERE i.id IN (SELECT f.id FROM work_item f WHERE f.stage = $1 AND f.collection = $2 AND f.ready = 1`+among+`
			ORDER BY f.rank, f.id`+sqldb.Limit(sqldb.GroupWrites)+`) AND `+waits, stage, collection)
	if err != nil {
		return 0, fmt.Errorf("set held items of %s at %s aside: %w", collection, stage, err)
	}
	return n, nil
}

// putBack makes items ready again that a released hold had set aside. Batches and volumes may have
// very many: claims and the relay put the rest back, also after a restart.
func (t *Tx) putBack(scope registry.HoldScope, key string) error {
	switch scope {
	case registry.HoldItem:
		return t.refreshAside(key)
	case registry.HoldBatch:
		if err := t.refreshAside(key); err != nil {
			return err
		}
	case registry.HoldVolume:
	case registry.HoldAll, registry.HoldIngest, registry.HoldStage, registry.HoldCollection, registry.HoldWorker:
		return nil // these set nothing aside
	}
	err := t.Do(`INSERT INTO putback (scope, key, after_id) VALUES ($1, $2, '')
		ON CONFLICT (scope, key) DO UPDATE SET after_id = ''`, scope, key)
	if err != nil {
		return fmt.Errorf("put back items set aside by the hold on %s %s: %w", scope, key, err)
	}
	return t.putBackMore()
}

func (t *Tx) refreshAside(id string) error {
	var aside bool
	err := t.Get(`SELECT EXISTS (SELECT 1 FROM work_item WHERE id = $1 AND ready = 3)`, []any{id}, &aside)
	if err != nil || !aside {
		return err
	}
	return t.refreshReady(id)
}

// putBackMore continues with one released hold, in the order of ids. So it ends even if another
// hold sets items aside again meanwhile.
func (t *Tx) putBackMore() error {
	var scope registry.HoldScope
	var key, after string
	err := t.Get(`SELECT scope, key, after_id FROM putback ORDER BY scope, key LIMIT 1`, nil, &scope, &key, &after)
	if err != nil {
		return fmt.Errorf("look for released holds: %w", err)
	}
	const aside = `SELECT i.id FROM work_item i WHERE i.ready = 3 AND i.id > $2 AND `
	covered := aside + `i.parent_id = $1`
	if scope == registry.HoldVolume {
		covered = aside + `i.volume = $1 UNION ` + aside + `i.stage IN ` + writingStages(registry.OtherStorages, registry.AllStorages) + ` AND ` + IsOther("CAST($1 AS TEXT)")
	}
	ids, err := t.enter(`UPDATE work_item AS i SET ready = 1, nudge_at = CASE WHEN `+getsNoMessage+` THEN NULL ELSE CAST($3 AS BIGINT) END, nudges = 0 WHERE id IN (
			`+covered+` ORDER BY id`+sqldb.Limit(sqldb.GroupWrites)+`)
		RETURNING id, stage, collection`, key, after, t.Now)
	if err != nil {
		return fmt.Errorf("put back items set aside by the hold on %s %s: %w", scope, key, err)
	}
	if len(ids) < sqldb.GroupWrites {
		err := t.Do(`DELETE FROM putback WHERE scope = $1 AND key = $2`, scope, key)
		return err
	}
	for _, id := range ids {
		after = max(after, id) // RETURNING returns rows in no order
	}
	err = t.Do(`UPDATE putback SET after_id = $3 WHERE scope = $1 AND key = $2`, scope, key, after)
	return err
}

// AwaitReady implements registry.Serving. It looks again after each commit here that made an item
// of a function ready or, if there are limits, that ended an attempt; when the next item becomes due by its time, and from time to time, since other processes
// commit, too.
func (e *Engine) AwaitReady(ctx context.Context, stages []registry.Stage) (registry.Stage, error) {
	if err := bounds.Check(stages); err != nil {
		return "", err
	}
	if len(stages) == 0 || slices.ContainsFunc(stages, func(s registry.Stage) bool { return !registry.IsStage(s) }) {
		return "", fmt.Errorf("look for ready items: %w: the stages %.200q", registry.ErrInvalid, registry.AllOf(stages))
	}
	waitsForSlot := false
	defer func() {
		if waitsForSlot {
			e.slotWaits.Add(-1)
		}
	}()
	for {
		ready := e.ready.Wait() // before looking, so that no signal is missed
		stage, next, limited, err := e.firstReady(ctx, stages)
		if ctx.Err() != nil {
			return "", nil // by contract, the end of ctx is no error
		}
		if err != nil {
			return "", fmt.Errorf("look for ready items: %w", err)
		}
		if stage != "" {
			return stage, nil
		}
		if limited && !waitsForSlot {
			e.slotWaits.Add(1)
			waitsForSlot = true
			continue // look again: from now on the end of an item is signalled
		}
		again := time.NewTimer(next)
		select {
		case <-ready:
		case <-again.C:
		case <-ctx.Done():
		}
		again.Stop()
	}
}

// firstReady returns the first of the stages with an item that can be claimed now. Without one it
// returns how long it takes at most until there may be one, and whether there are limits.
func (e *Engine) firstReady(ctx context.Context, stages []registry.Stage) (ready registry.Stage, next time.Duration, limited bool, err error) {
	defer metrics.Scan.Since(time.Now(), "ready")
	now := sqldb.Micros(e.db.Now())
	found := map[string]bool{}
	open, err := e.db.Column(ctx, `SELECT DISTINCT l.stage FROM lane l WHERE l.stage IN `+sqldb.Names(stages)+` AND l.active = 1 AND NOT `+Shut("l")+` AND NOT `+fullLane+`
		AND (SELECT i.id FROM work_item i WHERE i.stage = l.stage AND i.collection = l.collection AND i.ready = 1 AND NOT `+waits+`
			ORDER BY i.rank, i.id LIMIT 1) IS NOT NULL`) // the order selects the index of what is ready
	if err != nil {
		return "", 0, false, err
	}
	// The stage is an expression, so that no database looks at all pending items of the stage by its
	// index: most of their timers are due much later.
	due, err := e.db.Column(ctx, `SELECT DISTINCT d.stage FROM (SELECT stage FROM work_item
		WHERE status = 'pending' AND ready = 0 AND run_at <= $1 AND stage || '' IN `+sqldb.Names(stages)+` ORDER BY run_at`+sqldb.Limit(sqldb.GroupWrites)+`) d`, now)
	if err != nil {
		return "", 0, false, err
	}
	for _, stage := range slices.Concat(open, due) {
		found[stage] = true
	}
	for _, stage := range stages {
		if found[string(stage)] {
			return stage, 0, false, nil
		}
	}
	var at sql.NullInt64
	// PostgreSQL without statistics of the table would compute a minimum from all that are due later.
	err = e.db.Read.QueryRowContext(ctx, `SELECT (SELECT run_at FROM work_item WHERE status = 'pending' AND ready = 0 AND run_at > $1 ORDER BY run_at LIMIT 1),
		EXISTS (SELECT 1 FROM work_limit)`, now).Scan(&at, &limited)
	if err != nil {
		return "", 0, false, err
	}
	next = lookAgain
	if wait := time.Duration(at.Int64-now) * time.Microsecond; at.Valid && wait < next {
		next = max(wait, 0)
	}
	return "", next, limited, nil
}

// waiters are the callers of [Engine.AwaitItem] in this process, by item.
type waiters struct {
	mu sync.Mutex
	of map[string]map[chan struct{}]bool
}

// add returns a channel that is closed when the item settles in this process. The caller must call
// remove.
func (w *waiters) add(id string) (settled chan struct{}, remove func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	settled = make(chan struct{})
	if w.of == nil {
		w.of = map[string]map[chan struct{}]bool{}
	}
	if w.of[id] == nil {
		w.of[id] = map[chan struct{}]bool{}
	}
	w.of[id][settled] = true
	return settled, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if delete(w.of[id], settled); len(w.of[id]) == 0 {
			delete(w.of, id)
		}
	}
}

// notify wakes those who wait for one of the items.
func (w *waiters) notify(ids []string) {
	if len(ids) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		for settled := range w.of[id] {
			close(settled)
		}
		delete(w.of, id)
	}
}

// AwaitSettled waits until an item has settled, or until ctx ends, which is no error. ErrNotFound: there
// is no such item.
func (e *Engine) AwaitSettled(ctx context.Context, id string) error {
	look := context.WithoutCancel(ctx)
	return e.AwaitItem(ctx, id, func() (bool, error) {
		status, err := e.status(look, id)
		return status.Settled(), err
	})
}

// AwaitItem is AwaitSettled for a caller that wants to know more of the item than whether it has
// settled, and looks itself. Other processes settle items too, so it also looks from time to time. It
// has looked at least once when it returns, and for the last time after the item settled.
func (e *Engine) AwaitItem(ctx context.Context, id string, look func() (settled bool, err error)) error {
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	for {
		changed, remove := e.settled.add(id) // before looking, so that no change is missed
		settled, err := look()
		if err != nil || settled || ctx.Err() != nil {
			remove()
			return err
		}
		select {
		case <-changed:
		case <-again.C:
		case <-ctx.Done():
		case <-e.db.Closed():
			remove()
			return nil
		}
		remove()
	}
}

// status returns the status of an item. Reading the whole item costs twenty times as much.
func (e *Engine) status(ctx context.Context, id string) (status registry.Status, err error) {
	err = e.db.Read.QueryRowContext(ctx, `SELECT status FROM work_item WHERE id = $1`, id).Scan(&status)
	if errors.Is(err, sql.ErrNoRows) {
		return status, fmt.Errorf("item %s: %w", id, registry.ErrNotFound)
	} else if err != nil {
		return status, fmt.Errorf("read the status of item %s: %w", id, err)
	}
	return status, nil
}
