package work

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/bounds"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// Renew implements registry.Working.
func (e *Engine) Renew(ctx context.Context, r registry.RenewRequest) (registry.Renewal, error) {
	var out registry.Renewal
	if err := bounds.Check(r); err != nil {
		return out, err
	}
	err := e.queue(ctx, e.renews, func(t *Tx) error {
		out = registry.Renewal{}
		if revoked, err := t.revokedTokens(r.Token); err != nil || len(revoked) > 0 {
			return cmp.Or(err, errRevoked)
		}
		held, err := t.heldWorker(r.Worker.ID)
		if err != nil {
			return err
		}
		out.Held = held
		drain, err := scanDrain(t.Row(selectDrain))
		if err != nil {
			return err
		}
		out.Drain = drain != nil
		if err := t.noteWorker(r, held); err != nil {
			return err
		}
		renewed, err := t.renewAll(r.Beats, r.Lease.Microseconds())
		if err != nil {
			return err
		}
		for _, b := range r.Beats {
			if !renewed[registry.Lease{ItemID: b.Lease.ItemID, N: b.Lease.N}] {
				out.Lost = append(out.Lost, b.Lease)
			} else if err := t.noteBeat(b); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return registry.Renewal{}, fmt.Errorf("renew leases of worker %s: %w", r.Worker.ID, err)
	}
	return out, nil
}

// renewAll extends the leases of attempts, and returns which attempts these were. Attempts with the
// same number share a statement. An attempt with an expired lease lives until the sweep takes it
// away (R15).
func (t *Tx) renewAll(beats []registry.Beat, lease int64) (renewed map[registry.Lease]bool, err error) {
	type alike struct {
		n        int64
		token    string
		advanced bool
	}
	ids := sqldb.IDsByKey[alike]{}
	for _, b := range beats {
		ids.Add(alike{b.Lease.N, b.Lease.Token, b.Advanced}, b.Lease.ItemID)
	}
	renewed = map[registry.Lease]bool{}
	for of, ids := range ids.All() {
		moved, args := ``, []any{t.List(ids), of.n, t.Now + lease, of.token}
		if of.advanced {
			moved, args = `, progress_at = $5, advanced = 1`, append(args, t.Now)
		}
		found, err := t.Strings(`UPDATE attempt AS a SET lease_until = $3`+moved+` WHERE `+t.Among("item_id")+` AND n = $2 AND `+live+`
			AND ($4 = '' OR token IS NULL OR token = $4) AND NOT `+t.store.hooks.RevokedToken+` RETURNING item_id`,
			args...)
		if err != nil {
			return nil, fmt.Errorf("renew %d leases: %w", len(ids), err)
		}
		for _, id := range found {
			renewed[registry.Lease{ItemID: id, N: of.n}] = true
		}
	}
	return renewed, nil
}

// noteBeat records what a renewed attempt reports.
func (t *Tx) noteBeat(b registry.Beat) error {
	if err := t.keepLog(b.Lease, b.Log); err != nil {
		return err
	}
	if b.Progress != nil {
		if err := t.progress(b.Lease, b.Progress); err != nil {
			return err
		}
	}
	if b.DoneBytes >= 0 || b.DoneFiles >= 0 {
		err := t.Do(`UPDATE work_item SET
			done_bytes = CASE WHEN $2 >= 0 THEN $2 ELSE done_bytes END,
			done_files = CASE WHEN $3 >= 0 THEN $3 ELSE done_files END WHERE id = $1`,
			b.Lease.ItemID, b.DoneBytes, b.DoneFiles)
		if err != nil {
			return err
		}
		if err := t.staged(b.Lease.ItemID); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tx) progress(l registry.Lease, p []registry.Progress) error {
	text, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode progress: %w", err)
	}
	err = t.Do(`UPDATE attempt SET progress = $3 WHERE item_id = $1 AND n = $2`, l.ItemID, l.N, string(text))
	return err
}

// noteWorker records a living worker, its slots and the length of its leases. The slots make up the
// relay's window.
func (t *Tx) noteWorker(r registry.RenewRequest, held bool) error {
	w, lease := r.Worker, r.Lease
	if w.ID == "" {
		return nil
	}
	owners, err := t.owners([]string{w.ID})
	if err != nil {
		return err
	}
	owner, known := owners[w.ID]
	if known && owner.Valid && owner.String != r.Token {
		return registry.ErrWorkerTaken
	}
	slots, err := json.Marshal(map[string]any{"capacity": w.Capacity, "free": w.Free, "clock": w.Clock})
	if err != nil {
		return fmt.Errorf("encode worker: %w", err)
	}
	err = t.Do(`INSERT INTO worker (id, version, slots, draining, seen_at, token, since) VALUES ($1, $2, $3, $4, $5, $6, $5)
		ON CONFLICT (id) DO UPDATE SET version = $2, slots = $3, draining = $4, seen_at = $5, token = $6`,
		w.ID, w.Version, string(slots), sqldb.Bit(w.Draining), t.Now, r.Token)
	if err != nil {
		return err
	}
	if err := t.noteProgram(w); err != nil {
		return err
	}
	if lease <= 0 || lease > workerAlive {
		lease = workerAlive
	}
	for stage, capacity := range w.Capacity {
		spare := min(w.Spare[stage], capacity)
		if w.Draining || held {
			capacity, spare = 0, 0
		}
		err := t.Do(`INSERT INTO worker_stage (worker_id, stage, capacity, seen_at, spare, lease) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (worker_id, stage) DO UPDATE SET capacity = $3, seen_at = $4, spare = $5, lease = $6`, w.ID, stage, capacity, t.Now, spare, lease.Microseconds())
		if err != nil {
			return err
		}
		if known {
			continue
		}
		// Messages sent before this worker existed may be lost, or may wait for long. Send them
		// again.
		err = t.Do(`UPDATE work_item SET nudge_at = $2, nudges = 0
			WHERE stage = $1 AND status = 'pending' AND nudges > 0 AND nudge_at > $2`, stage, t.Now)
		if err != nil {
			return err
		}
	}
	t.wake = true // free slots may let the relay offer more
	return nil
}

// noteProgram keeps for evidence reports that a version of a program ran on this day.
func (t *Tx) noteProgram(w registry.WorkerInfo) error {
	if w.Version == "" {
		return nil
	}
	kind := registry.KindWorker
	for stage := range w.Capacity {
		if stage.Function() != "" {
			kind = registry.KindFunction
		}
	}
	err := t.Do(`INSERT INTO program_day (day, kind, version) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`, sqldb.Day(t.Now), string(kind), w.Version)
	if err != nil {
		return fmt.Errorf("note the version of a program: %w", err)
	}
	return nil
}

// owners returns the tokens that announced those of the workers that are alive. The token is "" for
// a process that contains the Registry, and NULL for a worker recorded by the version before.
func (t *Tx) owners(workers []string) (owners map[string]sql.NullString, err error) {
	rows, err := t.Query(`SELECT id, token FROM worker WHERE `+t.Among("id")+` AND seen_at > $2`, t.List(workers), t.Now-workerAlive.Microseconds())
	if err != nil {
		return nil, fmt.Errorf("look up the tokens of workers: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	owners = map[string]sql.NullString{}
	for rows.Next() {
		var id string
		var owner sql.NullString
		if err := rows.Scan(&id, &owner); err != nil {
			return nil, fmt.Errorf("look up the tokens of workers: %w", err)
		}
		owners[id] = owner
	}
	return owners, rows.Err()
}
