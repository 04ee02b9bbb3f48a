package sqlstore

import (
	"fmt"
	"math"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// Who fetches from slow sources holds slots for long. So where workers fetch, a collection takes no more slots than the workers
// have without their spare ones, whoever waits; and where uploads can be told from what lies outside, half of the spare slots is
// left to uploads, so that these wait for no source at all. What runs is never stopped: a slot that is kept free is what lets
// the next one in.

// crowd is how many more items from outside may run in a stage at this moment.
type crowd struct {
	free   int            // of all collections together
	most   int            // of one collection
	runs   map[string]int // by collection
	spare  int            // slots of all workers; 0: no rule
	apart  bool           // what is our own does not count
	turned bool           // somebody was kept from a slot
}

// crowd counts what runs in a stage. Stages that fetch nothing, and workers without spare slots, have no rule. A worker that was killed
// counts with its slots for [workerAlive]: so long one collection may get more than its share of the one in its place.
func (t *tx) crowd(stage registry.Stage) (c crowd, err error) {
	step, ok := stepOf(stage)
	if !ok || step.Fetches == registry.NoSource {
		return c, nil
	}
	// What a held or stopping worker still runs takes none of these slots.
	const serving = `w.stage = $1 AND w.seen_at > $2 AND w.capacity > 0`
	args := []any{stage, t.now - workerAlive.Microseconds()}
	var slots int
	err = t.get(`SELECT COALESCE(SUM(capacity), 0), COALESCE(SUM(spare), 0) FROM worker_stage w WHERE `+serving, args, &slots, &c.spare)
	if err != nil || c.spare == 0 {
		return c, err
	}
	counted := ``
	if c.apart = step.Fetches == registry.NamedSource; c.apart {
		counted = ` AND i.own = 0`
	}
	running, err := t.numbers(`SELECT i.collection, COUNT(*) FROM work_item i JOIN attempt a ON a.item_id = i.id AND a.n = i.attempt
		JOIN worker_stage w ON w.worker_id = a.worker AND `+serving+`
		WHERE i.stage = $1 AND i.status = 'running'`+counted+` GROUP BY i.collection`, args...)
	if err != nil {
		return c, fmt.Errorf("count what runs at %s: %w", stage, err)
	}
	c.most, c.free, c.runs = max(1, slots-c.spare), slots, map[string]int{}
	if c.apart {
		c.free -= c.spare / 2
	}
	for collection, n := range running {
		c.runs[collection] = int(n)
		c.free -= int(n)
	}
	return c, nil
}

func stepOf(stage registry.Stage) (registry.Step, bool) {
	action, ok := registry.ActionOf(stage)
	if !ok {
		return registry.Step{}, false
	}
	r, _ := registry.RouteOf(action)
	return r.Step(stage)
}

// room is how many more items from outside a collection may start.
func (c *crowd) room(collection string) int {
	if c.spare == 0 {
		return math.MaxInt
	}
	return max(0, min(c.free, c.most-c.runs[collection]))
}

// take counts an item that is about to start.
func (c *crowd) take(n turn) {
	if c.spare > 0 && (!c.apart || !n.own) {
		c.runs[n.Collection]++
		c.free--
	}
}

// again is when a worker that was kept from an item asks again, unless one of its slots becomes free before. With up to ten spare
// slots of a stage all its workers together ask about twice a second; with more, each asks every five seconds.
func (c *crowd) again() time.Duration {
	const each, most = 500 * time.Millisecond, 5 * time.Second
	return min(time.Duration(max(1, c.spare))*each, most)
}
