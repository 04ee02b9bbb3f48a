package work

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/holdfast/holdfast/registry"
)

// decide turns a worker's outcome into a change, by the route and the rules in docs/states.md.
func (t *Tx) decide(it registry.WorkItem, se registry.Settlement) (Change, error) {
	c := Change{Stage: it.Stage, Status: registry.Pending, tries: it.Tries, n: se.Lease.N, Actor: "worker", Note: se.Error}
	route, _ := it.Route()
	step, ok := route.Step(it.Stage)
	if !ok {
		return c, fmt.Errorf("stage %s is not on the route of %s", it.Stage, it.Action)
	}
	switch se.Outcome {
	case registry.OutcomeDone:
		return t.advance(it, route, c)
	case registry.OutcomeRetry:
		c.act, c.tries, c.delay, c.class = registry.ActRetry, it.Tries+1, se.Delay.Microseconds(), se.Class
		c.code, c.host = se.Code, se.Host
		if c.tries < bound(se.MaxAttempts) {
			return c, nil
		}
		if step.NeverFails {
			return t.advance(it, route, c)
		}
		c.act, c.Status = registry.ActFail, registry.Failed
		return c, nil
	case registry.OutcomeSnooze:
		c.act, c.delay, c.wait = registry.ActSnooze, se.Delay.Microseconds(), se.Reason
		err := t.unlockedMeanwhile(it, &c)
		return c, err
	case registry.OutcomeSentBack:
		return t.sendBack(it, route, se, c)
	case registry.OutcomeReleased:
		// A worker's stop says nothing about the item. Keep only the note of failures that still
		// count.
		c.act, c.Reason, c.Note = registry.ActRelease, se.Error, ""
		if it.Tries > 0 {
			c.Note, c.class = it.Note, it.ErrorClass
		}
		return c, nil
	case registry.OutcomeFailed:
		c.act, c.Status, c.class = registry.ActFail, registry.Failed, se.Class
		c.code, c.host = se.Code, se.Host
		return c, nil
	case registry.OutcomeLost, registry.OutcomeWithdrawn:
	}
	return c, fmt.Errorf("%w: a worker cannot settle with outcome %q", registry.ErrInvalid, se.Outcome)
}

// sendBack moves the item to an earlier stage. It fails the item that was sent back as often as it
// may be tried.
func (t *Tx) sendBack(it registry.WorkItem, route registry.Route, se registry.Settlement, c Change) (Change, error) {
	if se.Back == it.Stage || !slices.Contains(route.UpTo(it.Stage), se.Back) {
		return c, fmt.Errorf("%w: %s cannot be sent back to %q; the stages before it are %v", registry.ErrInvalid, it.Stage, se.Back, registry.AllOf(route.UpTo(it.Stage)))
	}
	sent := registry.SentBack{Requeues: it.RetryCount}
	var before registry.SentBack
	if raw, ok := it.Results[registry.ResultSentBack]; ok {
		if err := json.Unmarshal(raw, &before); err != nil {
			return c, fmt.Errorf("decode how often item %s was sent back: %w", it.ID, err)
		}
	}
	if before.Requeues == it.RetryCount {
		sent.Times = before.Times
	}
	sent.Times++
	raw, err := json.Marshal(sent)
	if err != nil {
		return c, fmt.Errorf("encode how often item %s was sent back: %w", it.ID, err)
	}
	if err := t.SetResult(it, registry.ResultSentBack, raw); err != nil {
		return c, err
	}
	c.class, c.code, c.host = se.Class, se.Code, se.Host
	if sent.Times >= bound(se.MaxAttempts) {
		c.act, c.Status = registry.ActFail, registry.Failed
		c.Note = fmt.Sprintf("sent back to %s %d times: %s", se.Back, sent.Times-1, c.Note)
		return c, nil
	}
	c.act, c.Stage, c.tries = registry.ActSendBack, se.Back, 0
	return c, nil
}

// advance moves the item to its next stage, or ends it after the last one.
func (t *Tx) advance(it registry.WorkItem, route registry.Route, c Change) (Change, error) {
	c.tries, c.Note, c.class, c.code, c.host, c.delay = 0, "", "", "", "", 0
	if next, more := route.Next(it.Stage); more {
		c.act, c.Stage = registry.ActAdvance, next
		return c, nil
	}
	c.act, c.Status = registry.ActComplete, registry.Completed
	if it.Action != registry.Batch {
		return c, nil
	}
	bad, safe, all, err := t.reported(it)
	if err != nil {
		return c, fmt.Errorf("count failed jobs: %w", err)
	}
	if bad == 0 && all == 0 {
		// A duplicate batch has no jobs. A batch whose jobs were all deleted produced nothing.
		if err := t.Get(`SELECT COUNT(*) FROM work_item WHERE parent_id = $1`, []any{it.ID}, &all); err != nil {
			return c, fmt.Errorf("count deleted jobs: %w", err)
		}
		bad = all
	}
	if bad > 0 {
		c.act, c.Status, c.class, c.code = registry.ActFail, registry.Failed, registry.JobsFault, "jobs"
		c.Note = fmt.Sprintf("%d of %d jobs did not complete", bad, all)
		if safe > 0 {
			c.Note += registry.Either(safe, "; the object of 1 of them is preserved", "; the objects of %d of them are preserved")
		}
	}
	return c, nil
}

// reported counts a batch's jobs as its stored report did, so that batch and report agree whatever
// happened to the jobs since. Without a stored report it counts them as they are now.
func (t *Tx) reported(batch registry.WorkItem) (bad, safe, all int64, err error) {
	bad, safe, all, stored, err := t.store.hooks.Reported(t, batch)
	if err == nil && !stored {
		err = t.Get(`SELECT COUNT(CASE WHEN status <> 'completed' THEN 1 END), COUNT(*) FROM work_item WHERE parent_id = $1 AND status <> 'deleted'`,
			[]any{batch.ID}, &bad, &all)
	}
	return bad, safe, all, err
}

// unlockedMeanwhile removes the delay of an item that snoozes for a lock if the lock became free
// while the item was settling. An item that stands in no lock's line waits for something else on
// the object and keeps its delay.
func (t *Tx) unlockedMeanwhile(it registry.WorkItem, c *Change) error {
	if c.wait != registry.ReasonLocked {
		return nil
	}
	var free bool
	err := t.Get(`SELECT EXISTS (SELECT 1 FROM lock_wait w WHERE w.item_id = i.id) AND NOT `+LockedOut+`
		FROM work_item i WHERE i.id = $1`, []any{it.ID}, &free)
	if err != nil {
		return fmt.Errorf("read locks: %w", err)
	}
	if free {
		c.delay = 0
	}
	return nil
}

// bound returns how many counted failures an item may have in a stage if its worker sent n; 0 means
// the default (I11).
func bound(n int) int {
	const unset = 5
	if n <= 0 {
		return unset
	}
	return n
}
