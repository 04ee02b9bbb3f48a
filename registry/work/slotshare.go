package work

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
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
	limit    room           // what admins allow
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

// sharesAt returns the slot shares of a stage with the limits of admins. [Tx.promote] must have been
// called.
func (t *Tx) sharesAt(stage registry.Stage) (c slotShares, err error) {
	if c, err = SlotSharesAt(stage, t.Now, t.Numbers); err != nil || !t.limited {
		return c, err
	}
	if err = t.allLimits(); err == nil {
		c.limit, err = roomAt(stage, t.limits, t.Numbers)
	}
	return c, err
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
	left := c.limit.of(collection)
	if c.spare > 0 {
		left = min(left, max(0, min(c.free, c.most-c.runs[collection])))
	}
	return left
}

// KeepsBack reports whether the limits keep an item from starting that could start otherwise. own
// says that the item's data lie in our staging.
func (c *slotShares) KeepsBack(it registry.WorkItem, own bool) bool {
	return c.limit.of(it.Collection) == 0 || it.Priority >= 0 && (!own || !c.exempt) && c.room(it.Collection) == 0
}

// Statement says what keeps an item back.
func (c *slotShares) Statement(it registry.WorkItem) registry.Statement {
	s := registry.Statement{Stage: it.Stage, Collection: it.Collection, N: int64(c.slots)}
	if c.runs[it.Collection] >= c.most {
		s.Says, s.Of, s.Others, s.Uploads = registry.SaysShareUsed, int64(c.most), int64(c.spare), c.exempt
	} else {
		s.Says, s.Of, s.Others = registry.SaysSlotsTaken, int64(c.runs[it.Collection]), int64(c.spare/2)
	}
	return s
}

// take counts an item that is about to start.
func (c *slotShares) take(n turn) {
	c.limit.take(n.Collection)
	if c.spare > 0 && (!c.exempt || !n.own) {
		c.runs[n.Collection]++
		c.free--
	}
}

// retryAfter returns when a worker asks again after an item was kept back, unless one of its slots
// becomes free earlier. With up to ten spare slots of a stage, all its workers together ask about
// twice a second. With more, each asks every five seconds. A limit has no spare slots.
func (c *slotShares) retryAfter() time.Duration {
	if c.spare == 0 {
		return limitAgain
	}
	const each, most = 500 * time.Millisecond, 5 * time.Second
	return min(time.Duration(max(1, c.spare))*each, most)
}

// An admin may limit how many items of a stage, or of a collection, run at once, and so may the programs
// that serve a stage. Claims count what
// runs in their own transaction, and transactions are serial. So no limit is ever exceeded, however
// many processes claim. Without limits no statement is added to a claim.

// Types of the events of limits.
const (
	eventLimit   = "limit"
	eventUnlimit = "unlimit"
)

// limitEvent is their data.
type limitEvent struct {
	Scope  registry.HoldScope `json:"scope"`
	Key    string             `json:"key"`
	Most   int                `json:"most,omitempty"`
	Weight int                `json:"weight,omitempty"`
}

// SetLimit implements registry.Limiting.
func (e *Engine) SetLimit(ctx context.Context, l registry.Limit) error {
	err := l.Check()
	if err == nil && sqldb.Clean(l.Key) != l.Key {
		err = fmt.Errorf("%w: the key is too long or not valid text", registry.ErrInvalid)
	}
	if err == nil {
		err = e.Write(ctx, func(t *Tx) error {
			err := t.Do(`INSERT INTO work_limit (scope, key, most, weight, actor, at) VALUES ($1, $2, $3, $4, $5, $6)
				ON CONFLICT (scope, key) DO UPDATE SET most = $3, weight = $4, actor = $5, at = $6`,
				l.Scope, l.Key, l.Most, l.Weight, sqldb.Clean(l.Actor), t.Now)
			if err != nil {
				return err
			}
			return t.limitChanged(eventLimit, l)
		})
	}
	if err != nil {
		return fmt.Errorf("limit %s %.100s: %w", l.Scope, l.Key, err)
	}
	return nil
}

// RemoveLimit implements registry.Limiting.
func (e *Engine) RemoveLimit(ctx context.Context, scope registry.HoldScope, key, actor string) error {
	err := e.Write(ctx, func(t *Tx) error {
		if sqldb.Clean(key) != key {
			return registry.ErrNotFound // no such key can exist
		}
		n, err := t.Exec(`UPDATE work_limit SET most = 0, weight = 0, actor = '', at = $3 WHERE scope = $1 AND key = $2 AND (most > 0 OR weight > 0)`,
			scope, key, t.Now)
		if err == nil && n == 0 {
			err = registry.ErrNotFound
		}
		if err == nil {
			err = t.dropEmptyLimit(scope, key)
		}
		if err != nil {
			return err
		}
		return t.limitChanged(eventUnlimit, registry.Limit{Scope: scope, Key: key, Actor: actor})
	})
	if err != nil {
		return fmt.Errorf("remove the limit of %s %.100s: %w", scope, key, err)
	}
	return nil
}

// dropEmptyLimit deletes a limit that nobody set and no program announced.
func (t *Tx) dropEmptyLimit(scope registry.HoldScope, key string) error {
	return t.Do(`DELETE FROM work_limit WHERE scope = $1 AND key = $2 AND most = 0 AND weight = 0 AND announced = 0`, scope, key)
}

// AnnounceLimit records how many items of a stage may run at once as its programs announce it; 0: any
// number. A limit that an admin set holds before it.
func (t *Tx) AnnounceLimit(stage registry.Stage, most int) error {
	var now int
	err := t.Get(`SELECT COALESCE(MAX(announced), 0) FROM work_limit WHERE scope = 'stage' AND key = $1`, []any{stage}, &now)
	if err == nil && now != most {
		t.dropCached()
		t.wake, t.asked = true, true
		err = t.Do(`INSERT INTO work_limit (scope, key, most, weight, actor, at, announced) VALUES ('stage', $1, 0, 0, '', $2, $3)
			ON CONFLICT (scope, key) DO UPDATE SET announced = $3`, stage, t.Now, most)
		if err == nil {
			err = t.dropEmptyLimit(registry.HoldStage, string(stage))
		}
	}
	if err != nil {
		return fmt.Errorf("announce the limit of %s: %w", stage, err)
	}
	return nil
}

// limitChanged wakes everyone who may start more, and writes the event.
func (t *Tx) limitChanged(kind string, l registry.Limit) error {
	t.dropCached()
	t.wake, t.asked = true, true
	return t.Event("", 0, kind, sqldb.Clean(l.Actor), limitEvent{Scope: l.Scope, Key: l.Key, Most: l.Most, Weight: l.Weight})
}

const selectLimits = `SELECT scope, key, most, weight, actor, at, announced FROM work_limit ORDER BY scope, key`

func scanLimit(row sqldb.Scanner) (l registry.Limit, err error) {
	var at int64
	err = row.Scan(&l.Scope, &l.Key, &l.Most, &l.Weight, &l.Actor, &at, &l.Announced)
	l.At = sqldb.FromMicros(at)
	return l, err
}

// Limits implements registry.Limiting.
func (e *Engine) Limits(ctx context.Context) ([]registry.Limit, error) {
	return sqldb.Collect(e.db.Read.Ask(ctx, selectLimits), "list limits", scanLimit)
}

// allLimits reads the limits, once for the transaction.
func (t *Tx) allLimits() (err error) {
	if t.limits == nil {
		t.limits, err = sqldb.Collect(t.Ask(selectLimits), "list limits", scanLimit)
		t.limits = append([]registry.Limit{}, t.limits...)
	}
	return err
}

// anyLimits reports whether there are limits. It is for transactions that may not have called promote.
func (t *Tx) anyLimits() (is bool, err error) {
	if t.promoted {
		return t.limited, nil
	}
	if err = t.Get(`SELECT EXISTS (SELECT 1 FROM work_limit)`, nil, &is); err != nil {
		return false, fmt.Errorf("look for limits: %w", err)
	}
	t.limited = is
	return is, nil
}

// room says how many more items of a stage the limits let start. The zero value is no limit.
type room struct {
	stage   registry.Stage
	most    int            // of the stage; 0: any number
	runs    int            // at the stage
	mostOf  map[string]int // by collection; without an entry: any number
	runsOf  map[string]int // of the collections with a limit, at all stages
	weights map[string]int // by collection; without an entry: 1
}

// roomAt counts what runs of a stage, and of the collections with a limit.
func roomAt(stage registry.Stage, limits []registry.Limit, numbers func(query string, args ...any) (map[string]int64, error)) (r room, err error) {
	r = roomOf(stage, limits)
	if r.most > 0 {
		n, err := numbers(`SELECT stage, COUNT(*) FROM work_item WHERE stage = $1 AND status = 'running' GROUP BY stage`, stage)
		if err != nil {
			return r, fmt.Errorf("count what runs at %s: %w", stage, err)
		}
		r.runs = int(n[string(stage)])
	}
	if len(r.mostOf) > 0 {
		if r.runsOf, err = limitedRuns(numbers); err != nil {
			return r, err
		}
	}
	return r, nil
}

// roomOf returns the room of a stage as if nothing ran.
func roomOf(stage registry.Stage, limits []registry.Limit) room {
	r := room{stage: stage, mostOf: map[string]int{}, runsOf: map[string]int{}, weights: map[string]int{}}
	for _, l := range limits {
		switch {
		case l.Scope == registry.HoldStage && l.Key == string(stage):
			r.most = l.AtOnce()
		case l.Scope == registry.HoldCollection && l.Most > 0:
			r.mostOf[l.Key] = l.Most
		}
		if l.Weight > 1 {
			r.weights[l.Key] = l.Weight
		}
	}
	return r
}

// limitedRuns counts what runs of each collection with a limit, at all stages.
func limitedRuns(numbers func(query string, args ...any) (map[string]int64, error)) (map[string]int, error) {
	n, err := numbers(`SELECT i.collection, COUNT(*) FROM ` + runningItems + ` AND i.collection IN
		(SELECT m.key FROM work_limit m WHERE m.scope = 'collection' AND m.most > 0) GROUP BY i.collection`)
	if err != nil {
		return nil, fmt.Errorf("count what runs of collections with a limit: %w", err)
	}
	runs := make(map[string]int, len(n))
	for collection, n := range n {
		runs[collection] = int(n)
	}
	return runs, nil
}

// KeptByLimits returns how many of a stage's ready items its limits keep from starting: that of the
// stage, of which so many run, and those of collections.
type KeptByLimits func(stage registry.Stage, runs int64, ready map[string]int64) int64

// KeptByLimits reads the limits and what runs of collections with a limit.
func (e *Engine) KeptByLimits(ctx context.Context, limits []registry.Limit) (KeptByLimits, error) {
	var runs map[string]int
	if slices.ContainsFunc(limits, func(l registry.Limit) bool { return l.Scope == registry.HoldCollection && l.Most > 0 }) {
		var err error
		runs, err = limitedRuns(func(query string, args ...any) (map[string]int64, error) {
			return sqldb.Numbers(e.db.Read.Ask(ctx, query, args...))
		})
		if err != nil {
			return nil, err
		}
	}
	return func(stage registry.Stage, runsHere int64, ready map[string]int64) (kept int64) {
		r := roomOf(stage, limits)
		r.runs, r.runsOf = int(runsHere), runs
		var all, start int64
		for collection, n := range ready {
			all += n
			start += min(n, int64(r.of(collection)))
		}
		if r.most > 0 {
			start = min(start, max(0, int64(r.most-r.runs)))
		}
		return all - start
	}, nil
}

// runningItems are the rows i of the items that run. Few attempts are live, and these are indexed.
const runningItems = `attempt a JOIN work_item i ON i.id = a.item_id AND i.attempt = a.n WHERE a.finished_at IS NULL`

// of returns how many more items of a collection may start.
func (r room) of(collection string) int {
	left := math.MaxInt
	if r.most > 0 {
		left = r.most - r.runs
	}
	if most, ok := r.mostOf[collection]; ok {
		left = min(left, most-r.runsOf[collection])
	}
	return max(0, left)
}

// full reports whether no item of the stage may start.
func (r room) full() bool { return r.most > 0 && r.runs >= r.most }

// take counts an item that is about to start.
func (r *room) take(collection string) {
	if r.most > 0 {
		r.runs++
	}
	if _, ok := r.mostOf[collection]; ok {
		r.runsOf[collection]++
	}
}

// fullCollections lists the collections of which no item may start.
func (r room) fullCollections() (out []string) {
	for collection, most := range r.mostOf {
		if r.runsOf[collection] >= most {
			out = append(out, collection)
		}
	}
	slices.Sort(out)
	return out
}

// weight returns how many items of a collection start in a row.
func (r room) weight(collection string) int { return max(1, r.weights[collection]) }

// statement says which limit keeps an item back; ok is false if none does.
func (r room) statement(collection string) (s registry.Statement, ok bool) {
	switch most, ok := r.mostOf[collection]; {
	case r.full():
		return registry.Statement{Says: registry.SaysStageLimit, Stage: r.stage, N: int64(r.most)}, true
	case ok && r.runsOf[collection] >= most:
		return registry.Statement{Says: registry.SaysCollectionLimit, Collection: collection, N: int64(most)}, true
	}
	return s, false
}

// WhyLimited adds to the explanation of a queued item that a limit keeps it back.
func (e *Engine) WhyLimited(ctx context.Context, it registry.WorkItem, w *registry.Why) error {
	limits, err := e.Limits(ctx)
	if err != nil || len(limits) == 0 {
		return err
	}
	r, err := roomAt(it.Stage, limits, func(query string, args ...any) (map[string]int64, error) {
		return sqldb.Numbers(e.db.Read.Ask(ctx, query, args...))
	})
	if err != nil {
		return err
	}
	if s, ok := r.statement(it.Collection); ok {
		w.Reason, w.Because = registry.ReasonLimit, append([]registry.Statement{s}, w.Because...)
		w.Helps = []registry.Statement{{Says: registry.SaysLimitFreed}}
	}
	return nil
}

// limitAgain is when a worker with a message asks again after a limit kept its item back, unless one
// of its slots becomes free earlier.
const limitAgain = 2 * time.Second

// fullLane is an SQL condition: a limit keeps all items of lane l from starting.
const fullLane = `(EXISTS (SELECT 1 FROM work_limit) AND (
	EXISTS (SELECT 1 FROM work_limit m WHERE m.scope = 'stage' AND m.key = l.stage AND (m.most > 0 OR m.announced > 0)
		AND CASE WHEN m.most > 0 THEN m.most ELSE m.announced END <= (SELECT COUNT(*) FROM work_item r WHERE r.stage = l.stage AND r.status = 'running'))
	OR EXISTS (SELECT 1 FROM work_limit m WHERE m.scope = 'collection' AND m.key = l.collection AND m.most > 0
		AND m.most <= (SELECT COUNT(*) FROM ` + runningItems + ` AND i.collection = l.collection))))`

// keptByLimit reports whether a limit keeps an item from starting now. It is for items that start
// out of turn.
func (t *Tx) keptByLimit(it registry.WorkItem) (bool, error) {
	is, err := t.anyLimits()
	if err != nil || !is {
		return false, err
	}
	if err := t.allLimits(); err != nil {
		return false, err
	}
	r, err := roomAt(it.Stage, t.limits, t.Numbers)
	return r.of(it.Collection) == 0, err
}

// turnTaken records that n items of a lane with a weight started. done reports whether the lane's turn
// is over.
func (t *Tx) turnTaken(l Lane, n, weight int) (done bool, err error) {
	var taken int
	err = t.Get(`SELECT taken FROM lane WHERE stage = $1 AND collection = $2`, []any{l.stage, l.collection}, &taken)
	if errors.Is(err, sql.ErrNoRows) {
		return true, nil
	}
	if err == nil {
		taken += n
		err = t.Do(`UPDATE lane SET taken = $3 WHERE stage = $1 AND collection = $2`, l.stage, l.collection, taken%weight)
	}
	if err != nil {
		return false, fmt.Errorf("record the turn of %s at %s: %w", l.collection, l.stage, err)
	}
	return taken >= weight, nil
}
