package work

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast/holdfast/registry"
)

// An item whose attempts are lost again and again may be what takes its workers down, or always
// have been in the company of what does. It is told by running alone (R13): a worker is kept free
// for it, comes to rest, runs it, and is given nothing else meanwhile. What is lost then is
// charged.

// suspect says that an item is to run alone.
func (n turn) suspect() bool { return n.losses >= lossesFree }

// claimReserved answers a claim of a worker that is kept free for an item, "" for none. done is false
// when it is not, or not any more.
func (t *Tx) claimReserved(c *claiming, itemID string) (done bool, err error) {
	if itemID == "" {
		return false, nil
	}
	found, err := t.readTurns(1, selectTurn+`WHERE i.id = $1 AND (i.ready = 1 OR i.status = 'running')`, itemID)
	if err != nil {
		return false, fmt.Errorf("look for item %s, which runs alone: %w", itemID, err)
	}
	if len(found) == 0 || !found[0].suspect() || found[0].waiting {
		return false, t.unreserveWorker(itemID) // it has ended, got on or been stopped
	}
	var by string
	var others int64
	err = t.Get(`SELECT COALESCE((SELECT worker FROM attempt WHERE item_id = $1 AND finished_at IS NULL), ''),
		(SELECT COUNT(*) FROM attempt WHERE worker = $2 AND finished_at IS NULL)`, []any{itemID, c.Worker}, &by, &others)
	switch {
	case err != nil:
		return false, fmt.Errorf("look for what worker %s runs: %w", c.Worker, err)
	case by != "" && by != c.Worker:
		return false, t.unreserveWorker(itemID)
	case by == "" && others == 0 && found[0].Stage == c.Stage:
		if err := t.start([]starting{{c, found[0]}}); err != nil || c.Hint == itemID {
			return true, err
		}
		// The message was another item's, which this worker is not given now, and whose place the
		// message of this one will not take.
		_, err := t.refuseForNow(c.ClaimRequest, registry.ReasonQueued)
		return true, err
	}
	c.refused, err = t.refuseForNow(c.ClaimRequest, registry.ReasonQueued)
	return true, err
}

func (t *Tx) unreserveWorker(itemID string) error {
	if err := t.Do(`DELETE FROM alone WHERE item_id = $1`, itemID); err != nil {
		return fmt.Errorf("keep no worker free for item %s: %w", itemID, err)
	}
	return nil
}

// separateSuspects sees to the items of a stage that are to run alone, among those whose turn it is. It
// returns the others, and the claims that are not answered yet.
func (t *Tx) separateSuspects(stage registry.Stage, cs []*claiming) ([]turn, []*claiming, error) {
	// More are looked at, so that nobody goes without because of them.
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

// chooseWorker chooses the worker that a suspect item runs on: one that asks and runs nothing; else
// the one that is kept free for it already, if it lives; else the one that runs least. "" when no
// worker is known.
func (t *Tx) chooseWorker(s turn, cs []*claiming) (worker string, err error) {
	for _, c := range cs {
		var busy bool
		err := t.Get(`SELECT EXISTS (SELECT 1 FROM attempt WHERE worker = $1 AND finished_at IS NULL)`, []any{c.Worker}, &busy)
		if err != nil {
			return "", fmt.Errorf("look for what worker %s runs: %w", c.Worker, err)
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

// reserveWorker keeps a worker free for a suspect item. If it is among those that ask, it gets the item
// when it runs nothing, and nothing in any case. It returns the other claims.
func (t *Tx) reserveWorker(worker string, s turn, cs []*claiming) (others []*claiming, err error) {
	if worker == "" {
		return cs, nil
	}
	err = t.Do(`DELETE FROM alone WHERE item_id = $1 OR worker = $2`, s.ID, worker)
	if err == nil {
		err = t.Do(`INSERT INTO alone (item_id, worker) VALUES ($1, $2)`, s.ID, worker)
	}
	if err != nil {
		return nil, fmt.Errorf("keep worker %s free for item %s: %w", worker, s.ID, err)
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
		return nil, fmt.Errorf("ring for item %s again: %w", s.ID, err)
	}
	return others, nil
}

// WhyAlone says of a queued item that it runs alone, and on which worker.
func (e *Engine) WhyAlone(ctx context.Context, it registry.WorkItem, w *registry.Why) error {
	var losses int
	var worker string
	err := e.db.Read.QueryRowContext(ctx, `SELECT losses, COALESCE((SELECT worker FROM alone WHERE item_id = i.id), '') FROM work_item i WHERE i.id = $1`,
		it.ID).Scan(&losses, &worker)
	if err != nil {
		return fmt.Errorf("ask whether item %s runs alone: %w", it.ID, err)
	}
	if losses < lossesFree {
		return nil
	}
	w.Sentence += fmt.Sprintf("; its workers were lost %d times in a row, so it runs alone", losses)
	if worker != "" {
		w.Sentence += ", when worker " + worker + " has nothing else in hand"
	}
	return nil
}
