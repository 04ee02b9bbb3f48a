package sqlstore

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
)

// A lane is the ready items of one collection in one stage. The lanes of a stage take turns: the one that was served
// longest ago comes next, so that ten jobs never wait for the ten thousand of another depositor. Items without a
// collection share a lane.

// mostLooked bounds how many lanes and items one call steps over, so that no transaction gets long (R25).
const mostLooked = 2 * groupWrites

// shut is true for the rows of work_item or lane, called by an alias, that a hold covers as a whole, whatever the items.
// There is one staging volume, so a hold on it covers stages as a whole, too.
func shut(alias string) string {
	return `EXISTS (SELECT 1 FROM hold h WHERE h.scope = 'all'
	OR (h.scope = 'stage' AND h.key = ` + alias + `.stage)
	OR (h.scope = 'collection' AND h.key = ` + alias + `.collection)
	OR (h.scope = 'volume' AND h.key = '` + registry.DefaultStaging + `' AND ` + alias + `.stage IN ` + stagingStages + `))`
}

// stagingStages write to the staging volume.
var stagingStages = stagesWhere(func(s registry.Step) bool { return s.Writes == registry.StagingVolume })

// express is the stage's first item of those that an operator put in front of everything.
var express = `SELECT i.collection, i.id, CASE WHEN ` + waits + ` THEN 1 ELSE 0 END FROM work_item i
	WHERE i.stage = $1 AND i.ready = 1 AND i.rank < 0 AND NOT ` + shut("i") + ` ORDER BY i.rank, i.id LIMIT 1`

// head is the first item of the lane whose turn it is; its id is ” when the lane is empty.
var head = `SELECT h.collection, COALESCE(h.id, ''), CASE WHEN i.id IS NOT NULL AND ` + waits + ` THEN 1 ELSE 0 END
	FROM (SELECT l.collection, (SELECT r.id FROM work_item r WHERE r.stage = l.stage AND r.collection = l.collection
			AND r.ready = 1 ORDER BY r.rank, r.id LIMIT 1) AS id
		FROM lane l WHERE l.stage = $1 AND l.active = 1 AND NOT ` + shut("l") + ` ORDER BY l.served, l.collection LIMIT 1) h
	LEFT JOIN work_item i ON i.id = h.id`

// next returns the id of the item whose turn it is in a stage, "" when there is none. It may also miss one when very many
// items had to be set aside to get at it; the call after this goes on there.
func (t *tx) next(stage registry.Stage) (string, error) {
	for looked := int64(0); looked < mostLooked; looked++ {
		var collection, id string
		var waiting bool
		err := t.get(express, []any{stage}, &collection, &id, &waiting)
		if errors.Is(err, sql.ErrNoRows) {
			err = t.get(head, []any{stage}, &collection, &id, &waiting)
		}
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return "", nil
		case err != nil:
			return "", fmt.Errorf("look whose turn it is at %s: %w", stage, err)
		case id == "":
			if err := t.closeLane(stage, collection); err != nil {
				return "", err
			}
		case !waiting:
			return id, nil
		default:
			n, err := t.setAside(stage, collection)
			if err != nil {
				return "", err
			}
			if looked += n; n < groupWrites {
				continue
			}
			// There may be many more of them: it is somebody else's turn now.
			if err := t.served(stage, collection); err != nil {
				return "", err
			}
		}
	}
	return "", nil
}

// openLane gives a collection its turns in a stage, where it has a ready item now. One that is new comes next; one that
// was there before keeps its place, so that nobody gains by coming and going.
func (t *tx) openLane(stage registry.Stage, collection string) error {
	err := t.do(`INSERT INTO lane (stage, collection, served, active) VALUES ($1, $2, 0, 1)
		ON CONFLICT (stage, collection) DO UPDATE SET active = 1 WHERE lane.active = 0`, stage, collection)
	if err != nil {
		return fmt.Errorf("open the lane of %s at %s: %w", collection, stage, err)
	}
	return nil
}

// closeLane ends the turns of a collection that has no ready item.
func (t *tx) closeLane(stage registry.Stage, collection string) error {
	err := t.do(`UPDATE lane SET active = 0 WHERE stage = $1 AND collection = $2`, stage, collection)
	if err != nil {
		return fmt.Errorf("close the lane of %s at %s: %w", collection, stage, err)
	}
	return nil
}

// served notes that a collection had its turn.
func (t *tx) served(stage registry.Stage, collection string) error {
	err := t.do(`UPDATE lane SET served = (SELECT COALESCE(MAX(m.served), 0) + 1 FROM lane m WHERE m.stage = $1)
		WHERE stage = $1 AND collection = $2`, stage, collection)
	if err != nil {
		return fmt.Errorf("note the turn of %s at %s: %w", collection, stage, err)
	}
	return nil
}

// lanes are the collections that have a turn in a stage, the next one first.
func (t *tx) lanes(stage registry.Stage) ([]string, error) {
	return t.strings(`SELECT l.collection FROM lane l WHERE l.stage = $1 AND l.active = 1 AND NOT `+shut("l")+`
		ORDER BY l.served, l.collection`, stage)
}
