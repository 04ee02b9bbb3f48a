package work

import (
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// A lane holds the ready items of one collection in one stage. The lanes of a stage take turns: the
// lane that was served longest ago is next. So ten jobs never wait for another depositor's ten
// thousand. Items without a collection share a lane.

// mostLooked bounds how many lanes and items one call steps over, so that transactions stay short
// (R25).
const mostLooked = 2 * sqldb.GroupWrites

// turn is an item that is next in its lane.
type turn struct {
	registry.WorkItem
	offered bool // a message for it is on its way
	snoozed bool // its last attempt was a snooze of this stage
	waiting bool // marked ready, but something keeps it from being claimed
	losses  int  // consecutive attempts lost in this stage
	own     bool // its data lie in our own staging
}

// selectTurn selects what scanTurns reads.
var selectTurn = `SELECT ` + rowColumns + `, i.nudges > 0, EXISTS (SELECT 1 FROM attempt a WHERE a.item_id = i.id AND a.n = i.attempt
	AND a.stage = i.stage AND a.outcome = 'snooze'), CASE WHEN ` + waits + ` THEN 1 ELSE 0 END, i.losses, i.own = 1 FROM work_item i `

// Express items come before all lanes; heads are a lane's first items.
var (
	express = selectTurn + `WHERE i.stage = $1 AND i.ready = 1 AND i.rank < 0 AND NOT ` + Shut("i") + ` ORDER BY i.rank, i.id`
	heads   = selectTurn + `WHERE i.stage = $1 AND i.collection = $2 AND i.ready = 1 ORDER BY i.rank, i.id`
	// uploads are a lane's items that wait for no outside source.
	uploads = selectTurn + `WHERE i.stage = $1 AND i.collection = $2 AND i.ready = 1 AND i.own = 1 ORDER BY i.rank, i.id`
)

// readTurns reads the first n rows of selectTurn.
func (t *Tx) readTurns(n int, query string, args ...any) (out []turn, err error) {
	rows, err := t.Query(query+sqldb.Limit(sqldb.PowerOfTwo(n)), args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() && len(out) < n {
		var next turn
		if next.WorkItem, err = scanRow(sqldb.WithMore(rows, &next.offered, &next.snoozed, &next.waiting, &next.losses, &next.own)); err != nil {
			return nil, err
		}
		out = append(out, next)
	}
	return out, rows.Err()
}

// lineup collects the items that are next, for one call. The items stay ready until they start.
type lineup struct {
	*Tx
	stage  registry.Stage
	want   int
	turns  []turn
	taken  map[string]bool // ids of turns
	of     map[string]int  // how many turns each lane has
	spent  map[string]bool // lanes without more items
	looked int64
	shares slotShares
}

// next returns at most n items of a stage whose turn it is. It may miss some if it had to set aside
// very many items first; the next call continues there. shares says whether slot shares kept items
// back.
func (t *Tx) next(stage registry.Stage, n int) (turns []turn, shares *slotShares, err error) {
	l := &lineup{Tx: t, stage: stage, want: n, taken: map[string]bool{}, of: map[string]int{}, spent: map[string]bool{}}
	if l.shares, err = t.sharesAt(stage); err == nil && l.shares.limit.full() {
		return nil, &l.shares, t.keptAll(&l.shares, stage)
	}
	if err == nil {
		err = l.express()
	}
	for err == nil && len(l.turns) < l.want && l.looked < mostLooked {
		if l.shares.limit.full() {
			err = t.keptAll(&l.shares, stage)
			break
		}
		var more bool
		if more, err = l.round(); !more {
			break
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("find the next items at %s: %w", stage, err)
	}
	return l.turns, &l.shares, nil
}

// keptAll notes whether a limit that lets nothing start keeps an item back.
func (t *Tx) keptAll(shares *slotShares, stage registry.Stage) error {
	err := t.Get(`SELECT EXISTS (SELECT 1 FROM work_item WHERE stage = $1 AND ready = 1)`, []any{stage}, &shares.keptBack)
	if err != nil {
		return fmt.Errorf("look for ready items at %s: %w", stage, err)
	}
	return nil
}

// express takes the items that come before all lanes.
func (l *lineup) express() error {
	for ; l.looked < mostLooked; l.looked++ {
		found, err := l.readExpress()
		if err != nil {
			return err
		}
		waiting := slices.IndexFunc(found, func(n turn) bool { return n.waiting })
		if waiting < 0 {
			kept := false
			for _, n := range found {
				if l.shares.limit.of(n.Collection) == 0 {
					kept = true // now its collection is full: look for those behind it
					continue
				}
				if err := l.take(n.Collection, n); err != nil {
					return err
				}
			}
			if kept {
				l.shares.keptBack = true
				continue
			}
			return nil
		}
		aside, err := l.setAside(l.stage, found[waiting].Collection, false)
		if err != nil {
			return err
		}
		l.looked += aside
	}
	return nil
}

// readExpress reads express items of collections that may start more, and that are not taken yet.
func (l *lineup) readExpress() (found []turn, err error) {
	full, want := l.shares.limit.fullCollections(), l.want-len(l.turns)
	switch {
	case want <= 0 || l.shares.limit.full():
		return nil, nil
	case len(full) == 0 && len(l.turns) == 0:
		return l.readTurns(want, express, l.stage)
	}
	found, err = l.readTurns(l.want, selectTurn+`WHERE i.stage = $2 AND i.ready = 1 AND i.rank < 0 AND NOT `+Shut("i")+`
		AND NOT `+l.Among("i.collection")+` ORDER BY i.rank, i.id`, l.List(full), l.stage)
	found = slices.DeleteFunc(found, func(n turn) bool { return l.taken[n.ID] })
	return found[:min(want, len(found))], err
}

// round gives each lane its share of the items still wanted. It returns false if there are no
// lanes.
func (l *lineup) round() (more bool, err error) {
	wanted := l.want - len(l.turns)
	lanes, err := l.lanes(l.stage, wanted+len(l.spent))
	if err != nil {
		return false, err
	}
	lanes = slices.DeleteFunc(lanes, func(collection string) bool { return l.spent[collection] })
	lanes = lanes[:min(len(lanes), wanted)]
	if len(l.shares.limit.weights) > 0 {
		return len(lanes) > 0, l.weightedRound(lanes)
	}
	for i, collection := range lanes {
		left := len(lanes) - i
		if err := l.turnOf(collection, (l.want-len(l.turns)+left-1)/left); err != nil {
			return false, err
		}
	}
	return len(lanes) > 0, nil
}

// weightedRound gives each lane as many items as its weight says, less those that it had of this
// turn already, or a multiple of that if many items are wanted.
func (l *lineup) weightedRound(lanes []string) error {
	had, err := l.Numbers(`SELECT collection, taken FROM lane WHERE stage = $1 AND taken > 0`, l.stage)
	if err != nil {
		return fmt.Errorf("read whose turn goes on: %w", err)
	}
	sum := 0
	for _, collection := range lanes {
		sum += l.shares.limit.weight(collection)
	}
	for _, collection := range lanes {
		weight, wanted := l.shares.limit.weight(collection), l.want-len(l.turns)
		if wanted == 0 {
			return nil
		}
		share := weight*max(1, l.want/sum) - int(had[collection])%weight
		if err := l.turnOf(collection, min(share, wanted)); err != nil {
			return err
		}
	}
	return nil
}

// turnOf takes at most share of a lane's first items. If the collection already has all slots it
// may have, turnOf takes only its uploads, which wait for no outside source.
func (l *lineup) turnOf(collection string, share int) error {
	room, query := l.shares.room(collection), heads
	limit := l.shares.limit.of(collection)
	share = min(share, limit)
	crowded := room == 0
	if crowded {
		l.looked++
		if first, err := l.readTurns(1, heads, l.stage, collection); err != nil {
			return err
		} else if len(first) == 0 {
			return l.closeLane(l.stage, collection)
		}
		l.shares.keptBack, query = true, uploads
		if !l.shares.exempt || limit == 0 {
			l.spent[collection] = true
			return nil
		}
	} else {
		share = min(share, room)
	}
	first, err := l.readTurns(share+l.of[collection], query, l.stage, collection)
	if err != nil {
		return err
	}
	first = slices.DeleteFunc(first, func(n turn) bool { return l.taken[n.ID] })
	first = first[:min(share, len(first))]
	waiting := slices.IndexFunc(first, func(n turn) bool { return n.waiting })
	switch {
	case len(first) == 0 && l.of[collection] == 0 && !crowded:
		l.looked++
		return l.closeLane(l.stage, collection)
	case waiting < 0:
		l.spent[collection] = len(first) < share
		return l.take(collection, first...)
	}
	if err := l.take(collection, first[:waiting]...); err != nil {
		return err
	}
	aside, err := l.setAside(l.stage, collection, crowded)
	l.looked += aside + 1
	if err == nil && waiting == 0 && aside >= sqldb.GroupWrites {
		err = l.served(l.stage, collection) // many more may have to be set aside: let the next lane have its turn
	}
	return err
}

// take takes items of a lane, whose turn is over with that.
func (l *lineup) take(collection string, first ...turn) error {
	if len(first) == 0 {
		return nil
	}
	for _, n := range first {
		l.taken[n.ID] = true
		l.shares.take(n)
	}
	l.turns = append(l.turns, first...)
	l.of[collection] += len(first)
	if weight := l.shares.limit.weight(collection); weight > 1 {
		if over, err := l.turnTaken(Lane{l.stage, collection}, len(first), weight); err != nil || !over {
			return err
		}
	}
	return l.served(l.stage, collection)
}

// Lane identifies a lane.
type Lane struct {
	stage      registry.Stage
	collection string
}

// openLane opens a lane, which has a ready item now. A new lane is next. A lane that was closed
// keeps its place, so that closing and opening gains nothing.
func (t *Tx) openLane(stage registry.Stage, collection string) error {
	t.asked = t.asked || stage.Function() != ""
	l := Lane{stage, collection}
	if t.open[l] {
		return nil
	}
	err := t.Do(`INSERT INTO lane (stage, collection, served, active) VALUES ($1, $2, 0, 1)
		ON CONFLICT (stage, collection) DO UPDATE SET active = 1 WHERE lane.active = 0`, stage, collection)
	if err != nil {
		return fmt.Errorf("open the lane of %s at %s: %w", collection, stage, err)
	}
	if t.open == nil {
		t.open = map[Lane]bool{}
	}
	t.open[l] = true
	return nil
}

// closeLane closes a lane, which has no ready item.
func (t *Tx) closeLane(stage registry.Stage, collection string) error {
	delete(t.open, Lane{stage, collection})
	err := t.Do(`UPDATE lane SET active = 0 WHERE stage = $1 AND collection = $2`, stage, collection)
	if err != nil {
		return fmt.Errorf("close the lane of %s at %s: %w", collection, stage, err)
	}
	return nil
}

// served records that a lane had its turn.
func (t *Tx) served(stage registry.Stage, collection string) error {
	err := t.Do(`UPDATE lane SET served = (SELECT COALESCE(MAX(m.served), 0) + 1 FROM lane m WHERE m.stage = $1)
		WHERE stage = $1 AND collection = $2`, stage, collection)
	if err != nil {
		return fmt.Errorf("record the turn of %s at %s: %w", collection, stage, err)
	}
	return nil
}

// insertServed records the turns of lanes that need not be open.
var insertServed = sqldb.InsertOr(`INSERT INTO lane (stage, collection, served, active)`,
	`($1, $2, (SELECT COALESCE(MAX(m.served), 0) + 1 FROM lane m WHERE m.stage = $1), 0)`,
	` ON CONFLICT (stage, collection) DO UPDATE SET served = excluded.served`)

// servedAll records that lanes had their turns without being asked: their items continued. A lane
// is not opened by that.
func (t *Tx) servedAll(lanes []Lane) error {
	rows := make([][]any, len(lanes))
	for i, l := range lanes {
		rows[i] = []any{l.stage, l.collection}
	}
	if err := t.InsertRows(insertServed, rows); err != nil {
		return fmt.Errorf("record the turns of %d lanes: %w", len(lanes), err)
	}
	return nil
}

// lanes returns the collections with an open lane in a stage, the next one first: at least most of
// them, if there are so many.
func (t *Tx) lanes(stage registry.Stage, most int) ([]string, error) {
	return t.Strings(`SELECT l.collection FROM lane l WHERE l.stage = $1 AND l.active = 1 AND NOT `+Shut("l")+`
		ORDER BY l.served, l.collection`+sqldb.Limit(sqldb.PowerOfTwo(most)), stage)
}
