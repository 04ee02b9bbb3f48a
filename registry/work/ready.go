package work

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// waits is an SQL condition: row i cannot be claimed although it is marked ready.
var waits = `(` + Blocked + ` OR ` + HeldBy + ` OR ` + LockedOut + `)`

// refreshReady computes an item's readiness and the time of its message anew. Call it after
// anything changed that the item waits for.
func (t *Tx) refreshReady(id string) error {
	var stage registry.Stage
	var collection string
	var ready int
	err := t.Get(`UPDATE work_item AS i SET nudges = 0,
			ready = CASE WHEN i.status <> 'pending' THEN 0 WHEN `+Blocked+` THEN 2 WHEN i.run_at > $2 THEN 0
				WHEN `+LockedOut+` THEN 3 ELSE 1 END,
			nudge_at = CASE WHEN i.status <> 'pending' OR `+Blocked+` THEN NULL WHEN i.run_at > $2 THEN i.run_at
				WHEN `+LockedOut+` THEN NULL ELSE $2 END
		WHERE i.id = $1 RETURNING stage, collection, ready`, []any{id, t.Now}, &stage, &collection, &ready)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	} else if err != nil {
		return fmt.Errorf("update readiness of item %s: %w", id, err)
	}
	if ready != 1 {
		return nil
	}
	t.wake = true
	return t.openLane(stage, collection)
}

// promote makes items ready whose time has come, and continues to put back items that released
// holds had set aside. It handles a bounded number; the next call continues.
func (t *Tx) promote() error {
	if t.promoted {
		return nil
	}
	var due, released bool
	err := t.Get(`SELECT EXISTS (SELECT 1 FROM work_item WHERE status = 'pending' AND ready = 0 AND run_at <= $1),
		EXISTS (SELECT 1 FROM putback)`, []any{t.Now}, &due, &released)
	if err != nil {
		return fmt.Errorf("look for items that became due: %w", err)
	}
	t.promoted = !due && !released
	if due {
		ids, err := t.Strings(`SELECT id FROM work_item WHERE status = 'pending' AND ready = 0 AND run_at <= $1
			ORDER BY run_at`+sqldb.Limit(sqldb.GroupWrites), t.Now)
		if err == nil {
			_, err = t.enter(`UPDATE work_item SET ready = 1, nudge_at = COALESCE(nudge_at, $2) WHERE `+t.Among("id")+`
				RETURNING id, stage, collection`, t.List(ids), t.Now)
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
	ids, err := t.enter(`UPDATE work_item SET ready = 1, nudge_at = $3, nudges = 0 WHERE id IN (
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
