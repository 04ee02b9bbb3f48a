package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
)

// Settle implements registry.Working.
func (s *Store) Settle(ctx context.Context, se registry.Settlement) (registry.Verdict, error) {
	se.Error = clean(se.Error)
	var v registry.Verdict
	err := s.write(ctx, func(t *tx) (err error) {
		v, err = t.settle(se)
		return err
	})
	if err != nil {
		return registry.Verdict{}, fmt.Errorf("settle attempt %d of item %s: %w", se.Lease.N, se.Lease.ItemID, err)
	}
	return v, nil
}

func (t *tx) settle(se registry.Settlement) (registry.Verdict, error) {
	if v, ok, err := t.settled(se); err != nil || ok {
		return v, err
	}
	it, err := t.live(se.Lease)
	if err != nil {
		return registry.Verdict{}, err
	}
	if err := t.learn(&it, se); err != nil {
		return registry.Verdict{}, err
	}
	next, err := t.decide(it, se)
	if err != nil {
		return registry.Verdict{}, err
	}
	if err := t.move(it, next); err != nil {
		return registry.Verdict{}, err
	}
	v := registry.Verdict{Stage: next.stage, Status: next.status, Tries: next.tries}
	return v, t.closeAttempt(se, v)
}

// settled answers a repeated settlement with the recorded verdict (R9).
func (t *tx) settled(se registry.Settlement) (v registry.Verdict, ok bool, err error) {
	var outcome registry.Outcome
	var response string
	err = t.get(`SELECT outcome, response FROM attempt WHERE item_id = $1 AND n = $2 AND finished_at IS NOT NULL`,
		[]any{se.Lease.ItemID, se.Lease.N}, &outcome, &response)
	if errors.Is(err, sql.ErrNoRows) {
		return v, false, nil
	} else if err != nil {
		return v, false, err
	}
	if outcome != se.Outcome {
		return v, false, fmt.Errorf("ended as %s: %w", outcome, registry.ErrClaimLost)
	}
	if err := json.Unmarshal([]byte(response), &v); err != nil {
		return v, false, fmt.Errorf("decode recorded verdict: %w", err)
	}
	return v, true, nil
}

// learn notes what the attempt found out about the item, whatever becomes of it.
func (t *tx) learn(it *registry.WorkItem, se registry.Settlement) error {
	for name, value := range se.Results {
		if it.Results == nil {
			it.Results = map[string]json.RawMessage{}
		}
		it.Results[name] = value
	}
	set(&it.SizeBytes, se.SizeBytes)
	set(&it.Files, se.Files)
	set(&it.DoneBytes, se.DoneBytes)
	set(&it.DoneFiles, se.DoneFiles)
	it.Priority += se.PriorityAdd
	state, err := json.Marshal(it.Results)
	if err != nil {
		return fmt.Errorf("encode results: %w", err)
	}
	_, err = t.exec(`UPDATE work_item SET state = $2, size_bytes = $3, files = $4, done_bytes = $5, done_files = $6,
		priority = $7, rank = $8 WHERE id = $1`,
		it.ID, string(state), it.SizeBytes, it.Files, it.DoneBytes, it.DoneFiles, it.Priority,
		rank(micros(it.CreatedAt), it.Priority))
	if err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	for _, e := range se.Events {
		if err := t.event(it.ID, se.Lease.N, e.Type, "worker", e.Data); err != nil {
			return err
		}
	}
	return nil
}

func set(field, value *int64) {
	if value != nil {
		*field = *value
	}
}

// change is where an item goes.
type change struct {
	act    registry.Act
	stage  registry.Stage
	status registry.Status
	tries  int
	losses int
	delay  int64 // microseconds until it may run
	class  registry.ErrorClass
	note   string
	wait   registry.Reason
	actor  string
	n      int64 // the attempt
	reason string
}

// decide turns a worker's outcome into a change by the route and the rules of design section 4.3.
func (t *tx) decide(it registry.WorkItem, se registry.Settlement) (change, error) {
	c := change{stage: it.Stage, status: registry.Pending, tries: it.Tries, n: se.Lease.N, actor: "worker", note: se.Error}
	route, _ := registry.RouteOf(it.Action)
	step, ok := route.Step(it.Stage)
	if !ok {
		return c, fmt.Errorf("stage %s is not on the route of %s", it.Stage, it.Action)
	}
	switch se.Outcome {
	case registry.OutcomeDone:
		return t.advance(it, route, c)
	case registry.OutcomeRetry:
		c.act, c.tries, c.delay, c.class = registry.ActRetry, it.Tries+1, se.Delay.Microseconds(), se.Class
		if c.tries < se.MaxAttempts {
			return c, nil
		}
		if step.NeverFails {
			return t.advance(it, route, c)
		}
		c.act, c.status = registry.ActFail, registry.Failed
		return c, nil
	case registry.OutcomeSnooze:
		c.act, c.delay, c.wait = registry.ActSnooze, se.Delay.Microseconds(), se.Reason
		err := t.unlockedMeanwhile(it, &c)
		return c, err
	case registry.OutcomeReleased:
		c.act = registry.ActRelease
		return c, nil
	case registry.OutcomeFailed:
		c.act, c.status, c.class = registry.ActFail, registry.Failed, se.Class
		return c, nil
	case registry.OutcomeLost, registry.OutcomeWithdrawn:
	}
	return c, fmt.Errorf("a worker cannot settle with outcome %q", se.Outcome)
}

// advance goes to the next stage, or ends the item after the last one.
func (t *tx) advance(it registry.WorkItem, route registry.Route, c change) (change, error) {
	c.tries, c.note, c.class, c.delay = 0, "", "", 0
	if next, more := route.Next(it.Stage); more {
		c.act, c.stage = registry.ActAdvance, next
		return c, nil
	}
	c.act, c.status = registry.ActComplete, registry.Completed
	if it.Action != registry.Batch {
		return c, nil
	}
	var bad, all int64
	err := t.get(`SELECT COUNT(CASE WHEN status <> 'completed' THEN 1 END), COUNT(*) FROM work_item WHERE parent_id = $1`,
		[]any{it.ID}, &bad, &all)
	if err != nil {
		return c, fmt.Errorf("count failed jobs: %w", err)
	}
	if bad > 0 {
		c.act, c.status, c.class = registry.ActFail, registry.Failed, registry.JobsFault
		c.note = fmt.Sprintf("%d of %d jobs did not complete", bad, all)
	}
	return c, nil
}

// unlockedMeanwhile lets an item that waits for a lock go at once when the lock came free while it was settling.
func (t *tx) unlockedMeanwhile(it registry.WorkItem, c *change) error {
	if c.wait != registry.ReasonLocked {
		return nil
	}
	var out bool
	if err := t.get(`SELECT `+lockedOut+` FROM work_item i WHERE i.id = $1`, []any{it.ID}, &out); err != nil {
		return fmt.Errorf("look at locks: %w", err)
	}
	if !out {
		c.delay = 0
	}
	return nil
}

// move carries out a change: the one place where (stage, status) of a known item is written.
func (t *tx) move(it registry.WorkItem, c change) error {
	if err := registry.CheckAct(it.Action, c.act, it.Status, c.status); err != nil {
		var te *registry.TransitionError
		if errors.As(err, &te) {
			te.ItemID = it.ID
		}
		return err
	}
	var finished, nudge sql.NullInt64
	runAt := t.now + c.delay
	if c.status.Settled() {
		finished = sql.NullInt64{Int64: t.now, Valid: true}
	} else if it.BlockerCount == 0 || c.stage == registry.Expand {
		nudge = sql.NullInt64{Int64: runAt, Valid: true} // a blocked item is rung for when its last edge closes
		t.wake = t.wake || c.delay == 0
	}
	if c.stage != it.Stage {
		c.losses = 0
	}
	_, err := t.exec(`UPDATE work_item SET stage = $2, status = $3, tries = $4, losses = $5, error_class = $6, note = $7,
		wait_reason = $8, run_at = $9, nudge_at = $10, nudges = 0, updated_at = $11, finished_at = $12 WHERE id = $1`,
		it.ID, c.stage, c.status, c.tries, c.losses, c.class, c.note, c.wait, runAt, nudge, t.now, finished)
	if err != nil {
		return fmt.Errorf("move item %s: %w", it.ID, err)
	}
	// An item that still waits for the same thing has no news to tell.
	if c.act != registry.ActSnooze || c.note != it.Note {
		err = t.event(it.ID, c.n, string(c.act), c.actor, moved{
			From: it.Stage, Stage: c.stage, Status: c.status, Reason: c.reason, Error: c.note, Class: c.class, Wait: string(c.wait),
		})
		if err != nil {
			return err
		}
	}
	switch {
	case c.status.Settled():
		return t.letGo(it, c.status)
	case c.act == registry.ActAdvance:
		return t.unblocked(it.ID) // a batch whose jobs are settled already begins its closing here
	}
	return nil
}

// letGo releases what a settled item had: locks at once, its edges to dependents, and, when it completed, its room.
// A failed item keeps its staging for a requeue, and so its reservation (R24).
func (t *tx) letGo(it registry.WorkItem, to registry.Status) error {
	if err := t.unlock(it.ID); err != nil {
		return err
	}
	if to == registry.Completed {
		if _, err := t.exec(`DELETE FROM reservation WHERE item_id = $1`, it.ID); err != nil {
			return fmt.Errorf("release reservation of %s: %w", it.ID, err)
		}
	}
	return t.satisfy(it.ID, to)
}

// closeAttempt records outcome and verdict, so that a repeat is answered alike.
func (t *tx) closeAttempt(se registry.Settlement, v registry.Verdict) error {
	response, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode verdict: %w", err)
	}
	if se.Progress != nil {
		if err := t.progress(se.Lease, se.Progress); err != nil {
			return err
		}
	}
	_, err = t.exec(`UPDATE attempt SET finished_at = $3, outcome = $4, error = $5, response = $6 WHERE item_id = $1 AND n = $2`,
		se.Lease.ItemID, se.Lease.N, t.now, se.Outcome, se.Error, string(response))
	if err != nil {
		return fmt.Errorf("close attempt: %w", err)
	}
	return nil
}
