package catalog

import (
	"context"
	"fmt"
	"slices"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// This file is about one rule: only who may have a lock waits for it. Payloads stand in line for
// what they name from their submission on (R1), so without it whoever names another owner's object
// keeps that owner waiting, for as long as its own source takes. Nobody owns an object that does
// not exist yet: then all may wait, and when one of them gets it, those of other owners leave the
// line.

// The keys of locks. An owner's length goes first, so that no two pairs share a key.
func arkKey(ark string) string { return "ark:" + ark }

func localKey(owner, local string) string {
	return fmt.Sprintf("localid:%d:%s:%s", len(owner), owner, local)
}

// LinesOf returns for each of some payloads of a tenant the locks that it is known to need before
// anybody has looked into it, each once, and that it may have. It is refused another owner's object
// when it asks for it, by the owner of that time.
func LinesOf(t *work.Tx, tenant string, specs ...registry.Spec) ([][]string, error) {
	var named []string
	for _, spec := range specs {
		if spec.PrimaryID != "" {
			named = append(named, spec.PrimaryID)
		}
	}
	type whose struct{ ark, tenant, owner string }
	objects := map[string]whose{}
	if len(named) > 0 {
		rows, err := sqldb.Collect(t.Ask(`SELECT id, tenant, owner FROM object WHERE `+t.Among("id"), t.List(named)), "look whose objects are named",
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

// inLine is a place in the line for an object's lock.
type inLine struct {
	at     int64
	itemID string
	barred bool // of another owner than the object, which will be refused it
}

// clearLine takes payloads of other owners out of a part of the line for an object that belongs to
// somebody by now (R25). They go on at once, and are refused the object. It returns where it has
// come to; more says that the line goes on.
func (t *tx) clearLine(ark string, from inLine) (to inLine, more bool, err error) {
	line, err := sqldb.Collect(t.Ask(`SELECT q.submitted_at, q.item_id, CASE WHEN i.action IN ('batch', 'ingest')
			AND (i.tenant <> o.tenant OR COALESCE(`+t.store.db.Dialect.PayloadOwner()+`, '') <> o.owner) THEN 1 ELSE 0 END
		FROM lock_wait q JOIN work_item i ON i.id = q.item_id JOIN work_detail w ON w.item_id = i.id JOIN object o ON o.id = $2
		WHERE q.key = $1 AND (q.submitted_at, q.item_id) > ($3, $4) ORDER BY q.submitted_at, q.item_id`+sqldb.Limit(sqldb.GroupWrites),
		arkKey(ark), ark, from.at, from.itemID), "look who waits for "+ark, scanInLine)
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

func scanInLine(row sqldb.Scanner) (w inLine, err error) {
	var barred int
	err = row.Scan(&w.at, &w.itemID, &barred)
	w.barred = barred == 1
	return w, err
}

// clearRest goes on with a line that is longer than one transaction may see to.
func (s *Catalog) clearRest(ctx context.Context, l registry.Lease, ark string, from inLine) error {
	for more := true; more; {
		err := s.write(ctx, func(t *tx) error {
			_, err := t.Live(l)
			if err == nil {
				from, more, err = t.clearLine(ark, from)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
