package work

import (
	"fmt"
	"math"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// Fetching from slow sources holds slots for long. So in stages that fetch, one collection gets at
// most the slots that are not spare, even if no other collection waits. Where uploads can be told
// from outside sources, half of the spare slots is left to uploads, so that uploads never wait for
// a source. Running steps are never stopped.

// slotShares says how many more items from outside sources may start in a stage.
type slotShares struct {
	free     int            // free slots, for all collections together
	most     int            // how many slots one collection may have
	runs     map[string]int // how many slots each collection has
	slots    int            // slots of all workers
	spare    int            // spare slots among them; 0: no limits apply
	exempt   bool           // items whose data lie in our staging do not count
	keptBack bool           // an item was kept back
}

// SlotSharesAt counts what runs in a stage at a time in microseconds. Stages that fetch nothing,
// and workers without spare slots, have no limits. A killed worker counts until its leases end,
// with its slots and what it ran: its replacement has another name, and nothing shows that it is a
// replacement.
func SlotSharesAt(stage registry.Stage, now int64, numbers func(query string, args ...any) (map[string]int64, error)) (c slotShares, err error) {
	step, ok := stepOf(stage)
	if !ok || step.Fetches == registry.NoSource {
		return c, nil
	}
	// What held or stopping workers still run takes none of these slots.
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
		return c, fmt.Errorf("count running items at %s: %w", stage, err)
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

// room returns how many more items from outside sources a collection may start.
func (c *slotShares) room(collection string) int {
	if c.spare == 0 {
		return math.MaxInt
	}
	return max(0, min(c.free, c.most-c.runs[collection]))
}

// KeepsBack reports whether the limits keep an item from starting that could start otherwise. own
// says that the item's data lie in our staging.
func (c *slotShares) KeepsBack(it registry.WorkItem, own bool) bool {
	return it.Priority >= 0 && (!own || !c.exempt) && c.room(it.Collection) == 0
}

// Sentence explains to people what keeps an item back.
func (c *slotShares) Sentence(it registry.WorkItem) string {
	kept := "other collections"
	if c.exempt {
		kept += " and uploads"
	}
	if n := c.runs[it.Collection]; n >= c.most {
		return fmt.Sprintf("of the %s at %s, collection %s has the %d that one collection may have; the others (%d) are kept for %s",
			registry.Count(int64(c.slots), "slot"), it.Stage, it.Collection, c.most, c.spare, kept)
	}
	return fmt.Sprintf("of the %s at %s, all but those for uploads (%d) are taken, %d of them by collection %s",
		registry.Count(int64(c.slots), "slot"), it.Stage, c.spare/2, c.runs[it.Collection], it.Collection)
}

// take counts an item that is about to start.
func (c *slotShares) take(n turn) {
	if c.spare > 0 && (!c.exempt || !n.own) {
		c.runs[n.Collection]++
		c.free--
	}
}

// retryAfter returns when a worker asks again after an item was kept back, unless one of its slots
// becomes free earlier. With up to ten spare slots of a stage, all its workers together ask about
// twice a second. With more, each asks every five seconds.
func (c *slotShares) retryAfter() time.Duration {
	const each, most = 500 * time.Millisecond, 5 * time.Second
	return min(time.Duration(max(1, c.spare))*each, most)
}
