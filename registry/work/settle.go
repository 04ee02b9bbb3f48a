package work

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/holdfast/holdfast/metrics"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/bounds"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// settling is one settlement of a group, with its verdict.
type settling struct {
	registry.Settlement
	verdict registry.Verdict
	next    *registry.ClaimRequest // asks for the next attempt of the item; nil: nothing does
	got     *registry.Claim        // the answer to next; nil: the item waits
}

func settlingOf(w *sqldb.Write) *settling { return w.Of.(*settling) }

// Settle implements registry.Working.
func (e *Engine) Settle(ctx context.Context, se registry.Settlement) (registry.Verdict, error) {
	if err := bounds.Check(se); err != nil {
		return registry.Verdict{}, err
	}
	s := &settling{Settlement: se}
	err := e.settle(ctx, s)
	return s.verdict, err
}

// settle settles an attempt and sets the answers.
func (e *Engine) settle(ctx context.Context, s *settling) error {
	s.Error, s.Remedy = sqldb.Clean(s.Error), sqldb.Clean(s.Remedy)
	begun := time.Now()
	err := e.db.Queue(&sqldb.Write{Ctx: ctx, Kind: e.settles, Of: s})
	metrics.Settle.Since(begun, settleLabel(s.Outcome, err))
	if err != nil {
		s.verdict, s.got = registry.Verdict{}, nil
		return fmt.Errorf("settle attempt %d of item %s: %w", s.Lease.N, s.Lease.ItemID, err)
	}
	return nil
}

// settleLabel is the outcome that a worker wanted, or "refused" or "unavailable". What a worker sends may
// be any text, which must not become a label.
func settleLabel(o registry.Outcome, err error) string {
	switch {
	case errors.Is(err, registry.ErrClaimLost), errors.Is(err, registry.ErrInvalid):
		return "refused"
	case err != nil:
		return "unavailable"
	}
	return string(o)
}

// settleAll settles several attempts. An attempt that is not live gets ErrClaimLost, or the verdict
// of its first settlement.
func (t *Tx) settleAll(ws []*sqldb.Write) error {
	items, err := t.liveAll(ws)
	if err != nil {
		return err
	}
	others, err := t.othersAttempts(ws)
	if err != nil {
		return err
	}
	var shifts []Shift
	var going []continuing
	var closings []closing
	var late []*sqldb.Write
	for _, w := range ws {
		se := settlingOf(w)
		se.verdict, se.got = registry.Verdict{}, nil
		at := registry.Lease{ItemID: se.Lease.ItemID, N: se.Lease.N}
		it, ok := items[at]
		if !ok || others[w] {
			late = append(late, w)
			continue
		}
		if w.Err = errors.Join(ownResults(se.Results), ownEvents(it, se.Events), t.applicable(it, se.Settlement)); w.Err != nil {
			continue
		}
		delete(items, at) // a second settlement finds it settled
		if err := t.learn(&it, se.Settlement); err != nil {
			return err
		}
		next, err := t.decide(it, se.Settlement)
		if err != nil {
			return err
		}
		se.verdict = registry.Verdict{Stage: next.Stage, Status: next.Status, Tries: next.tries}
		continues, err := t.wantsToContinue(se, it, next)
		if err != nil {
			return err
		}
		if continues {
			going = append(going, continuing{se, Shift{it, next}})
		} else {
			shifts = append(shifts, Shift{it, next})
		}
		closings = append(closings, closing{se.Settlement, se.verdict})
		t.attemptEnded(it, se.Outcome)
	}
	if err := t.closeAttempts(closings); err != nil {
		return err
	}
	if err := t.moveAll(shifts); err != nil {
		return err
	}
	if len(going) > 0 {
		waiting, err := t.continueAll(going)
		if err != nil {
			return err
		}
		if err := t.moveAll(waiting); err != nil {
			return err
		}
	}
	for _, w := range late {
		se := settlingOf(w)
		se.verdict, w.Err = t.settled(se.Settlement)
		if w.Err != nil && !errors.Is(w.Err, registry.ErrClaimLost) {
			return w.Err
		}
		if w.Err == nil && se.next != nil {
			if se.got, err = t.continued(se); err != nil {
				return err
			}
		}
	}
	return nil
}

// liveAll returns the items whose attempts are live, by lease. It checks for many writes what
// [Tx.Live] checks for one.
func (t *Tx) liveAll(ws []*sqldb.Write) (map[registry.Lease]registry.WorkItem, error) {
	ids := make([]string, len(ws))
	for i, w := range ws {
		ids[i] = settlingOf(w).Lease.ItemID
	}
	// The attempt is looked up for each item. In a join PostgreSQL might read all live attempts
	// instead, and for each of them the whole list.
	found, err := sqldb.Collect(t.Ask(`SELECT `+rowColumns+` FROM work_item i WHERE `+t.Among("i.id")+` AND i.status = 'running' AND (
		SELECT CASE WHEN `+live+` AND NOT `+t.store.hooks.RevokedToken+` THEN 1 ELSE 0 END
		FROM attempt a WHERE a.item_id = i.id AND a.n = i.attempt) = 1`, t.List(ids)), "check leases", scanRow)
	if err != nil {
		return nil, err
	}
	items := map[registry.Lease]registry.WorkItem{}
	for _, it := range found {
		items[registry.Lease{ItemID: it.ID, N: it.Attempt}] = it
	}
	return items, nil
}

// othersAttempts returns the settlements of present attempts whose token is not the one that claimed
// them.
func (t *Tx) othersAttempts(ws []*sqldb.Write) (map[*sqldb.Write]bool, error) {
	var ids []string
	for _, w := range ws {
		if l := settlingOf(w).Lease; l.Token != "" {
			ids = append(ids, l.ItemID)
		}
	}
	if len(ids) == 0 {
		return nil, nil //nolint:nilnil // all callers are in this process
	}
	claimed := map[registry.Lease]string{}
	err := sqldb.Each(t.Ask(`SELECT a.item_id, a.n, a.token FROM attempt a WHERE a.token IS NOT NULL AND (a.item_id, a.n) IN (
		SELECT i.id, i.attempt FROM work_item i WHERE `+t.Among("i.id")+`)`, t.List(ids)), "look up who claimed items", func(row sqldb.Scanner) error {
		var l registry.Lease
		var token string
		err := row.Scan(&l.ItemID, &l.N, &token)
		claimed[l] = token
		return err
	})
	if err != nil {
		return nil, err
	}
	others := map[*sqldb.Write]bool{}
	for _, w := range ws {
		l := settlingOf(w).Lease
		if by, known := claimed[registry.Lease{ItemID: l.ItemID, N: l.N}]; l.Token != "" && known && by != l.Token {
			others[w] = true
		}
	}
	return others, nil
}

// settled answers a repeated settlement with the recorded verdict (R9). Any other gets
// ErrClaimLost.
func (t *Tx) settled(se registry.Settlement) (v registry.Verdict, err error) {
	var outcome registry.Outcome
	var response string
	err = t.Get(`SELECT outcome, response FROM attempt WHERE item_id = $1 AND n = $2 AND finished_at IS NOT NULL AND ($3 = '' OR token IS NULL OR token = $3)`,
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

// applicable asks the subjects whether they can apply an attempt's results.
func (t *Tx) applicable(it registry.WorkItem, se registry.Settlement) error {
	for _, judge := range t.store.hooks.Outcome {
		if err := judge(it, se.Results); err != nil {
			return err
		}
	}
	return nil
}

// learn records what the attempt found out about the item, whatever the verdict.
func (t *Tx) learn(it *registry.WorkItem, se registry.Settlement) error {
	if len(se.Results) > 0 {
		kept := maps.Clone(se.Results)
		maps.DeleteFunc(kept, func(name string, _ json.RawMessage) bool { return t.store.hooks.Applied(*it, name) })
		if len(kept) > 0 {
			if err := t.setResults(*it, kept); err != nil {
				return err
			}
		}
		for name, value := range se.Results {
			if _, stored := kept[name]; !stored {
				it.Results[name] = value
			}
		}
		if err := registry.CheckResults(it.Results); err != nil {
			return err
		}
	}
	if se.SizeBytes == nil && se.Files == nil && se.DoneBytes == nil && se.DoneFiles == nil && se.PriorityAdd == 0 {
		return t.writeStepEvents(*it, se)
	}
	set(&it.SizeBytes, se.SizeBytes)
	set(&it.Files, se.Files)
	set(&it.DoneBytes, se.DoneBytes)
	set(&it.DoneFiles, se.DoneFiles)
	if it.Priority >= 0 { // express items stay express
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
	return t.writeStepEvents(*it, se)
}

// writeStepEvents writes the events that the attempt reports.
func (t *Tx) writeStepEvents(it registry.WorkItem, se registry.Settlement) error {
	for _, e := range se.Events {
		if err := t.Event(it.ID, se.Lease.N, e.Type, ActorWorker, e.Data); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tx) writeLearnt(it *registry.WorkItem) error {
	err := t.Do(`UPDATE work_item SET size_bytes = $2, files = $3, done_bytes = $4, done_files = $5,
		priority = $6, rank = $7 WHERE id = $1`,
		it.ID, it.SizeBytes, it.Files, it.DoneBytes, it.DoneFiles, it.Priority,
		Rank(sqldb.Micros(it.CreatedAt), it.Priority))
	if err != nil {
		return fmt.Errorf("record sizes and priority of item %s: %w", it.ID, err)
	}
	return nil
}

func set(field, value *int64) {
	if value != nil {
		*field = *value
	}
}

// closing is an attempt that ends, with its verdict.
type closing struct {
	registry.Settlement
	verdict registry.Verdict
}

// closeAttempts records outcomes and verdicts, so that a repeated settlement gets the same answer.
// Attempts with the same ending share a statement. They must be their items' present ones.
func (t *Tx) closeAttempts(all []closing) error {
	type ending struct {
		outcome                 registry.Outcome
		error, remedy, response string
	}
	ended := sqldb.IDsByKey[ending]{}
	for _, c := range all {
		response, err := json.Marshal(c.verdict)
		if err != nil {
			return fmt.Errorf("encode verdict: %w", err)
		}
		if err := t.keepLog(c.Lease, c.Log); err != nil {
			return err
		}
		if c.Progress != nil {
			if err := t.progress(c.Lease, c.Progress); err != nil {
				return err
			}
		}
		ended.Add(ending{c.Outcome, c.Error, c.Remedy, string(response)}, c.Lease.ItemID)
	}
	for e, ids := range ended.All() {
		err := t.Do(`UPDATE attempt SET finished_at = $2, outcome = $3, error = $4, remedy = $5, response = $6
			WHERE (item_id, n) IN (SELECT i.id, i.attempt FROM work_item i WHERE `+t.Among("i.id")+`)`, t.List(ids), t.Now, e.outcome, e.error, e.remedy, e.response)
		if err != nil {
			return fmt.Errorf("close attempts: %w", err)
		}
	}
	return nil
}
