package work

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// fleet lists the living workers and the holds on workers.
type fleet struct {
	workers []registry.WorkerInfo
	holds   []registry.Hold // oldest first
}

// stageSlots describes the part of a fleet that serves one stage.
type stageSlots struct {
	Capacity, Free int             // of workers that are neither held nor stopping
	Held           []registry.Hold // one for each held worker
	Stopping       int
	Workers        int // that are not stopping
}

// Fleet reads the living workers and the holds on workers.
func (e *Engine) Fleet(ctx context.Context) (f fleet, err error) {
	if f.workers, err = e.Workers(ctx); err != nil {
		return f, err
	}
	f.holds, err = sqldb.Collect(e.db.Read.Ask(ctx, SelectHold+`WHERE scope = 'worker' ORDER BY created_at, key`), "look up holds on workers", ScanHold)
	return f, err
}

func (f fleet) Of(stage registry.Stage) (c stageSlots) {
	for _, w := range f.workers {
		if w.Capacity[stage] == 0 {
			continue
		}
		hold := slices.IndexFunc(f.holds, func(h registry.Hold) bool { return h.CoversWorker(w.ID) })
		switch {
		case w.Draining:
			c.Stopping++
		case hold >= 0:
			c.Workers++
			c.Held = append(c.Held, f.holds[hold])
		default:
			c.Workers++
			c.Capacity += w.Capacity[stage]
			c.Free += max(0, min(w.Free[stage], w.Capacity[stage]-w.Running[stage]))
		}
	}
	return c
}

// ForgetWorkers forgets the workers that a token announced.
func (t *Tx) ForgetWorkers(token string) error { return t.forgetWorkers(`token = $1`, token) }

func (t *Tx) forgetWorkers(condition string, args ...any) error {
	err := t.Do(`DELETE FROM worker_stage WHERE worker_id IN (SELECT id FROM worker WHERE `+condition+`)`, args...)
	if err == nil {
		err = t.Do(`DELETE FROM worker WHERE `+condition, args...)
	}
	if err != nil {
		return fmt.Errorf("forget workers: %w", err)
	}
	return nil
}

// Workers implements registry.AttemptReader.
func (e *Engine) Workers(ctx context.Context) (out []registry.WorkerInfo, err error) {
	if out, err = e.alive(ctx); err != nil || len(out) == 0 {
		return out, err
	}
	at := make(map[string]int, len(out))
	for i, w := range out {
		at[w.ID] = i
	}
	err = sqldb.Each(e.db.Read.Ask(ctx, `SELECT worker, stage, COUNT(*) FROM attempt WHERE finished_at IS NULL GROUP BY worker, stage`), "count what workers run", func(row sqldb.Scanner) error {
		var worker string
		var stage registry.Stage
		var n int
		if err := row.Scan(&worker, &stage, &n); err != nil {
			return err
		}
		if i, ok := at[worker]; ok {
			if out[i].Running == nil {
				out[i].Running = map[registry.Stage]int{}
			}
			out[i].Running[stage] = n
		}
		return nil
	})
	return out, err
}

// alive lists the living workers as they announced themselves.
func (e *Engine) alive(ctx context.Context) ([]registry.WorkerInfo, error) {
	return sqldb.Collect(e.db.Read.Ask(ctx, `SELECT id, version, slots, draining, seen_at, since,
		COALESCE((SELECT MAX(s.lease) FROM worker_stage s WHERE s.worker_id = worker.id), 0) FROM worker WHERE seen_at > $1
		ORDER BY id`, sqldb.Micros(e.db.Now().Add(-workerAlive))), "list workers", func(row sqldb.Scanner) (registry.WorkerInfo, error) {
		var w registry.WorkerInfo
		var slots string
		var at, since, lease int64
		if err := row.Scan(&w.ID, &w.Version, &slots, &w.Draining, &at, &since, &lease); err != nil {
			return w, err
		}
		if err := json.Unmarshal([]byte(slots), &w); err != nil {
			return w, fmt.Errorf("decode worker %s: %w", w.ID, err)
		}
		w.SeenAt, w.LeaseSeconds = sqldb.FromMicros(at), lease/1_000_000
		if since > 0 {
			w.Since = sqldb.FromMicros(since)
		}
		return w, nil
	})
}
