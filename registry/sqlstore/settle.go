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
	it, err := t.live(se.Lease)
	if errors.Is(err, registry.ErrClaimLost) {
		if v, ok, err := t.settled(se); err != nil || ok {
			return v, err
		}
	}
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
	if next.status == registry.Completed {
		if err := t.tidyAgain(it); err != nil {
			return registry.Verdict{}, err
		}
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
	if se.Results == nil && se.SizeBytes == nil && se.Files == nil && se.DoneBytes == nil && se.DoneFiles == nil && se.PriorityAdd == 0 {
		return t.tell(*it, se)
	}
	set(&it.SizeBytes, se.SizeBytes)
	set(&it.Files, se.Files)
	set(&it.DoneBytes, se.DoneBytes)
	set(&it.DoneFiles, se.DoneFiles)
	if it.Priority >= 0 { // what an operator put in front of everything stays there
		it.Priority += se.PriorityAdd
	}
	if len(se.Results) > 0 || se.SizeBytes != nil || se.Files != nil || se.DoneBytes != nil || se.DoneFiles != nil || se.PriorityAdd != 0 {
		if err := t.writeLearnt(it); err != nil {
			return err
		}
	}
	if se.DoneBytes != nil {
		if err := t.staged(it.ID); err != nil {
			return err
		}
	}
	return t.tell(*it, se)
}

// tell writes the events that the attempt reports.
func (t *tx) tell(it registry.WorkItem, se registry.Settlement) error {
	for _, e := range se.Events {
		if err := t.event(it.ID, se.Lease.N, e.Type, actorWorker, e.Data); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) writeLearnt(it *registry.WorkItem) error {
	state, err := json.Marshal(it.Results)
	if err != nil {
		return fmt.Errorf("encode results: %w", err)
	}
	err = t.do(`UPDATE work_item SET state = $2, size_bytes = $3, files = $4, done_bytes = $5, done_files = $6,
		priority = $7, rank = $8 WHERE id = $1`,
		it.ID, string(state), it.SizeBytes, it.Files, it.DoneBytes, it.DoneFiles, it.Priority,
		rank(micros(it.CreatedAt), it.Priority))
	if err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

func set(field, value *int64) {
	if value != nil {
		*field = *value
	}
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
	err = t.do(`UPDATE attempt SET finished_at = $3, outcome = $4, error = $5, response = $6 WHERE item_id = $1 AND n = $2`,
		se.Lease.ItemID, se.Lease.N, t.now, se.Outcome, se.Error, string(response))
	if err != nil {
		return fmt.Errorf("close attempt: %w", err)
	}
	return nil
}
