package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// errNoRequestID refuses a claim that could not be told from another one.
var errNoRequestID = fmt.Errorf("%w: a claim needs a request id", registry.ErrInvalid)

// Claim implements registry.Working.
func (s *Store) Claim(ctx context.Context, r registry.ClaimRequest) (registry.Claim, error) {
	var c registry.Claim
	var refused *registry.NotClaimable
	err := s.write(ctx, func(t *tx) (err error) {
		c, refused, err = t.claim(r)
		return err
	})
	if err == nil && refused != nil {
		err = refused
	}
	if err != nil {
		return registry.Claim{}, fmt.Errorf("claim for %s: %w", r.Stage, err)
	}
	return c, nil
}

// claim returns a refusal apart from an error: what a refusal writes (the freed place in the window) must stay.
func (t *tx) claim(r registry.ClaimRequest) (registry.Claim, *registry.NotClaimable, error) {
	if r.RequestID == "" {
		return registry.Claim{}, nil, errNoRequestID
	}
	if c, over, err := t.claimed(r); err != nil || over || c.Lease.N > 0 {
		if over {
			// A late repeat must not start an attempt that nobody would run.
			refused, err := t.refuse(r)
			return registry.Claim{}, refused, err
		}
		return c, nil, err
	}
	if held, err := t.heldWorker(r.Worker); err != nil {
		return registry.Claim{}, nil, err
	} else if held {
		refused, err := t.turnAway(r)
		return registry.Claim{}, refused, err
	}
	if err := t.promote(); err != nil {
		return registry.Claim{}, nil, err
	}
	id, err := t.next(r.Stage)
	if err != nil {
		return registry.Claim{}, nil, err
	}
	if id == "" {
		refused, err := t.refuse(r)
		return registry.Claim{}, refused, err
	}
	it, err := t.item(id)
	if err != nil {
		return registry.Claim{}, nil, err
	}
	if err := check(it, registry.ActClaim, registry.Running); err != nil {
		return registry.Claim{}, nil, err
	}
	if it.ID != r.Hint { // a message for another item fetched it
		if err := t.ringAgain(it, r.Hint); err != nil {
			return registry.Claim{}, nil, err
		}
	}
	if err := t.served(it.Stage, it.Collection); err != nil {
		return registry.Claim{}, nil, err
	}
	c, err := t.start(it, r)
	return c, nil, err
}

// ringAgain keeps at least as many messages on their way as there are offered items: when a message fetches an item that
// was not offered itself, one that was has lost its message, the hinted one if it still waits, and is due again.
func (t *tx) ringAgain(taken registry.WorkItem, hint string) error {
	n, err := t.exec(`UPDATE work_item SET nudge_at = $3, nudges = 0 WHERE id = (
		SELECT o.id FROM work_item o WHERE o.stage = $4 AND o.status = 'pending' AND o.nudges > 0 AND o.id <> $1
			AND EXISTS (SELECT 1 FROM work_item i WHERE i.id = $1 AND i.nudges = 0)
		ORDER BY o.id <> $2, o.rank, o.id LIMIT 1)`, taken.ID, hint, t.now, taken.Stage)
	if err != nil {
		return fmt.Errorf("ring again in place of %s: %w", taken.ID, err)
	}
	t.wake = t.wake || n > 0
	return nil
}

// claimed answers a repeated request with the attempt it got the first time, while that lives (R9); over says that the
// request had an attempt which has ended.
func (t *tx) claimed(r registry.ClaimRequest) (c registry.Claim, over bool, err error) {
	err = t.get(`SELECT item_id, n, finished_at IS NOT NULL FROM attempt WHERE request_id = $1`, []any{r.RequestID},
		&c.Lease.ItemID, &c.Lease.N, &over)
	if errors.Is(err, sql.ErrNoRows) {
		return registry.Claim{}, false, nil
	} else if err != nil || over {
		return registry.Claim{}, over, err
	}
	c.Item, err = t.item(c.Lease.ItemID)
	return c, false, err
}

func (t *tx) start(it registry.WorkItem, r registry.ClaimRequest) (registry.Claim, error) {
	l := registry.Lease{ItemID: it.ID, N: it.Attempt + 1}
	t.wake = true // its place in the relay's window is free
	err := t.do(`UPDATE work_item SET status = 'running', ready = 0, attempt = $2, wait_reason = '', nudge_at = NULL, nudges = 0,
		updated_at = $3 WHERE id = $1`, it.ID, l.N, t.now)
	if err != nil {
		return registry.Claim{}, err
	}
	row := []any{
		it.ID, l.N, r.RequestID, it.Stage, r.Worker, r.Version, t.now, t.now + r.Lease.Microseconds(),
		r.StuckAfter.Microseconds(), r.MaxAttempts,
	}
	// An item that snoozes again and again keeps one attempt row, whose number grows (R24), and is not news.
	again, err := t.exec(`UPDATE attempt SET n = $2, request_id = $3, worker = $5, version = $6, started_at = $7,
		lease_until = $8, stuck_after = $9, progress_at = $7, max_attempts = $10, advanced = 0, snoozes = snoozes + 1,
		finished_at = NULL, outcome = '', error = '', response = '', progress = '[]'
		WHERE item_id = $1 AND n = $2 - 1 AND stage = $4 AND outcome = 'snooze'`, row...)
	if err != nil {
		return registry.Claim{}, err
	}
	if again == 0 {
		err = t.do(`INSERT INTO attempt (item_id, n, request_id, stage, worker, version, started_at, lease_until,
			stuck_after, progress_at, max_attempts) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $7, $10)`, row...)
		if err != nil {
			return registry.Claim{}, err
		}
		err = t.event(it.ID, l.N, string(registry.ActClaim), r.Worker,
			moved{Stage: it.Stage, Status: registry.Running, Worker: r.Worker})
		if err != nil {
			return registry.Claim{}, err
		}
	}
	it.Status, it.Attempt, it.HeldBy, it.UpdatedAt = registry.Running, l.N, nil, fromMicros(t.now)
	it.State, it.AllowedActs = registry.StateOf(it.Position()), registry.AllowedActs(it.Position())
	return registry.Claim{Item: it, Lease: l}, nil
}

// refuse says why the hinted item cannot be had, and frees its place in the relay's window (R20): the message that
// brought the hint is used up.
func (t *tx) refuse(r registry.ClaimRequest) (*registry.NotClaimable, error) {
	refused := &registry.NotClaimable{ItemID: r.Hint, Reason: registry.ReasonSettled}
	it, err := t.item(r.Hint)
	if errors.Is(err, registry.ErrNotFound) {
		return refused, nil
	} else if err != nil {
		return nil, err
	}
	switch {
	case it.Status == registry.Running:
		refused.Reason = registry.ReasonRunningElsewhere
		return refused, nil
	case it.Status != registry.Pending:
		return refused, nil
	case it.Stage != r.Stage:
		refused.Reason = registry.ReasonWrongStage
		return refused, nil
	}
	refused.Reason, err = t.waitsFor(it)
	if err != nil {
		return nil, err
	}
	if wait := micros(it.RunAt) - t.now; refused.Reason == registry.ReasonNotDue && wait > 0 {
		refused.After = time.Duration(wait) * time.Microsecond
	}
	if refused.Reason == registry.ReasonQueued {
		// It was not come by this time, for all that had to be looked at before it.
		return refused, t.place(it.ID)
	}
	freed, err := t.exec(`UPDATE work_item SET nudges = 0 WHERE id = $1 AND nudges > 0`, it.ID)
	t.wake = t.wake || freed > 0
	return refused, err
}

// waitsFor tells what keeps a pending item from being claimed; ReasonQueued when nothing does.
func (t *tx) waitsFor(it registry.WorkItem) (registry.Reason, error) {
	var isBlocked, isHeld, isLocked, due bool
	err := t.get(`SELECT `+blocked+`, `+heldBy+`, `+lockedOut+`, i.run_at <= $2 FROM work_item i WHERE i.id = $1`,
		[]any{it.ID, t.now}, &isBlocked, &isHeld, &isLocked, &due)
	switch {
	case err != nil:
		return "", err
	case isHeld:
		return registry.ReasonHeld, nil
	case isBlocked:
		return registry.ReasonBlocked, nil
	case isLocked:
		return registry.ReasonLocked, nil
	case !due:
		return registry.ReasonNotDue, nil
	}
	return registry.ReasonQueued, nil
}
