// Package throughput counts what was preserved and failed over time.
//
// Nothing is written when an item moves on. Once a minute, one of the processes reads the events
// since the last time, and adds them to the rows of their minutes and hours. The cursor of the feed
// moves in the same transaction, so each event is counted once, however many processes count and
// whatever their clocks say.
package throughput

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast/holdfast/metrics"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// Lengths of the intervals that are kept, in seconds.
const (
	minute = 60
	hour   = 3600
)

// micros converts seconds to the microseconds of times in the database.
const micros = 1_000_000

// How long rows are kept.
const (
	keepMinutes = 48 * time.Hour
	keepHours   = 366 * 24 * time.Hour
	keepStages  = 2 * time.Hour
)

// Bounds of one transaction: a long outage is counted in several (R25).
const (
	window      = 10_000  // events that one statement reads
	mostEvents  = 200_000 // events in a transaction
	mostMinutes = 200     // minutes in a transaction, with up to three windows more
)

// aheadAtMost is how far the cursor may be ahead of the clock: if the clock was set back by more,
// counting goes on from its present time.
const aheadAtMost = time.Hour

// Meter counts and reads throughput.
type Meter struct {
	db   *sqldb.DB
	work *work.Engine
}

// New returns the Meter over an engine.
func New(db *sqldb.DB, engine *work.Engine) *Meter { return &Meter{db, engine} }

// cursor is how far throughput is counted.
type cursor struct{ seq, to int64 }

// due returns the end of the last whole minute, and whether that is not counted yet.
func (c cursor) due(now int64) (end int64, due bool) {
	end = now - now%(minute*micros)
	return end, c.to < end || c.to > now+aheadAtMost.Microseconds()
}

// counts is what happened in a minute.
type counts struct{ preserved, bytes, failed int64 }

// stageMinute names the steps of a stage that were done in a minute.
type stageMinute struct {
	at    int64
	stage registry.Stage
}

// stageTime is how many steps of a stage were done, and how many seconds their last attempts took.
type stageTime struct{ steps, seconds float64 }

// meanOver is over about how many steps the mean time of a stage is taken: enough to be steady, and
// few enough to follow when objects become larger.
const meanOver = 200

// tally is what is added in one transaction.
type tally struct {
	from, to         cursor // to.to is decided by the transaction's clock
	whole            bool   // everything up to now was read
	minutes          map[int64]*counts
	stages           map[stageMinute]int64
	times            map[registry.Stage]stageTime
	waiting, running int64
}

// NoteThroughput implements registry.ThroughputNoting.
func (m *Meter) NoteThroughput(ctx context.Context) error {
	defer metrics.Scan.Since(time.Now(), "throughput")
	for {
		more, err := m.note(ctx)
		if err != nil {
			return fmt.Errorf("count throughput: %w", err)
		}
		if !more {
			return nil
		}
	}
}

// note counts in one transaction. more says that there is more to count.
func (m *Meter) note(ctx context.Context) (more bool, err error) {
	var c cursor
	if err := m.db.Read.QueryRowContext(ctx, `SELECT feed_seq, noted_to FROM throughput_cursor WHERE id = 1`).Scan(&c.seq, &c.to); err != nil {
		return false, fmt.Errorf("read the cursor: %w", err)
	}
	if _, due := c.due(sqldb.Micros(m.db.Now())); !due {
		return false, nil
	}
	t, err := m.read(ctx, c)
	if err != nil {
		return false, err
	}
	won := false
	err = m.work.Write(ctx, func(tx *work.Tx) (err error) {
		won, err = t.write(tx)
		return err
	})
	return won && !t.whole, err
}

// read counts the events after a cursor, outside of any transaction.
func (m *Meter) read(ctx context.Context, c cursor) (tally, error) {
	t := tally{from: c, to: c, minutes: map[int64]*counts{}, stages: map[stageMinute]int64{}, times: map[registry.Stage]stageTime{}}
	end, err := m.work.FeedEnd(ctx)
	if err != nil {
		return t, err
	}
	for t.to.seq < end && t.to.seq-c.seq < mostEvents && len(t.minutes)+len(t.stages) < mostMinutes {
		next := min(end, t.to.seq+window)
		if err := m.readJobs(ctx, &t, next); err != nil {
			return t, err
		}
		if err := m.readSteps(ctx, &t, next); err != nil {
			return t, err
		}
		t.to.seq = next
	}
	if t.whole = t.to.seq == end; !t.whole {
		return t, nil
	}
	byStatus, err := sqldb.Numbers(m.db.Read.Ask(ctx, `SELECT i.status, COUNT(*) FROM work_item i
		WHERE i.tenant = $1 AND i.status IN ('pending', 'running') AND `+work.InStages(jobStages())+` GROUP BY i.status`, sqldb.Tenant))
	if err != nil {
		return t, fmt.Errorf("count waiting jobs: %w", err)
	}
	t.waiting, t.running = byStatus[string(registry.Pending)], byStatus[string(registry.Running)]
	return t, nil
}

// jobStages are the stages of jobs.
func jobStages() []registry.Stage {
	return slices.DeleteFunc(registry.Stages(), func(s registry.Stage) bool {
		action, _ := registry.ActionOf(s)
		return action != registry.Ingest
	})
}

// readJobs counts what was preserved and failed in the events up to a number.
func (m *Meter) readJobs(ctx context.Context, t *tally, next int64) error {
	return sqldb.Each(m.db.Read.Ask(ctx, `SELECT e.at / 60000000, SUM(CASE WHEN e.type = 'recorded' THEN 1 ELSE 0 END), COALESCE(`+sqldb.Sum("v.size_bytes")+`, 0), COUNT(i.id)
		FROM event e
		LEFT JOIN object_version v ON v.item_id = e.item_id AND e.type = 'recorded' AND v.status = 'recorded'
		LEFT JOIN work_item i ON i.id = e.item_id AND e.type IN ('fail', 'reject') AND i.action = 'ingest'
		WHERE e.feed_seq > $1 AND e.feed_seq <= $2 AND e.type IN ('recorded', 'fail', 'reject') GROUP BY 1`, t.to.seq, next), "count jobs",
		func(row sqldb.Scanner) error {
			var at, preserved, failed int64
			var bytes float64
			if err := row.Scan(&at, &preserved, &bytes, &failed); err != nil {
				return err
			}
			c := t.minutes[at]
			if c == nil {
				c = &counts{}
				t.minutes[at] = c
			}
			c.preserved += preserved
			c.bytes += sqldb.Whole(bytes)
			c.failed += failed
			return nil
		})
}

// readSteps counts the steps that were done in the events up to a number, unless they are too old to
// be kept. A transition's data begin with the stage that it leaves (work.Moved); reading the stage
// from the text's beginning costs less than parsing each.
func (m *Meter) readSteps(ctx context.Context, t *tally, next int64) error {
	const begin, most = `{"from":"`, 64
	kept := sqldb.Micros(m.db.Now().Add(-keepStages))
	return sqldb.Each(m.db.Read.Ask(ctx, `SELECT e.at / 60000000, substr(e.data, 1, `+fmt.Sprint(most)+`), COUNT(*), COUNT(a.finished_at),
			COALESCE(`+sqldb.Sum("a.finished_at - a.started_at")+`, 0)
		FROM event e LEFT JOIN attempt a ON a.item_id = e.item_id AND a.n = e.attempt
		WHERE e.feed_seq > $1 AND e.feed_seq <= $2 AND e.type IN ('advance', 'complete') AND e.at > $3 GROUP BY 1, 2`, t.to.seq, next, kept), "count steps",
		func(row sqldb.Scanner) error {
			var at, done int64
			var timed, took float64
			var data string
			if err := row.Scan(&at, &data, &done, &timed, &took); err != nil {
				return err
			}
			if stage, ok := strings.CutPrefix(data, begin); ok {
				stage, _, _ = strings.Cut(stage, `"`)
				t.stages[stageMinute{at, registry.Stage(stage)}] += done
				of := t.times[registry.Stage(stage)]
				t.times[registry.Stage(stage)] = stageTime{of.steps + timed, of.seconds + max(0, took/micros)}
			}
			return nil
		})
}

// write adds the tally to the rows, and reports whether it did: if another process was faster, it
// changes nothing.
func (t tally) write(tx *work.Tx) (won bool, err error) {
	end, due := t.from.due(tx.Now)
	if !due {
		return false, nil
	}
	to := t.from.to
	if t.whole {
		to = end
	}
	n, err := tx.Exec(`UPDATE throughput_cursor SET feed_seq = $3, noted_to = $4 WHERE id = 1 AND feed_seq = $1 AND noted_to = $2`,
		t.from.seq, t.from.to, t.to.seq, to)
	if err != nil || n == 0 {
		return false, err
	}
	for at, c := range t.minutes {
		if err := add(tx, min(at*minute*micros, end), *c, sql.NullInt64{}, sql.NullInt64{}); err != nil {
			return false, err
		}
	}
	if t.whole {
		if err := add(tx, end-minute*micros, counts{}, sql.NullInt64{Int64: t.waiting, Valid: true}, sql.NullInt64{Int64: t.running, Valid: true}); err != nil {
			return false, err
		}
	}
	for s, done := range t.stages {
		err := tx.Do(`INSERT INTO throughput_stage (at, stage, done) VALUES ($1, $2, $3)
			ON CONFLICT (at, stage) DO UPDATE SET done = throughput_stage.done + excluded.done`, min(s.at*minute*micros, end), s.stage, done)
		if err != nil {
			return false, fmt.Errorf("add steps: %w", err)
		}
	}
	for stage, of := range t.times {
		if err := of.add(tx, stage); err != nil {
			return false, err
		}
	}
	return true, prune(tx)
}

// add adds to the mean time of a stage. Sums beyond meanOver steps are scaled down, so that earlier
// steps count less and less.
func (of stageTime) add(tx *work.Tx, stage registry.Stage) error {
	if of.steps == 0 {
		return nil
	}
	err := tx.Do(`INSERT INTO stage_time (stage, steps, seconds) VALUES ($1, $2, $3)
		ON CONFLICT (stage) DO UPDATE SET steps = stage_time.steps + excluded.steps, seconds = stage_time.seconds + excluded.seconds`, stage, of.steps, of.seconds)
	if err == nil {
		err = tx.Do(`UPDATE stage_time SET steps = $2, seconds = seconds * ($2 / steps) WHERE stage = $1 AND steps > $2`, stage, float64(meanOver))
	}
	if err != nil {
		return fmt.Errorf("add to the mean time of a stage: %w", err)
	}
	return nil
}

// add adds to the rows of the minute, and of its hour.
func add(tx *work.Tx, at int64, c counts, waiting, running sql.NullInt64) error {
	for _, step := range []int64{minute, hour} {
		err := tx.Do(`INSERT INTO throughput (step, at, preserved, bytes, failed, waiting, running) VALUES ($1, $2, $3, $4, $5, $6, $7)
			ON CONFLICT (step, at) DO UPDATE SET preserved = throughput.preserved + excluded.preserved,
				bytes = throughput.bytes + excluded.bytes, failed = throughput.failed + excluded.failed,
				waiting = CASE WHEN throughput.waiting IS NULL OR excluded.waiting > throughput.waiting THEN excluded.waiting ELSE throughput.waiting END,
				running = CASE WHEN throughput.running IS NULL OR excluded.running > throughput.running THEN excluded.running ELSE throughput.running END`,
			step, at-at%(step*micros), c.preserved, c.bytes, c.failed, waiting, running)
		if err != nil {
			return fmt.Errorf("add to an interval: %w", err)
		}
	}
	return nil
}

// prune deletes what is kept no longer.
func prune(tx *work.Tx) error {
	for step, keep := range map[int64]time.Duration{minute: keepMinutes, hour: keepHours} {
		if err := tx.Do(`DELETE FROM throughput WHERE step = $1 AND at < $2`, step, tx.Now-keep.Microseconds()); err != nil {
			return fmt.Errorf("delete old intervals: %w", err)
		}
	}
	if err := tx.Do(`DELETE FROM throughput_stage WHERE at < $1`, tx.Now-keepStages.Microseconds()); err != nil {
		return fmt.Errorf("delete old steps: %w", err)
	}
	return nil
}

// Throughput implements registry.ThroughputReader.
func (m *Meter) Throughput(ctx context.Context, span registry.ThroughputSpan) (registry.Throughput, error) {
	t, err := m.throughput(ctx, span)
	if err != nil {
		return t, fmt.Errorf("read throughput: %w", err)
	}
	return t, nil
}

func (m *Meter) throughput(ctx context.Context, span registry.ThroughputSpan) (registry.Throughput, error) {
	step, n := span.Intervals()
	if n == 0 {
		return registry.Throughput{}, fmt.Errorf("%w: %.20q is not one of %v", registry.ErrInvalid, span, registry.OneOf(registry.ThroughputSpans()))
	}
	now := m.db.Now().UTC()
	t := registry.Throughput{Span: span, Step: int64(step.Seconds()), To: now.Truncate(step).Add(step), Rows: []registry.ThroughputPoint{}, Stages: []registry.StageThroughput{}}
	t.From = t.To.Add(-time.Duration(n) * step)
	kept := int64(minute)
	if step >= time.Hour {
		kept = hour
	}
	var to int64
	if err := m.db.Read.QueryRowContext(ctx, `SELECT noted_to FROM throughput_cursor WHERE id = 1`).Scan(&to); err != nil {
		return t, fmt.Errorf("read the cursor: %w", err)
	}
	t.NotedTo = sqldb.FromMicros(to)
	size := step.Microseconds()
	rows, err := sqldb.Collect(m.db.Read.Ask(ctx, fmt.Sprintf(`SELECT at / %d, CAST(SUM(preserved) AS BIGINT), %s, CAST(SUM(failed) AS BIGINT), MAX(waiting), MAX(running)
		FROM throughput WHERE step = $1 AND at >= $2 AND at < $3 GROUP BY 1 ORDER BY 1`, size, sqldb.Sum("bytes")), kept, sqldb.Micros(t.From), sqldb.Micros(t.To)),
		"", func(row sqldb.Scanner) (p registry.ThroughputPoint, err error) {
			var at int64
			var bytes float64
			err = row.Scan(&at, &p.Preserved, &bytes, &p.Failed, &p.Waiting, &p.Running)
			p.At, p.Bytes = sqldb.FromMicros(at*size), sqldb.Whole(bytes)
			return p, err
		})
	if err != nil {
		return t, err
	}
	t.Rows = append(t.Rows, rows...)
	return t, m.recent(ctx, &t)
}

// recent adds the steps that were done in the last minutes that are counted.
func (m *Meter) recent(ctx context.Context, t *registry.Throughput) error {
	end := t.NotedTo
	if now := m.db.Now(); end.After(now) || end.Before(now.Add(-registry.ThroughputRecent)) {
		end = now
	}
	done, err := sqldb.Numbers(m.db.Read.Ask(ctx, `SELECT stage, CAST(SUM(done) AS BIGINT) FROM throughput_stage WHERE at >= $1 AND at < $2 GROUP BY stage`,
		sqldb.Micros(end.Add(-registry.ThroughputRecent)), sqldb.Micros(end)))
	if err != nil {
		return err
	}
	for stage, n := range done {
		t.Stages = append(t.Stages, registry.StageThroughput{Stage: registry.Stage(stage), Done: n})
	}
	slices.SortFunc(t.Stages, func(a, b registry.StageThroughput) int { return cmp.Compare(a.Stage, b.Stage) })
	return nil
}
