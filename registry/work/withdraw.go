package work

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/bounds"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// lookAgain is how often a waiting call looks without a signal: another process may have written.
const lookAgain = 500 * time.Millisecond

// withdraw closes the live attempt of an item that a person takes away from its worker. Its end is
// later than the worker's other withdrawn attempts, so that it can serve as the cursor of
// [Engine.Withdrawn].
func (t *Tx) withdraw(it registry.WorkItem, why string, to registry.Status) error {
	response, err := json.Marshal(registry.Verdict{Stage: it.Stage, Status: to})
	if err != nil {
		return fmt.Errorf("encode verdict: %w", err)
	}
	var worker string
	if err := t.Get(`SELECT worker FROM attempt WHERE item_id = $1 AND n = $2`, []any{it.ID, it.Attempt}, &worker); err != nil {
		return fmt.Errorf("look up the worker of item %s: %w", it.ID, err)
	}
	var last int64
	err = t.Get(`SELECT COALESCE(MAX(finished_at), 0) FROM attempt WHERE worker = $1 AND outcome = 'withdrawn'`, []any{worker}, &last)
	if err != nil {
		return fmt.Errorf("look up attempts withdrawn from worker %s: %w", worker, err)
	}
	err = t.Do(`UPDATE attempt AS a SET finished_at = $3, outcome = 'withdrawn', error = $4, response = $5
		WHERE item_id = $1 AND n = $2 AND `+live, it.ID, it.Attempt, max(t.Now, last+1), why, string(response))
	if err != nil {
		return fmt.Errorf("withdraw attempt %d of item %s: %w", it.Attempt, it.ID, err)
	}
	t.taken = true
	t.attemptEnded(it, registry.OutcomeWithdrawn)
	return t.supersede(it)
}

// Withdrawn implements registry.Working.
func (e *Engine) Withdrawn(ctx context.Context, q registry.WithdrawnQuery) ([]registry.Lease, int64, error) {
	if err := bounds.Check(q); err != nil {
		return nil, q.After, err
	}
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	for {
		rung := e.taken.Wait()
		taken, next, err := e.withdrawn(ctx, q)
		switch {
		case ctx.Err() != nil:
			return nil, q.After, nil // the caller stopped waiting, which is no fault
		case err != nil:
			return nil, q.After, fmt.Errorf("list attempts withdrawn from worker %s: %w", q.Worker, err)
		case len(taken) > 0:
			return taken, next, nil
		}
		select {
		case <-rung:
		case <-again.C:
		case <-ctx.Done():
			return nil, q.After, nil
		case <-e.db.Closed():
			return nil, q.After, fmt.Errorf("list attempts withdrawn from worker %s: %w", q.Worker, sqldb.ErrClosed)
		}
	}
}

func (e *Engine) withdrawn(ctx context.Context, q registry.WithdrawnQuery) (out []registry.Lease, next int64, err error) {
	next = q.After
	err = sqldb.Each(e.db.Read.Ask(ctx, `SELECT item_id, n, finished_at FROM attempt
		WHERE worker = $1 AND outcome = 'withdrawn' AND finished_at > $2 AND ($3 = '' OR token IS NULL OR token = $3) ORDER BY finished_at LIMIT 500`,
		q.Worker, q.After, q.Token), "", func(row sqldb.Scanner) error {
		var l registry.Lease
		if err := row.Scan(&l.ItemID, &l.N, &next); err != nil {
			return err
		}
		out = append(out, l)
		return nil
	})
	return out, next, err
}

// may returns nil if the act is allowed for the item. It returns a *registry.PastNoReturn if the
// act would be allowed had the item not announced a version or begun to delete an object (R7).
func (t *Tx) may(it registry.WorkItem, act registry.Act, to registry.Status) error {
	err := Check(it, act, to)
	uncommitted := it
	uncommitted.Commitment = registry.Uncommitted
	if err == nil || Check(uncommitted, act, to) != nil {
		return err
	}
	p := &registry.PastNoReturn{ItemID: it.ID, Act: act, Preserved: it.Commitment == registry.Preserved, Allowed: it.AllowedActs}
	var known bool
	p.ObjectID, p.Version, known, err = t.store.hooks.Committed(t, it.ID)
	switch {
	case err != nil:
		return fmt.Errorf("look for a version of item %s: %w", it.ID, err)
	case !known:
		return refusal(it, act, to)
	}
	return p
}

// supersede records that the live attempt of an item was taken away from its worker.
func (t *Tx) supersede(it registry.WorkItem) error {
	return t.SetResult(it, registry.ResultSuperseded, json.RawMessage(strconv.FormatInt(it.Attempt, 10)))
}
