package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
)

// settling is a settle in a group.
type settling struct {
	registry.Settlement
	verdict registry.Verdict
}

// Settle implements registry.Working.
func (s *Store) Settle(ctx context.Context, se registry.Settlement) (registry.Verdict, error) {
	se.Error, se.Remedy = clean(se.Error), clean(se.Remedy)
	w := &write{ctx: ctx, kind: settles, settle: &settling{Settlement: se}}
	if err := s.queue(w); err != nil {
		return registry.Verdict{}, fmt.Errorf("settle attempt %d of item %s: %w", se.Lease.N, se.Lease.ItemID, err)
	}
	return w.settle.verdict, nil
}

// settleAll settles several attempts. One that does not live is told so, or answered as the first time.
func (t *tx) settleAll(ws []*write) error {
	items, err := t.liveAll(ws)
	if err != nil {
		return err
	}
	others, err := t.othersAttempts(ws)
	if err != nil {
		return err
	}
	var shifts []shift
	var closings []closing
	var late []*write
	for _, w := range ws {
		se := w.settle
		at := registry.Lease{ItemID: se.Lease.ItemID, N: se.Lease.N}
		it, ok := items[at]
		if !ok || others[w] {
			late = append(late, w)
			continue
		}
		if w.err = ownResults(se.Results); w.err != nil {
			continue
		}
		delete(items, at) // who comes a second time finds it settled
		if err := t.learn(&it, se.Settlement); err != nil {
			return err
		}
		next, err := t.decide(it, se.Settlement)
		if err != nil {
			return err
		}
		se.verdict = registry.Verdict{Stage: next.stage, Status: next.status, Tries: next.tries}
		shifts = append(shifts, shift{it, next})
		closings = append(closings, closing{se.Settlement, se.verdict})
	}
	if err := t.closeAttempts(closings); err != nil {
		return err
	}
	if err := t.moveAll(shifts); err != nil {
		return err
	}
	for _, w := range late {
		w.settle.verdict, w.err = t.settled(w.settle.Settlement)
		if w.err != nil && !errors.Is(w.err, registry.ErrClaimLost) {
			return w.err
		}
	}
	return nil
}

// liveAll returns the items whose attempts live, by their leases: what the fence of each write asks, asked for many.
func (t *tx) liveAll(ws []*write) (map[registry.Lease]registry.WorkItem, error) {
	ids := make([]string, len(ws))
	for i, w := range ws {
		ids[i] = w.settle.Lease.ItemID
	}
	found, err := collect(t.ask(selectItem+`JOIN attempt a ON a.item_id = i.id AND a.n = i.attempt
		WHERE `+t.among("i.id")+` AND i.status = 'running' AND a.finished_at IS NULL`, t.list(ids)), "check leases", scanItem)
	if err != nil {
		return nil, err
	}
	items := map[registry.Lease]registry.WorkItem{}
	for _, it := range found {
		items[registry.Lease{ItemID: it.ID, N: it.Attempt}] = it
	}
	return items, nil
}

// othersAttempts are the settlements that are asked for by another token than claimed the attempt.
func (t *tx) othersAttempts(ws []*write) (map[*write]bool, error) {
	others := map[*write]bool{}
	for _, w := range ws {
		l := w.settle.Lease
		if l.Token == "" {
			continue
		}
		var another bool
		err := t.get(`SELECT EXISTS (SELECT 1 FROM attempt WHERE item_id = $1 AND n = $2 AND token <> $3)`, []any{l.ItemID, l.N, l.Token}, &another)
		if err != nil {
			return nil, fmt.Errorf("look who claimed item %s: %w", l.ItemID, err)
		}
		if another {
			others[w] = true
		}
	}
	return others, nil
}

// settled answers a repeated settlement with the recorded verdict (R9); any other one has lost its claim.
func (t *tx) settled(se registry.Settlement) (v registry.Verdict, err error) {
	var outcome registry.Outcome
	var response string
	err = t.get(`SELECT outcome, response FROM attempt WHERE item_id = $1 AND n = $2 AND finished_at IS NOT NULL AND ($3 = '' OR token IS NULL OR token = $3)`,
		[]any{se.Lease.ItemID, se.Lease.N, se.Lease.Token}, &outcome, &response)
	if errors.Is(err, sql.ErrNoRows) {
		return v, fmt.Errorf("attempt %d of item %s: %w", se.Lease.N, se.Lease.ItemID, registry.ErrClaimLost)
	} else if err != nil {
		return v, err
	}
	if outcome != se.Outcome {
		return v, fmt.Errorf("ended as %s: %w", outcome, registry.ErrClaimLost)
	}
	if err := json.Unmarshal([]byte(response), &v); err != nil {
		return v, fmt.Errorf("decode recorded verdict: %w", err)
	}
	return v, nil
}

// learn notes what the attempt found out about the item, whatever becomes of it.
func (t *tx) learn(it *registry.WorkItem, se registry.Settlement) error {
	for name, value := range se.Results {
		if it.Results == nil {
			it.Results = map[string]json.RawMessage{}
		}
		it.Results[name] = value
	}
	if len(se.Results) > 0 {
		if err := registry.CheckResults(it.Results); err != nil {
			return err
		}
	}
	if len(se.Results) == 0 && se.SizeBytes == nil && se.Files == nil && se.DoneBytes == nil && se.DoneFiles == nil && se.PriorityAdd == 0 {
		return t.tell(*it, se)
	}
	set(&it.SizeBytes, se.SizeBytes)
	set(&it.Files, se.Files)
	set(&it.DoneBytes, se.DoneBytes)
	set(&it.DoneFiles, se.DoneFiles)
	if it.Priority >= 0 { // what an operator put in front of everything stays there
		it.Priority += se.PriorityAdd
	}
	if err := t.writeLearnt(it); err != nil {
		return err
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

// closing is an attempt that ends with a verdict.
type closing struct {
	registry.Settlement
	verdict registry.Verdict
}

// closeAttempts records outcomes and verdicts, so that a repeat is answered alike. Attempts that end alike share a
// statement; an item has one that is open.
func (t *tx) closeAttempts(all []closing) error {
	type ending struct {
		outcome                 registry.Outcome
		error, remedy, response string
	}
	ended := groups[ending]{}
	for _, c := range all {
		response, err := json.Marshal(c.verdict)
		if err != nil {
			return fmt.Errorf("encode verdict: %w", err)
		}
		if c.Progress != nil {
			if err := t.progress(c.Lease, c.Progress); err != nil {
				return err
			}
		}
		ended.add(ending{c.Outcome, c.Error, c.Remedy, string(response)}, c.Lease.ItemID)
	}
	for e, ids := range ended.all() {
		err := t.do(`UPDATE attempt SET finished_at = $2, outcome = $3, error = $4, remedy = $5, response = $6
			WHERE `+t.among("item_id")+` AND finished_at IS NULL`, t.list(ids), t.now, e.outcome, e.error, e.remedy, e.response)
		if err != nil {
			return fmt.Errorf("close attempts: %w", err)
		}
	}
	return nil
}
