package work

import (
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// A lane is the ready items of one collection in one stage. The lanes of a stage take turns: the
// one that was served longest ago comes next, so that ten jobs never wait for the ten thousand of
// another depositor. Items without a collection share a lane.

// mostLooked bounds how many lanes and items one call steps over, so that no transaction gets long
// (R25).
const mostLooked = 2 * sqldb.GroupWrites

// turn is an item whose turn it is.
type turn struct {
	registry.WorkItem
	offered bool // a message for it is on its way
	snoozed bool // its last attempt was a snooze of this stage
	waiting bool // it is ready, and cannot be claimed all the same
	losses  int  // attempts in a row that were lost in this stage
	own     bool // what it names lies in our own staging
}

// selectTurn selects what scanTurns reads.
var selectTurn = `SELECT ` + ItemColumns + `, i.nudges > 0, EXISTS (SELECT 1 FROM attempt a WHERE a.item_id = i.id AND a.n = i.attempt
	AND a.stage = i.stage AND a.outcome = 'snooze'), CASE WHEN ` + waits + ` THEN 1 ELSE 0 END, i.losses, i.own = 1 FROM work_item i `

// Items that an operator put in front of everything, and the first of a lane.
var (
	express = selectTurn + `WHERE i.stage = $1 AND i.ready = 1 AND i.rank < 0 AND NOT ` + Shut("i") + ` ORDER BY i.rank, i.id`
	heads   = selectTurn + `WHERE i.stage = $1 AND i.collection = $2 AND i.ready = 1 ORDER BY i.rank, i.id`
	// uploads are those of a lane that wait for nobody's server.
	uploads = selectTurn + `WHERE i.stage = $1 AND i.collection = $2 AND i.ready = 1 AND i.own = 1 ORDER BY i.rank, i.id`
)

// readTurns reads the first n rows of selectTurn.
func (t *Tx) readTurns(n int, query string, args ...any) (out []turn, err error) {
	rows, err := t.Query(query+sqldb.Limit(sqldb.Doubled(n)), args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() && len(out) < n {
		var next turn
		if next.WorkItem, err = ScanItem(sqldb.WithMore(rows, &next.offered, &next.snoozed, &next.waiting, &next.losses, &next.own)); err != nil {
			return nil, err
		}
		out = append(out, next)
	}
	return out, rows.Err()
}

// lineup is the items whose turn it is, as one call finds them. They stay ready until they are
// started.
type lineup struct {
	*Tx
	stage  registry.Stage
	want   int
	turns  []turn
	taken  map[string]bool // their ids
	of     map[string]int  // how many are of a lane
	spent  map[string]bool // lanes that have no more
	looked int64
	shares slotShares
}

// next returns the items whose turn it is in a stage, at most n. It may also miss some when very
// many items had to be set aside to get at them; the call after this goes on there. crowded says
// that some are kept from starting although there may be a slot.
func (t *Tx) next(stage registry.Stage, n int) (turns []turn, shares *slotShares, err error) {
	l := &lineup{Tx: t, stage: stage, want: n, taken: map[string]bool{}, of: map[string]int{}, spent: map[string]bool{}}
	if l.shares, err = SlotSharesAt(stage, t.Now, t.Numbers); err == nil {
		err = l.express()
	}
	for err == nil && len(l.turns) < l.want && l.looked < mostLooked {
		var more bool
		if more, err = l.round(); !more {
			break
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("look whose turn it is at %s: %w", stage, err)
	}
	return l.turns, &l.shares, nil
}

// express takes what goes before all turns.
func (l *lineup) express() error {
	for ; l.looked < mostLooked; l.looked++ {
		found, err := l.readTurns(l.want, express, l.stage)
		if err != nil {
			return err
		}
		waiting := slices.IndexFunc(found, func(n turn) bool { return n.waiting })
		if waiting < 0 {
			for _, n := range found {
				if err := l.take(n.Collection, n); err != nil {
					return err
				}
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

// round gives every lane its share of what is wanted still; false when there are no lanes.
func (l *lineup) round() (more bool, err error) {
	wanted := l.want - len(l.turns)
	lanes, err := l.lanes(l.stage, wanted+len(l.spent))
	if err != nil {
		return false, err
	}
	lanes = slices.DeleteFunc(lanes, func(collection string) bool { return l.spent[collection] })
	lanes = lanes[:min(len(lanes), wanted)]
	for i, collection := range lanes {
		left := len(lanes) - i
		if err := l.turnOf(collection, (l.want-len(l.turns)+left-1)/left); err != nil {
			return false, err
		}
	}
	return len(lanes) > 0, nil
}

// turnOf takes a lane's first items, so many at most. Where its collection has all the slots that
// it may have, these are of its uploads alone, which wait for nobody's server.
func (l *lineup) turnOf(collection string, share int) error {
	room, query := l.shares.room(collection), heads
	crowded := room == 0
	if crowded {
		l.looked++
		if first, err := l.readTurns(1, heads, l.stage, collection); err != nil {
			return err
		} else if len(first) == 0 {
			return l.closeLane(l.stage, collection)
		}
		l.shares.keptBack, query = true, uploads
		if !l.shares.exempt {
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
		err = l.served(l.stage, collection) // there may be many more of them: it is somebody else's turn now
	}
	return err
}

// take takes items of a lane, which has its turn with them.
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
	return l.served(l.stage, collection)
}

// Lane is named by its stage and collection.
type Lane struct {
	stage      registry.Stage
	collection string
}

// openLane gives a collection its turns in a stage, where it has a ready item now. One that is new
// comes next; one that was there before keeps its place, so that nobody gains by coming and going.
func (t *Tx) openLane(stage registry.Stage, collection string) error {
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

// closeLane ends the turns of a collection that has no ready item.
func (t *Tx) closeLane(stage registry.Stage, collection string) error {
	delete(t.open, Lane{stage, collection})
	err := t.Do(`UPDATE lane SET active = 0 WHERE stage = $1 AND collection = $2`, stage, collection)
	if err != nil {
		return fmt.Errorf("close the lane of %s at %s: %w", collection, stage, err)
	}
	return nil
}

// served notes that a collection had its turn.
func (t *Tx) served(stage registry.Stage, collection string) error {
	err := t.Do(`UPDATE lane SET served = (SELECT COALESCE(MAX(m.served), 0) + 1 FROM lane m WHERE m.stage = $1)
		WHERE stage = $1 AND collection = $2`, stage, collection)
	if err != nil {
		return fmt.Errorf("note the turn of %s at %s: %w", collection, stage, err)
	}
	return nil
}

// lanes are the collections that have a turn in a stage, the next one first: so many, or some more.
func (t *Tx) lanes(stage registry.Stage, most int) ([]string, error) {
	return t.Strings(`SELECT l.collection FROM lane l WHERE l.stage = $1 AND l.active = 1 AND NOT `+Shut("l")+`
		ORDER BY l.served, l.collection`+sqldb.Limit(sqldb.Doubled(most)), stage)
}
