package work

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast/holdfast/registry"
)

// An item whose attempts are lost again and again is a suspect: it may kill its workers, or it may
// always have run beside an item that does. Running alone tells which (R13). The engine reserves a
// worker for the suspect, waits until that worker runs nothing, and gives it nothing else
// meanwhile. A loss then counts as the suspect's.

// suspect reports whether an item must run alone.
func (n turn) suspect() bool { return n.losses >= lossesFree }

// claimReserved answers a claim of a worker that may be reserved for an item; itemID is "" if it is
// not. done is false if the worker is not reserved, or not any more.
func (t *Tx) claimReserved(c *claiming, itemID string) (done bool, err error) {
	if itemID == "" {
		return false, nil
	}
	found, err := t.readTurns(1, selectTurn+`WHERE i.id = $1 AND (i.ready = 1 OR i.status = 'running')`, itemID)
	if err != nil {
		return false, fmt.Errorf("look for item %s, which runs alone: %w", itemID, err)
	}
	if len(found) == 0 || !found[0].suspect() || found[0].waiting {
		return false, t.unreserveWorker(itemID) // it has ended, made progress or been stopped
	}
	var by string
	var others int64
	err = t.Get(`SELECT COALESCE((SELECT a.worker FROM attempt a WHERE a.item_id = $1 AND `+live+`), ''),
		(SELECT COUNT(*) FROM attempt WHERE worker = $2 AND finished_at IS NULL)`, []any{itemID, c.Worker}, &by, &others)
	switch {
	case err != nil:
		return false, fmt.Errorf("look up what worker %s runs: %w", c.Worker, err)
	case by != "" && by != c.Worker:
		return false, t.unreserveWorker(itemID)
	case by == "" && others == 0 && found[0].Stage == c.Stage:
		kept, err := t.keptByLimit(found[0].WorkItem)
		if err != nil {
			return true, err
		}
		if kept {
			c.refused, err = t.refuseForNow(c.ClaimRequest, registry.ReasonLimit)
			return true, err
		}
		if err := t.start([]starting{{c, found[0]}}); err != nil || c.Hint == itemID {
			return true, err
		}
		// The message was for another item. This worker cannot take that item now, and the message
		// does not take the place of the suspect's own message.
		_, err = t.refuseForNow(c.ClaimRequest, registry.ReasonQueued)
		return true, err
	}
	c.refused, err = t.refuseForNow(c.ClaimRequest, registry.ReasonQueued)
	return true, err
}

func (t *Tx) unreserveWorker(itemID string) error {
	if err := t.Do(`DELETE FROM alone WHERE item_id = $1`, itemID); err != nil {
		return fmt.Errorf("release the worker reserved for item %s: %w", itemID, err)
	}
	return nil
}

// separateSuspects takes the suspects out of a stage's next items and assigns them to workers. It
// returns the other items, and the claims that are not answered yet.
func (t *Tx) separateSuspects(stage registry.Stage, cs []*claiming) ([]turn, []*claiming, error) {
	// Read more items than asked for, so that the suspects leave no claim without an item.
	items, _, err := t.next(stage, 2*len(cs)+lossesFree)
	if err != nil {
		return nil, nil, err
	}
	for _, s := range items {
		if !s.suspect() {
			continue
		}
		worker, err := t.chooseWorker(s, cs)
		if err != nil {
			return nil, nil, err
		}
		if cs, err = t.reserveWorker(worker, s, cs); err != nil {
			return nil, nil, err
		}
	}
	items = slices.DeleteFunc(items, turn.suspect)
	return items[:min(len(items), len(cs))], cs, nil
}

// chooseWorker returns the worker that a suspect shall run on, or "" if none is known. It prefers a
// worker that asks and runs nothing. Next comes the worker that is already reserved, if it lives;
// then the one that runs least.
func (t *Tx) chooseWorker(s turn, cs []*claiming) (worker string, err error) {
	for _, c := range cs {
		var busy bool
		err := t.Get(`SELECT EXISTS (SELECT 1 FROM attempt WHERE worker = $1 AND finished_at IS NULL)`, []any{c.Worker}, &busy)
		if err != nil {
			return "", fmt.Errorf("look up what worker %s runs: %w", c.Worker, err)
		}
		if !busy {
			return c.Worker, nil
		}
	}
	err = t.Get(`SELECT w.worker_id FROM worker_stage w LEFT JOIN alone a ON a.worker = w.worker_id
		WHERE w.stage = $1 AND w.seen_at > $2 AND w.capacity > 0 AND (a.item_id IS NULL OR a.item_id = $3)
		ORDER BY a.item_id IS NULL, (SELECT COUNT(*) FROM attempt r WHERE r.worker = w.worker_id AND r.finished_at IS NULL), w.worker_id LIMIT 1`,
		[]any{s.Stage, t.Now - workerAlive.Microseconds(), s.ID}, &worker)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("choose a worker for item %s: %w", s.ID, err)
	}
	return worker, nil
}

// reserveWorker reserves a worker for a suspect. If the worker has claims in cs, it gets the
// suspect if it runs nothing, and otherwise nothing. reserveWorker returns the claims of other
// workers.
func (t *Tx) reserveWorker(worker string, s turn, cs []*claiming) (others []*claiming, err error) {
	if worker == "" {
		return cs, nil
	}
	err = t.Do(`DELETE FROM alone WHERE item_id = $1 OR worker = $2`, s.ID, worker)
	if err == nil {
		err = t.Do(`INSERT INTO alone (item_id, worker) VALUES ($1, $2)`, s.ID, worker)
	}
	if err != nil {
		return nil, fmt.Errorf("reserve worker %s for item %s: %w", worker, s.ID, err)
	}
	given := false
	for _, c := range cs {
		if c.Worker != worker {
			others = append(others, c)
			continue
		}
		if _, err := t.claimReserved(c, s.ID); err != nil {
			return nil, err
		}
		given = given || c.refused == nil
	}
	if given {
		return others, nil
	}
	err = t.Do(`UPDATE work_item SET nudge_at = $2, nudges = 0 WHERE id = $1 AND (nudge_at > $2 OR nudges > 0)`,
		s.ID, t.Now+resendAfter.Microseconds())
	if err != nil {
		return nil, fmt.Errorf("send another message for item %s: %w", s.ID, err)
	}
	return others, nil
}

// WhyAlone adds to the explanation of a queued item that it runs alone, and on which worker.
func (e *Engine) WhyAlone(ctx context.Context, it registry.WorkItem, w *registry.Why) error {
	var losses int
	var worker string
	err := e.db.Read.QueryRowContext(ctx, `SELECT losses, COALESCE((SELECT worker FROM alone WHERE item_id = i.id), '') FROM work_item i WHERE i.id = $1`,
		it.ID).Scan(&losses, &worker)
	if err != nil {
		return fmt.Errorf("look up whether item %s runs alone: %w", it.ID, err)
	}
	if losses < lossesFree {
		return nil
	}
	w.Because = append(w.Because, registry.Statement{Says: registry.SaysAlone, N: int64(losses), Name: worker})
	return nil
}
