package work

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast/holdfast/metrics"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// lostBackoff and its cap delay an item whose attempts are lost repeatedly (I11). lossesFree
// consecutive losses are not counted if the attempt had made progress or did not run alone. After
// them the item runs alone and every loss counts. Otherwise a step that always kills its worker
// half-way would run for ever.
const (
	lostBackoff    = time.Minute
	lostBackoffCap = time.Hour
	lossesFree     = 5
)

// Sweep implements registry.Sweeping.
func (e *Engine) Sweep(ctx context.Context, lease time.Duration) ([]registry.Lease, error) {
	defer metrics.Scan.Since(time.Now(), "lost")
	var lost []registry.Lease
	err := e.Write(ctx, func(t *Tx) error {
		lost = nil
		if err := t.withdrawDrained(); err != nil {
			return err
		}
		quiet, err := t.pulse("sweep", lease.Microseconds())
		if err != nil || quiet {
			return err
		}
		lost, err = t.takeAway(`a.lease_until < $1 OR `+stuck, (*Tx).supersede)
		return err
	})
	if err == nil {
		err = e.withdrawLeft(ctx)
	}
	if err == nil {
		err = e.nameCauses(ctx)
	}
	if err != nil {
		return lost, fmt.Errorf("sweep: %w", err)
	}
	return lost, nil
}

// Reclaim forgets all workers and takes away their live attempts, except those of functions and
// processes: programs outside Holdfast serve these, and may be alive. Call it only if no other worker
// can be: `holdfast up` does at start, when it holds the lock on its folder.
func (e *Engine) Reclaim(ctx context.Context) ([]registry.Lease, error) {
	var all []registry.Lease
	for {
		var lost []registry.Lease
		err := e.Write(ctx, func(t *Tx) (err error) {
			if err := t.forgetWorkers(`NOT EXISTS (SELECT 1 FROM worker_stage s WHERE s.worker_id = worker.id AND (` + servesFunctions + `))`); err != nil {
				return err
			}
			if err := t.store.hooks.Reclaimed(t); err != nil {
				return err
			}
			lost, err = t.takeAway(`NOT `+getsNoMessage, nil)
			return err
		})
		if err != nil {
			return all, fmt.Errorf("reclaim leases: %w", err)
		}
		all = append(all, lost...)
		if len(lost) == 0 {
			return all, nil
		}
	}
}

// servesFunctions is an SQL condition: row s of worker_stage is of a program outside Holdfast.
var servesFunctions = func() string {
	var stages []string
	for _, a := range functionActions {
		r, _ := registry.RouteOf(a)
		for _, step := range r.Steps {
			stages = append(stages, `s.stage LIKE '`+string(step.Stage)+`:%'`)
		}
	}
	return strings.Join(stages, " OR ")
}()

// LastSweep returns when a process of this Registry last swept, and how long ago that is by the database's
// clock; zero: none ever did.
func (e *Engine) LastSweep(ctx context.Context) (at time.Time, ago time.Duration, err error) {
	var micros int64
	err = e.db.Read.QueryRowContext(ctx, `SELECT at FROM pulse WHERE name = 'sweep'`).Scan(&micros)
	if errors.Is(err, sql.ErrNoRows) {
		return at, 0, nil
	} else if err != nil {
		return at, 0, fmt.Errorf("look for the last sweep: %w", err)
	}
	at = sqldb.FromMicros(micros)
	return at, e.db.Now().Sub(at), nil
}

// pulse records that the sweep ran, and reports whether it must take nothing away. After a gap of
// more than half a lease, workers may have been unable to renew, too, so they get one more lease
// (R14).
func (t *Tx) pulse(name string, lease int64) (quiet bool, err error) {
	var at, quietUntil int64
	err = t.Get(`SELECT at, quiet_until FROM pulse WHERE name = $1`, []any{name}, &at, &quietUntil)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return false, fmt.Errorf("read pulse: %w", err)
	}
	if gap := t.Now - at; err == nil && (gap > lease/2 || gap < 0) {
		quietUntil = t.Now + lease
	}
	quietUntil = min(quietUntil, t.Now+lease) // a clock that was set back must not prolong it
	err = t.Do(`INSERT INTO pulse (name, at, quiet_until) VALUES ($1, $2, $3)
		ON CONFLICT (name) DO UPDATE SET at = $2, quiet_until = $3`, name, t.Now, quietUntil)
	if err != nil {
		return false, fmt.Errorf("write pulse: %w", err)
	}
	return t.Now < quietUntil, nil
}

type lapsed struct {
	lease    registry.Lease
	worker   string
	max      int
	advanced bool
	stuck    bool // it was renewed but made no progress
	alone    bool // its worker ran nothing else, so only this can have killed it
	losses   int
	started  int64
}

// stuck is an SQL condition: attempt a is renewed at $1 but makes no progress (R29).
const stuck = `(a.lease_until >= $1 AND a.stuck_after > 0 AND a.progress_at + a.stuck_after < $1)`

// takeAway closes as lost those live attempts a that match a condition, at most 500. It calls each,
// unless nil, with their items.
func (t *Tx) takeAway(condition string, each func(*Tx, registry.WorkItem) error) ([]registry.Lease, error) {
	found, err := t.lapsed(`SELECT a.item_id, a.n, a.worker, a.max_attempts, a.advanced = 1, `+stuck+`,
			NOT EXISTS (SELECT 1 FROM attempt o WHERE o.worker = a.worker AND o.finished_at IS NULL AND o.item_id <> a.item_id),
			i.losses, a.started_at
		FROM attempt a JOIN work_item i ON i.id = a.item_id
		WHERE a.finished_at IS NULL AND (`+condition+`) ORDER BY a.lease_until LIMIT 500`, t.Now)
	if err != nil {
		return nil, fmt.Errorf("find lapsed leases: %w", err)
	}
	// Items are locked by ascending id everywhere (R11).
	slices.SortFunc(found, func(a, b lapsed) int { return strings.Compare(a.lease.ItemID, b.lease.ItemID) })
	leases := make([]registry.Lease, 0, len(found))
	for _, l := range found {
		it, err := t.lose(l)
		if err == nil && each != nil {
			err = each(t, it)
		}
		if err != nil {
			return nil, fmt.Errorf("take attempt %d of item %s away: %w", l.lease.N, l.lease.ItemID, err)
		}
		leases = append(leases, l.lease)
	}
	return leases, nil
}

func (t *Tx) lapsed(query string, args ...any) (out []lapsed, err error) {
	return sqldb.Collect(t.Ask(query, args...), "", func(row sqldb.Scanner) (lapsed, error) {
		var l lapsed
		err := row.Scan(&l.lease.ItemID, &l.lease.N, &l.worker, &l.max, &l.advanced, &l.stuck, &l.alone, &l.losses, &l.started)
		return l, err
	})
}

// lose ends one attempt without its worker, and returns the item as it was before. A loss after
// progress, or beside other items, does not count as a try (R13): the machine or another item may
// have caused it. A loss counts if the attempt was stuck while its worker lived, or if there were
// too many in a row.
func (t *Tx) lose(l lapsed) (registry.WorkItem, error) {
	it, err := t.Item(l.lease.ItemID)
	if err != nil {
		return it, err
	}
	c := Change{
		act: registry.ActLose, Stage: it.Stage, Status: registry.Pending, tries: it.Tries, losses: l.losses + 1,
		n: l.lease.N, Actor: ActorRegistry, Note: l.sentence(), code: l.code(),
	}
	if l.stuck || l.alone && !l.advanced || c.losses > lossesFree {
		if c, err = t.charge(it, c, bound(l.max)); err != nil {
			return it, err
		}
	}
	if err := t.Move(it, c); err != nil {
		return it, err
	}
	t.attemptEnded(it, registry.OutcomeLost)
	v, err := json.Marshal(registry.Verdict{Stage: c.Stage, Status: c.Status, Tries: c.tries})
	if err != nil {
		return it, fmt.Errorf("encode verdict: %w", err)
	}
	err = t.Do(`UPDATE attempt SET finished_at = $3, outcome = 'lost', error = $4, response = $5
		WHERE item_id = $1 AND n = $2`, l.lease.ItemID, l.lease.N, t.Now, l.sentence(), string(v))
	return it, err
}

// charge counts a loss as a try. If no try is left, the item fails, or advances if the route says
// that its stage never fails.
func (t *Tx) charge(it registry.WorkItem, c Change, most int) (Change, error) {
	c.tries++
	c.class = registry.SystemFault
	c.delay = lostDelay(c.tries).Microseconds()
	if c.tries < most {
		return c, nil
	}
	route, _ := it.Route()
	if step, ok := route.Step(it.Stage); ok && step.NeverFails {
		return t.advance(it, route, c)
	}
	c.Status = registry.Failed
	c.Note = fmt.Sprintf("%d attempts used up: %s", c.tries, c.Note)
	return c, nil
}

// sentence explains to people how the attempt was lost.
func (l lapsed) sentence() string {
	since := sqldb.FromMicros(l.started).Format(time.RFC3339)
	if l.stuck {
		return fmt.Sprintf("worker %s made no progress; it had held the item since %s", l.worker, since)
	}
	return fmt.Sprintf("worker %s was lost; it had held the item since %s", l.worker, since)
}

// code returns the error code of the loss.
func (l lapsed) code() string {
	if l.stuck {
		return "stuck"
	}
	return "worker-lost"
}

// lostDelay returns how long an item waits after a counted loss. The first ones cost no delay (I4);
// after them the item is suspected of killing its workers (R13).
func lostDelay(tries int) time.Duration {
	const atOnce = 3
	if tries <= atOnce {
		return 0
	}
	d := lostBackoff
	for range tries - atOnce - 1 {
		d = min(2*d, lostBackoffCap)
	}
	return d
}
