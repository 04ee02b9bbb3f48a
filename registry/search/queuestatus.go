package search

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// QueueStatus implements registry.Queue. It reads one index entry for each waiting or running item,
// and at most registry.MostFailedCounted for the failed items of each stage. While single items or
// batches are held, it reads the rows of waiting items.
func (s *Search) QueueStatus(ctx context.Context) (registry.QueueStatus, error) {
	q, err := s.queueStatus(ctx)
	if err != nil {
		return q, fmt.Errorf("add up the queue: %w", err)
	}
	return q, nil
}

func (s *Search) queueStatus(ctx context.Context) (q registry.QueueStatus, err error) {
	if q.Accepting, err = s.work.Accepting(ctx); err != nil {
		return q, err
	}
	restored, err := s.work.Restored(ctx)
	if err != nil {
		return q, err
	}
	if restored.Open() {
		q.Restored = &restored
	}
	paused, holds, err := s.paused(ctx)
	if err != nil {
		return q, err
	}
	q.Paused, q.Holds = paused, holds
	usual, err := s.serviceTimes(ctx)
	if err != nil {
		return q, err
	}
	if q.Drain, err = s.work.Drained(ctx, usual); err != nil {
		return q, err
	}
	if err := s.db.Read.QueryRowContext(ctx, `SELECT COUNT(*) FROM stored_file WHERE damaged_at IS NOT NULL`).Scan(&q.Damaged); err != nil {
		return q, err
	}
	err = s.db.Read.QueryRowContext(ctx, `SELECT s.value FROM setting s JOIN work_item i ON i.id = s.value
		WHERE s.name = 'sweep' AND i.status = 'failed'`).Scan(&q.Strays)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return q, err
	}
	if q.Failing, err = s.out.AllSubscriptions(ctx, `WHERE failing_since IS NOT NULL AND paused_at IS NULL ORDER BY name`); err != nil {
		return q, err
	}
	if q.OneCopy, err = s.oneCopy(ctx); err != nil {
		return q, err
	}
	if q.Deliveries, err = s.out.OpenDeliveries(ctx); err != nil {
		return q, err
	}
	if err := s.addLoops(ctx, &q); err != nil {
		return q, err
	}
	functions, err := s.db.Column(ctx, `SELECT name FROM function ORDER BY name`)
	if err != nil {
		return q, fmt.Errorf("list functions: %w", err)
	}
	namespaces, err := s.db.Column(ctx, `SELECT name FROM namespace ORDER BY name`)
	if err != nil {
		return q, fmt.Errorf("list namespaces: %w", err)
	}
	for _, stage := range registry.Stages() {
		q.Stages = append(q.Stages, registry.StageQueue{Stage: stage})
	}
	for _, name := range functions {
		q.Stages = append(q.Stages, registry.StageQueue{Stage: registry.Run.Of(name)})
	}
	for _, name := range namespaces {
		q.Stages = append(q.Stages, registry.StageQueue{Stage: registry.ProcessStep.Of(name)})
	}
	limits, err := s.work.Limits(ctx)
	if err != nil {
		return q, err
	}
	for _, l := range limits {
		if l.Scope == registry.HoldStage {
			stageOf(&q, registry.Stage(l.Key)).Limit = l.AtOnce()
		}
	}
	ready, err := s.addWaiting(ctx, &q)
	if err != nil {
		return q, err
	}
	if err := s.addRunning(ctx, &q); err != nil {
		return q, err
	}
	if err := s.addAtLimit(ctx, &q, limits, ready); err != nil {
		return q, err
	}
	if err := s.addFailed(ctx, &q); err != nil {
		return q, err
	}
	if err := s.addOutstanding(ctx, &q); err != nil {
		return q, err
	}
	for stage, seconds := range usual {
		stageOf(&q, stage).ServiceSeconds = seconds
	}
	f, err := s.work.Fleet(ctx)
	if err != nil {
		return q, err
	}
	for i := range q.Stages {
		slots := f.Of(q.Stages[i].Stage)
		q.Stages[i].Capacity, q.Stages[i].Free, q.Stages[i].Workers = slots.Capacity, slots.Free, slots.Workers
	}
	return q, nil
}

// addLoops adds how far the relay and the sweep are.
func (s *Search) addLoops(ctx context.Context, q *registry.QueueStatus) error {
	var due, swept sql.NullInt64
	now := s.db.Now()
	err := s.db.Read.QueryRowContext(ctx, `SELECT (SELECT MIN(nudge_at) FROM work_item WHERE nudge_at <= $1), (SELECT at FROM pulse WHERE name = 'sweep')`,
		sqldb.Micros(now)).Scan(&due, &swept)
	if err != nil {
		return fmt.Errorf("look for due items: %w", err)
	}
	q.OldestDue, q.SweptAt = sqldb.Optional(due), sqldb.Optional(swept)
	return nil
}

// serviceTimes returns the mean times of steps in seconds, by stage.
func (s *Search) serviceTimes(ctx context.Context) (map[registry.Stage]float64, error) {
	times := map[registry.Stage]float64{}
	err := sqldb.Each(s.db.Read.Ask(ctx, `SELECT stage, seconds / steps FROM stage_time WHERE steps > 0`), "read mean times", func(row sqldb.Scanner) error {
		var stage registry.Stage
		var mean float64
		err := row.Scan(&stage, &mean)
		times[stage] = mean
		return err
	})
	return times, err
}

// paused returns the hold on everything, or else the hold on all deposits, or nil; and the number
// of all holds.
func (s *Search) paused(ctx context.Context) (*registry.Hold, int, error) {
	var n int
	if err := s.db.Read.QueryRowContext(ctx, `SELECT COUNT(*) FROM hold`).Scan(&n); err != nil {
		return nil, 0, err
	}
	holds, err := sqldb.Collect(s.db.Read.Ask(ctx, work.SelectHold+`WHERE scope IN ('all', 'ingest') ORDER BY scope`), "", work.ScanHold)
	if err != nil || len(holds) == 0 {
		return nil, n, err
	}
	return &holds[0], n, nil
}

// stageOf returns the entry of a stage. A stage of an older route gets an entry that is discarded.
func stageOf(q *registry.QueueStatus, stage registry.Stage) *registry.StageQueue {
	i := slices.IndexFunc(q.Stages, func(s registry.StageQueue) bool { return s.Stage == stage })
	if i < 0 {
		return &registry.StageQueue{}
	}
	return &q.Stages[i]
}

// heldSingly is an SQL expression: 1 for rows i that a hold on a batch or item covers. Other scopes
// cover whole groups of rows, so registry.Hold.Covers decides once for each group.
const heldSingly = `CASE WHEN i.id IN (SELECT key FROM hold WHERE scope IN ('item', 'batch'))
	OR i.parent_id IN (SELECT key FROM hold WHERE scope = 'batch') THEN 1 ELSE 0 END`

// sharedHolds returns the holds that cover whole groups of rows.
func (s *Search) sharedHolds(ctx context.Context) ([]registry.Hold, error) {
	return sqldb.Collect(s.db.Read.Ask(ctx, work.SelectHold+`WHERE scope IN ('all', 'ingest', 'stage', 'collection', 'volume')`), "look up holds", work.ScanHold)
}

// HoldScopes returns the scopes of the present holds.
func (s *Search) HoldScopes(ctx context.Context) (scopes map[registry.HoldScope]bool, err error) {
	scopes = map[registry.HoldScope]bool{}
	err = sqldb.Each(s.db.Read.Ask(ctx, `SELECT DISTINCT scope FROM hold`), "look up holds", func(row sqldb.Scanner) error {
		var scope registry.HoldScope
		if err := row.Scan(&scope); err != nil {
			return err
		}
		scopes[scope] = true
		return nil
	})
	return scopes, err
}

// What besides holds keeps pending rows i from starting, by readiness. Each count can be read from
// an index. An item that became due counts as ready although no claim has looked at it yet. Where
// the index has another order than the groups, the stage is an expression, so that SQLite does not
// choose a larger index for its order.
var waitingByReadiness = []struct {
	readiness, waits, stage string
	reason                  registry.Reason
}{
	{"i.ready = 1", work.LockedOut, "i.stage", registry.ReasonLocked},
	{"i.status = 'pending' AND i.ready = 0 AND i.run_at >= 0", "i.run_at > $1", "i.stage || ''", registry.ReasonNotDue},
	{"i.ready IN (2, 3)", "1 = 1", "i.stage", registry.ReasonBlocked},
}

// waitingQuery counts the pending rows of a readiness, by what shared holds cover and by whether
// they are held singly. It omits columns that no present hold needs.
func waitingQuery(readiness, waits, stage string, scopes map[registry.HoldScope]bool) string {
	volume, others, apart, group := `''`, `''`, `0`, stage+`, i.collection`
	if scopes[registry.HoldVolume] {
		volume, others = `i.volume`, `i.other_storages`
		group += `, 3, 4`
	}
	if scopes[registry.HoldItem] || scopes[registry.HoldBatch] {
		apart = heldSingly
		group += `, 5`
	}
	return fmt.Sprintf(`SELECT %[6]s, i.collection, %[1]s, %[7]s, %[2]s, COUNT(*), SUM(CASE WHEN %[3]s THEN 1 ELSE 0 END),
			COALESCE(MIN(CASE WHEN %[3]s THEN NULL ELSE i.run_at END), 0)
		FROM work_item i WHERE %[4]s GROUP BY %[5]s`, volume, apart, waits, readiness, group, stage, others)
}

// readyItems counts ready items by stage and collection.
type readyItems map[registry.Stage]map[string]int64

// addWaiting counts each waiting item once: as held, as waiting for something else, or as ready. It notes
// which stages are held as a whole.
func (s *Search) addWaiting(ctx context.Context, q *registry.QueueStatus) (readyItems, error) {
	holds, err := s.sharedHolds(ctx)
	if err != nil {
		return nil, err
	}
	for i := range q.Stages {
		q.Stages[i].Paused = slices.ContainsFunc(holds, func(h registry.Hold) bool { return h.CoversStage(q.Stages[i].Stage) })
	}
	scopes, err := s.HoldScopes(ctx)
	if err != nil {
		return nil, err
	}
	ready := readyItems{}
	for _, r := range waitingByReadiness {
		query := waitingQuery(r.readiness, r.waits, r.stage, scopes)
		var args []any
		if strings.Contains(query, "$1") {
			args = append(args, sqldb.Micros(s.db.Now()))
		}
		if err := s.addGroups(ctx, q, ready, holds, r.reason, query, args...); err != nil {
			return nil, err
		}
	}
	return ready, s.addRoomless(ctx, q)
}

// addAtLimit counts the ready items that limits keep from starting.
func (s *Search) addAtLimit(ctx context.Context, q *registry.QueueStatus, limits []registry.Limit, ready readyItems) error {
	if len(limits) == 0 {
		return nil
	}
	kept, err := s.work.KeptByLimits(ctx, limits)
	if err != nil {
		return err
	}
	for i := range q.Stages {
		line := &q.Stages[i]
		line.AtLimit = kept(line.Stage, line.Running, ready[line.Stage])
	}
	return nil
}

// addRoomless tells the items that wait for room from those that wait for another time.
func (s *Search) addRoomless(ctx context.Context, q *registry.QueueStatus) error {
	return s.addByStage(ctx, q, `SELECT i.stage, COUNT(*) FROM work_item i
		WHERE i.status = 'pending' AND i.wait_reason = 'no-space' AND i.stage IN `+sqldb.Names(registry.Stages())+` GROUP BY i.stage`, nil,
		func(line *registry.StageQueue, n int64) {
			n = min(n, line.WaitsFor[registry.ReasonNotDue]) // others are held, or due again
			if n == 0 {
				return
			}
			line.WaitsFor[registry.ReasonNoSpace] = n
			if line.WaitsFor[registry.ReasonNotDue] -= n; line.WaitsFor[registry.ReasonNotDue] == 0 {
				delete(line.WaitsFor, registry.ReasonNotDue)
			}
		})
}

// failedTogether is how many stages one statement counts: a database compiles only so many parts.
const failedTogether = 50

// addFailed counts failed items. Each stage's count is bounded, so that it costs the same however
// many there are.
func (s *Search) addFailed(ctx context.Context, q *registry.QueueStatus) error {
	for stages := range slices.Chunk(q.Stages, failedTogether) {
		counts, args := make([]string, len(stages)), []any{sqldb.Tenant}
		for i, line := range stages {
			args = append(args, line.Stage)
			counts[i] = fmt.Sprintf(`SELECT CAST($%[1]d AS TEXT), COUNT(*) FROM (SELECT 1 FROM work_item
				WHERE stage = CAST($%[1]d AS TEXT) AND status = 'failed' AND tenant = $1 LIMIT %[2]d) c`, i+2, registry.MostFailedCounted)
		}
		err := s.addByStage(ctx, q, strings.Join(counts, " UNION ALL "), args, func(line *registry.StageQueue, n int64) { line.Failed = n })
		if err != nil {
			return err
		}
	}
	return nil
}

// addGroups adds up the rows of a waitingQuery, and those that are ready in ready, too.
func (s *Search) addGroups(ctx context.Context, q *registry.QueueStatus, ready readyItems, holds []registry.Hold, reason registry.Reason, query string, args ...any) (err error) {
	return sqldb.Each(s.db.Read.Ask(ctx, query, args...), "", func(row sqldb.Scanner) error {
		group := registry.WorkItem{Status: registry.Pending}
		var apart, n, waits, oldest int64
		var first, others string
		if err := row.Scan(&group.Stage, &group.Collection, &first, &others, &apart, &n, &waits, &oldest); err != nil {
			return err
		}
		group.Storages = append([]string{first}, sqldb.WordsOf[string](others)...)
		line := stageOf(q, group.Stage)
		if apart == 1 || slices.ContainsFunc(holds, func(h registry.Hold) bool { return h.Covers(group) }) {
			line.Held += n
			return nil
		}
		if line.Waiting += waits; waits > 0 {
			if line.WaitsFor == nil {
				line.WaitsFor = map[registry.Reason]int64{}
			}
			line.WaitsFor[reason] += waits
		}
		line.Ready += n - waits
		if ready[group.Stage] == nil {
			ready[group.Stage] = map[string]int64{}
		}
		ready[group.Stage][group.Collection] += n - waits
		if at := sqldb.FromMicros(oldest); n > waits && (line.OldestReady == nil || at.Before(*line.OldestReady)) {
			line.OldestReady = &at
		}
		return nil
	})
}

// addOutstanding counts the messages on their way (R19), as the relay does.
func (s *Search) addOutstanding(ctx context.Context, q *registry.QueueStatus) error {
	return s.addByStage(ctx, q, `SELECT stage, COUNT(*) FROM work_item`+s.indexedBy("work_item_offered")+` WHERE `+work.MessageSent+` GROUP BY stage`, []any{sqldb.Micros(s.db.Now())},
		func(line *registry.StageQueue, n int64) { line.Rung = n })
}

// addRunning counts running items place by place: for any of several conditions, SQLite would read
// all items.
func (s *Search) addRunning(ctx context.Context, q *registry.QueueStatus) error {
	var counts []string
	for _, p := range work.Places() {
		if p.Status == registry.Running {
			counts = append(counts, `SELECT i.stage, COUNT(*) FROM `+s.rowsAt(reach{}, p.Cond())+` WHERE i.tenant = $1 AND `+p.Cond()+` GROUP BY i.stage`)
		}
	}
	return s.addByStage(ctx, q, strings.Join(counts, " UNION ALL "), []any{sqldb.Tenant},
		func(line *registry.StageQueue, n int64) {
			line.Running = n
			q.Running += n
		})
}

// addByStage passes each stage's count of a query to note.
func (s *Search) addByStage(ctx context.Context, q *registry.QueueStatus, query string, args []any, note func(*registry.StageQueue, int64)) (err error) {
	return sqldb.Each(s.db.Read.Ask(ctx, query, args...), "", func(row sqldb.Scanner) error {
		var stage registry.Stage
		var n int64
		if err := row.Scan(&stage, &n); err != nil {
			return err
		}
		note(stageOf(q, stage), n)
		return nil
	})
}

// oneCopy counts the collections whose objects are kept in only one storage. Profiles may be long,
// so it reads only that part of them.
func (s *Search) oneCopy(ctx context.Context) (n int64, err error) {
	texts, err := s.db.Column(ctx, `SELECT `+s.db.Dialect.Members("profile", "storages")+` FROM collection`)
	if err != nil {
		return 0, fmt.Errorf("read the storages of collections: %w", err)
	}
	for _, text := range texts {
		var p registry.Profile
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			return 0, fmt.Errorf("decode the storages of a collection: %w", err)
		}
		if len(p.StorageNames()) < 2 {
			n++
		}
	}
	return n, nil
}
