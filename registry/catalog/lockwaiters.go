package catalog

import (
	"context"
	"fmt"
	"slices"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// An item waits only for locks that it may have. From its submission on, a payload stands in the
// lines of the locks that it names (R1). Otherwise a payload that names another owner's object
// would keep that owner waiting, for as long as its own source takes. An object that does not exist
// yet has no owner, so all may wait for it; when one item creates it, items of other owners leave
// the line.

// Keys of locks. The owner's length goes first, so that no two pairs share a key.
func arkKey(ark string) string { return "ark:" + ark }

func localKey(owner, local string) string {
	return fmt.Sprintf("localid:%d:%s:%s", len(owner), owner, local)
}

// LockKeys returns, for each payload of a tenant, the keys of the locks that it needs as far as its
// submission tells, sorted and each once. It leaves out objects of other owners: identify refuses
// those when the item asks for them.
func LockKeys(t *work.Tx, tenant string, specs ...registry.Spec) ([][]string, error) {
	var named []string
	for _, spec := range specs {
		if spec.PrimaryID != "" {
			named = append(named, spec.PrimaryID)
		}
	}
	type whose struct{ ark, tenant, owner string }
	objects := map[string]whose{}
	if len(named) > 0 {
		rows, err := sqldb.Collect(t.Ask(`SELECT id, tenant, owner FROM object WHERE `+t.Among("id"), t.List(named)), "look up the owners of objects",
			func(row sqldb.Scanner) (w whose, err error) { return w, row.Scan(&w.ark, &w.tenant, &w.owner) })
		if err != nil {
			return nil, err
		}
		for _, w := range rows {
			objects[w.ark] = w
		}
	}
	lines := make([][]string, len(specs))
	for i, spec := range specs {
		var keys []string
		for _, local := range spec.LocalIDs {
			keys = append(keys, localKey(spec.Profile.Owner, local))
		}
		if w, exists := objects[spec.PrimaryID]; spec.PrimaryID != "" && (!exists || w.tenant == tenant && w.owner == spec.Profile.Owner) {
			keys = append(keys, arkKey(spec.PrimaryID))
		}
		slices.Sort(keys)
		lines[i] = slices.Compact(keys)
	}
	return lines, nil
}

// waiter is an item in the line for an object's lock.
type waiter struct {
	at     int64
	itemID string
	barred bool // its owner is not the object's, so it will be refused
}

// dropBarredWaiters removes items of other owners from one portion of the line for an object (R25),
// which has an owner by now. They become ready at once, and are then refused the object. It returns
// the portion's last waiter; more is true if the line goes on.
func (t *tx) dropBarredWaiters(ark string, from waiter) (to waiter, more bool, err error) {
	line, err := sqldb.Collect(t.Ask(`SELECT q.submitted_at, q.item_id, CASE WHEN i.action IN ('batch', 'ingest')
			AND (i.tenant <> o.tenant OR COALESCE(`+t.store.db.Dialect.PayloadOwner()+`, '') <> o.owner) THEN 1 ELSE 0 END
		FROM lock_wait q JOIN work_item i ON i.id = q.item_id JOIN work_detail w ON w.item_id = i.id JOIN object o ON o.id = $2
		WHERE q.key = $1 AND (q.submitted_at, q.item_id) > ($3, $4) ORDER BY q.submitted_at, q.item_id`+sqldb.Limit(sqldb.GroupWrites),
		arkKey(ark), ark, from.at, from.itemID), "list the items that wait for "+ark, scanWaiter)
	if err != nil || len(line) == 0 {
		return from, false, err
	}
	var barred []string
	for _, w := range line {
		if w.barred {
			barred = append(barred, w.itemID)
		}
	}
	if len(barred) > 0 {
		err = t.LeaveLine(arkKey(ark), barred)
	}
	return line[len(line)-1], len(line) == sqldb.GroupWrites, err
}

func scanWaiter(row sqldb.Scanner) (w waiter, err error) {
	var barred int
	err = row.Scan(&w.at, &w.itemID, &barred)
	w.barred = barred == 1
	return w, err
}

// dropRemainingBarredWaiters does the rest of a line that is too long for one transaction.
func (s *Catalog) dropRemainingBarredWaiters(ctx context.Context, l registry.Lease, ark string, from waiter) error {
	for more := true; more; {
		err := s.write(ctx, func(t *tx) error {
			err := t.Fence(l)
			if err == nil {
				from, more, err = t.dropBarredWaiters(ark, from)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
