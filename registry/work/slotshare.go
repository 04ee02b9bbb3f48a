package work

import (
	"fmt"
	"math"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// Who fetches from slow sources holds slots for long. So where workers fetch, a collection takes no
// more slots than the workers have without their spare ones, whoever waits; and where uploads can
// be told from what lies outside, half of the spare slots is left to uploads, so that these wait
// for no source at all. What runs is never stopped: a slot that is kept free is what lets the next
// one in.

// slotShares is how many more items from outside may run in a stage at this moment.
type slotShares struct {
	free     int            // of all collections together
	most     int            // of one collection
	runs     map[string]int // by collection
	slots    int            // of all workers
	spare    int            // those of them that are spare; 0: no rule
	exempt   bool           // what is our own does not count
	keptBack bool           // somebody was kept from a slot
}

// SlotSharesAt counts what runs in a stage at a moment, in microseconds. Stages that fetch nothing, and
// workers without spare slots, have no rule. A worker that was killed counts as long as its leases
// do, with its slots and with what it ran: a process that starts in its place has a name of its
// own, and nothing tells that it replaces it rather than joins it.
func SlotSharesAt(stage registry.Stage, now int64, numbers func(query string, args ...any) (map[string]int64, error)) (c slotShares, err error) {
	step, ok := stepOf(stage)
	if !ok || step.Fetches == registry.NoSource {
		return c, nil
	}
	// What a held or stopping worker still runs takes none of these slots.
	const serving = `w.stage = $1 AND w.seen_at + w.lease > $2 AND w.capacity > 0`
	sums, err := numbers(`SELECT 'slots', COALESCE(SUM(capacity), 0) FROM worker_stage w WHERE `+serving+`
		UNION ALL SELECT 'spare', COALESCE(SUM(spare), 0) FROM worker_stage w WHERE `+serving, stage, now)
	if err != nil {
		return c, fmt.Errorf("add up the slots at %s: %w", stage, err)
	}
	c.slots, c.spare = int(sums["slots"]), int(sums["spare"])
	if c.spare == 0 {
		return c, nil
	}
	counted := ``
	if c.exempt = step.Fetches == registry.NamedSource; c.exempt {
		counted = ` AND i.own = 0`
	}
	running, err := numbers(`SELECT i.collection, COUNT(*) FROM work_item i JOIN attempt a ON a.item_id = i.id AND a.n = i.attempt
		JOIN worker_stage w ON w.worker_id = a.worker AND `+serving+`
		WHERE i.stage = $1 AND i.status = 'running'`+counted+` GROUP BY i.collection`, stage, now)
	if err != nil {
		return c, fmt.Errorf("count what runs at %s: %w", stage, err)
	}
	c.most, c.free, c.runs = max(1, c.slots-c.spare), c.slots, map[string]int{}
	if c.exempt {
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
func (c *slotShares) room(collection string) int {
	if c.spare == 0 {
		return math.MaxInt
	}
	return max(0, min(c.free, c.most-c.runs[collection]))
}

// KeepsBack says whether an item of a collection, which could start otherwise, is kept from a slot;
// own says that it lies in our staging.
func (c *slotShares) KeepsBack(it registry.WorkItem, own bool) bool {
	return it.Priority >= 0 && (!own || !c.exempt) && c.room(it.Collection) == 0
}

// Sentence says what keeps an item back.
func (c *slotShares) Sentence(it registry.WorkItem) string {
	kept := "other collections"
	if c.exempt {
		kept += " and uploads"
	}
	if n := c.runs[it.Collection]; n >= c.most {
		return fmt.Sprintf("of the %s at %s, collection %s has the %d that one collection may have; the others (%d) are kept for %s",
			Count(int64(c.slots), "slot"), it.Stage, it.Collection, c.most, c.spare, kept)
	}
	return fmt.Sprintf("of the %s at %s, all but those for uploads (%d) are taken, %d of them by collection %s",
		Count(int64(c.slots), "slot"), it.Stage, c.spare/2, c.runs[it.Collection], it.Collection)
}

// take counts an item that is about to start.
func (c *slotShares) take(n turn) {
	if c.spare > 0 && (!c.exempt || !n.own) {
		c.runs[n.Collection]++
		c.free--
	}
}

// again is when a worker that was kept from an item asks again, unless one of its slots becomes
// free before. With up to ten spare slots of a stage all its workers together ask about twice a
// second; with more, each asks every five seconds.
func (c *slotShares) retryAfter() time.Duration {
	const each, most = 500 * time.Millisecond, 5 * time.Second
	return min(time.Duration(max(1, c.spare))*each, most)
}
