package work

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/holdfast/holdfast/metrics"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/bounds"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// errNoRequestID refuses a claim whose repeat could not be recognised.
var errNoRequestID = fmt.Errorf("%w: a claim needs a request id", registry.ErrInvalid)

// claiming is one claim of a group, with its answer.
type claiming struct {
	registry.ClaimRequest
	got     registry.Claim
	refused *registry.NotClaimable
}

func claimingOf(w *sqldb.Write) *claiming { return w.Of.(*claiming) }

// Claim implements registry.Working.
func (e *Engine) Claim(ctx context.Context, r registry.ClaimRequest) (registry.Claim, error) {
	if err := bounds.Check(r); err != nil {
		return registry.Claim{}, err
	}
	w := &sqldb.Write{Ctx: ctx, Kind: e.claims, Of: &claiming{ClaimRequest: r}}
	err := e.db.Queue(w)
	if err == nil && claimingOf(w).refused != nil {
		err = claimingOf(w).refused
	}
	if err != nil {
		return registry.Claim{}, fmt.Errorf("claim for %s: %w", r.Stage, err)
	}
	c := claimingOf(w).got
	c.NoteKey = e.NoteKey(c.Item.ID)
	return c, nil
}

// claimAll answers the claims of a group. A refusal is not an error, because its write must be
// kept: it frees a place in the relay's window.
func (t *Tx) claimAll(ws []*sqldb.Write) error {
	known, kept, err := t.formerClaims(ws)
	if err != nil {
		return err
	}
	strangers, err := t.refusedClaims(ws)
	if err != nil {
		return err
	}
	turns := map[registry.Stage][]*claiming{}
	var again []*sqldb.Write
	for _, w := range ws {
		c := claimingOf(w)
		c.got, c.refused = registry.Claim{}, nil
		former, repeated := known[c.RequestID]
		held, err := t.heldWorker(c.Worker)
		switch {
		case err != nil:
			return err
		case c.RequestID == "":
			w.Err = errNoRequestID
		case strangers[w] != nil:
			w.Err = strangers[w]
		case repeated && former == nil: // repeats another claim of this group
			again = append(again, w)
		case repeated && !former.of(c.ClaimRequest):
			w.Err = fmt.Errorf("%w: request id %q belongs to another claim (different stage or token)", registry.ErrInvalid, c.RequestID)
		case repeated:
			err = t.repeat(c, *former)
		case held:
			c.refused, err = t.refuseForNow(c.ClaimRequest, registry.ReasonHeld)
		default:
			known[c.RequestID] = nil
			var busy bool
			if busy, err = t.claimReserved(c, kept[c.Worker]); !busy {
				turns[c.Stage] = append(turns[c.Stage], c)
			}
		}
		if err != nil {
			return err
		}
	}
	for _, stage := range slices.Sorted(maps.Keys(turns)) {
		if err := t.claimTurns(stage, turns[stage]); err != nil {
			return err
		}
	}
	if len(again) > 0 {
		return t.claimAll(again)
	}
	return nil
}

// claimTurns gives a stage's next items to the claims for that stage. A claim gets the item that
// its message hinted at if that is among them.
func (t *Tx) claimTurns(stage registry.Stage, cs []*claiming) error {
	if err := t.promote(); err != nil {
		return err
	}
	items, shares, err := t.next(stage, len(cs))
	if err != nil {
		return err
	}
	if slices.ContainsFunc(items, turn.suspect) {
		if items, cs, err = t.separateSuspects(stage, cs); err != nil {
			return err
		}
	}
	var starts []starting
	give := func(hinted bool) {
		cs = slices.DeleteFunc(cs, func(c *claiming) bool {
			at := slices.IndexFunc(items, func(it turn) bool { return !hinted || it.ID == c.Hint })
			if at < 0 {
				return false
			}
			starts = append(starts, starting{c, items[at]})
			items = slices.Delete(items, at, at+1)
			return true
		})
	}
	give(true)
	give(false)
	if err := t.start(starts); err != nil {
		return err
	}
	for _, c := range cs {
		if c.refused, err = t.refuse(c.ClaimRequest, shares); err != nil {
			return err
		}
	}
	return nil
}

// resendMessage keeps at least as many messages on their way as there are offered items. The item
// taken had not been offered, so its message was meant for another item, which now has none. That
// item becomes due again: the hinted one if it still waits. This also holds for a message of taken
// itself, which was sent before the item came back or was answered already.
func (t *Tx) resendMessage(taken registry.WorkItem, hint string) error {
	n, err := t.Exec(`UPDATE work_item SET nudge_at = $2, nudges = 0 WHERE id = (
		SELECT o.id FROM work_item o WHERE o.stage = $3 AND o.status = 'pending' AND o.nudges > 0
		ORDER BY o.id <> $1, o.rank, o.id LIMIT 1)`, hint, t.Now, taken.Stage)
	if err != nil {
		return fmt.Errorf("send another message in place of %s: %w", taken.ID, err)
	}
	t.wake = t.wake || n > 0
	return nil
}

// StartItem starts an item for a request, out of turn. It returns *registry.NotClaimable if a hold, a
// requirement, a lock or a limit keeps the item from starting, or if it is not pending any more. A repeated
// request gets its attempt while that lives (R9).
func (t *Tx) StartItem(id string, r registry.ClaimRequest) (registry.Claim, error) {
	r.Hint = id
	c := &claiming{ClaimRequest: r}
	ws := []*sqldb.Write{{Of: c}}
	known, _, err := t.formerClaims(ws)
	if err != nil {
		return c.got, err
	}
	if f := known[r.RequestID]; f != nil && (f.ItemID != id || !f.of(r)) {
		return c.got, fmt.Errorf("%w: request id %q belongs to another claim", registry.ErrInvalid, r.RequestID)
	} else if f != nil && !f.over {
		err := t.repeat(c, *f)
		return c.got, err
	}
	strangers, err := t.refusedClaims(ws)
	if err == nil {
		err = strangers[ws[0]]
	}
	if err == nil && r.RequestID == "" {
		err = errNoRequestID
	}
	if err != nil {
		return c.got, err
	}
	held, err := t.heldWorker(r.Worker)
	if err != nil {
		return c.got, err
	}
	if held {
		return c.got, &registry.NotClaimable{ItemID: id, Reason: registry.ReasonHeld}
	}
	found, err := t.readTurns(1, selectTurn+`WHERE i.id = $1 AND i.ready = 1`, id)
	if err != nil {
		return c.got, fmt.Errorf("look at item %s: %w", id, err)
	}
	if len(found) == 0 || found[0].waiting {
		refused, err := t.refuse(r, nil)
		if err != nil {
			return c.got, err
		}
		return c.got, refused
	}
	if kept, err := t.keptByLimit(found[0].WorkItem); err != nil {
		return c.got, err
	} else if kept {
		return c.got, &registry.NotClaimable{ItemID: id, Reason: registry.ReasonLimit}
	}
	err = t.start([]starting{{c, found[0]}})
	return c.got, err
}

// former is the attempt that an earlier request got.
type former struct {
	registry.Lease
	stage registry.Stage
	over  bool
}

// of reports whether a request may be the one that got the attempt. Stage and token must match, as
// in [Tx.Live].
func (f former) of(r registry.ClaimRequest) bool {
	return f.stage == r.Stage && (r.Token == "" || f.Token == "" || r.Token == f.Token)
}

// formerClaims returns the attempts that repeated requests got the first time, by request id. kept
// maps each worker that is reserved for a suspect item to that item.
func (t *Tx) formerClaims(ws []*sqldb.Write) (known map[string]*former, kept map[string]string, err error) {
	ids := make([]string, len(ws))
	for i, w := range ws {
		ids[i] = claimingOf(w).RequestID
	}
	known, kept = map[string]*former{}, map[string]string{}
	err = sqldb.Each(t.Ask(`SELECT request_id, item_id, n, finished_at IS NOT NULL, stage, COALESCE(token, '') FROM attempt WHERE `+t.Among("request_id")+`
		UNION ALL SELECT worker, item_id, 0, FALSE, '', '' FROM alone`, t.List(ids)), "look for repeated requests", func(row sqldb.Scanner) error {
		var id string
		var f former
		if err := row.Scan(&id, &f.ItemID, &f.N, &f.over, &f.stage, &f.Token); err != nil {
			return err
		}
		if f.N == 0 {
			kept[id] = f.ItemID
		} else {
			known[id] = &f
		}
		return nil
	})
	return known, kept, err
}

// repeat answers a repeated request with the attempt of the first time, while that attempt lives
// (R9). A late repeat must not start an attempt that no worker would run.
func (t *Tx) repeat(c *claiming, f former) (err error) {
	if f.over {
		c.refused, err = t.refuse(c.ClaimRequest, nil)
		return err
	}
	c.got.Lease = registry.Lease{ItemID: f.ItemID, N: f.N}
	c.got.Item, err = t.Item(f.ItemID)
	return err
}

// starting is a claim with the item that it gets.
type starting struct {
	*claiming
	item turn
}

// start starts the attempts.
func (t *Tx) start(all []starting) error {
	if len(all) == 0 {
		return nil
	}
	t.wake = true // their places in the relay's window are free
	ids := make([]string, len(all))
	var rows [][]any
	for i, s := range all {
		ids[i] = s.item.ID
		got, row, err := t.started(s.item.WorkItem, s.ClaimRequest)
		if err != nil {
			return err
		}
		s.got = got
		if s.item.snoozed {
			waited, err := t.roomWait(s.item.WorkItem)
			if err != nil {
				return err
			}
			s.got.RoomWait = time.Duration(waited) * time.Microsecond
			if err := t.startAgain(row); err != nil {
				return err
			}
			continue
		}
		t.Took(metrics.Dispatch, sqldb.FromMicros(t.Now).Sub(s.item.RunAt), string(s.item.Stage))
		rows = append(rows, row)
		if err := t.claimEvent(got.Item, s.Worker); err != nil {
			return err
		}
	}
	err := t.Do(`UPDATE work_item SET status = 'running', ready = 0, attempt = attempt + 1, wait_reason = '', nudge_at = NULL,
		nudges = 0, updated_at = $2 WHERE `+t.Among("id"), t.List(ids), t.Now)
	if err != nil {
		return fmt.Errorf("start items: %w", err)
	}
	if err := t.InsertRows(insertAttempt, rows); err != nil {
		return fmt.Errorf("start attempts: %w", err)
	}
	for _, s := range all {
		// Functions get no messages.
		if !s.item.offered && s.item.Stage.Function() == "" {
			if err := t.resendMessage(s.item.WorkItem, s.Hint); err != nil {
				return err
			}
		}
	}
	return nil
}

// started returns the claim of a pending item that starts, and the row of its attempt.
func (t *Tx) started(it registry.WorkItem, r registry.ClaimRequest) (registry.Claim, []any, error) {
	if err := Check(it, registry.ActClaim, registry.Running); err != nil {
		return registry.Claim{}, nil, err
	}
	it.Status, it.Attempt, it.HeldBy, it.UpdatedAt = registry.Running, it.Attempt+1, nil, sqldb.FromMicros(t.Now)
	derive(&it)
	row := []any{
		it.ID, it.Attempt, r.RequestID, it.Stage, r.Worker, r.Version, t.Now, t.Now + r.Lease.Microseconds(),
		r.StuckAfter.Microseconds(), t.Now, r.MaxAttempts, r.Token,
	}
	return registry.Claim{Item: it, Lease: registry.Lease{ItemID: it.ID, N: it.Attempt}}, row, nil
}

func (t *Tx) claimEvent(it registry.WorkItem, worker string) error {
	return t.Event(it.ID, it.Attempt, string(registry.ActClaim), worker, Moved{Stage: it.Stage, Status: registry.Running, Worker: worker})
}

// insertAttempt writes attempts.
var insertAttempt = sqldb.InsertInto(
	`INSERT INTO attempt (item_id, n, request_id, stage, worker, version, started_at, lease_until, stuck_after, progress_at, max_attempts, token)`,
	`($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`)

// startAgain starts the next attempt of an item that snoozes repeatedly. It reuses the row of the
// last attempt and raises its number (R24). It writes no event.
func (t *Tx) startAgain(row []any) error {
	err := t.Do(`UPDATE attempt SET n = $2, request_id = $3, worker = $5, version = $6, started_at = $7,
		lease_until = $8, stuck_after = $9, progress_at = $10, max_attempts = $11, token = $12, advanced = 0, snoozes = snoozes + 1,
		finished_at = NULL, outcome = '', error = '', response = '', progress = '[]'
		WHERE item_id = $1 AND n = $2 - 1 AND stage = $4 AND outcome = 'snooze'`, row...)
	if err != nil {
		return fmt.Errorf("start attempt: %w", err)
	}
	return nil
}

// refuse answers a claim that got nothing with the reason why its hinted item cannot be claimed.
// The message is used up, so refuse frees the item's place in the relay's window (R20). If slot
// shares keep items back, the message stays and its worker asks again: the hinted item may have
// gone to another item's message, and that item has no other message.
func (t *Tx) refuse(r registry.ClaimRequest, shares *slotShares) (*registry.NotClaimable, error) {
	refused := &registry.NotClaimable{ItemID: r.Hint, Reason: registry.ReasonSettled}
	turned := shares != nil && shares.keptBack
	if turned {
		refused.Again = shares.retryAfter()
	}
	var it registry.WorkItem
	var isHeld, isBlocked, isLocked bool
	var runAt int64
	err := t.Get(`SELECT i.id, i.stage, i.collection, i.status, i.run_at, `+HeldBy+`, `+Blocked+`, `+LockedOut+` FROM work_item i WHERE i.id = $1`,
		[]any{r.Hint}, &it.ID, &it.Stage, &it.Collection, &it.Status, &runAt, &isHeld, &isBlocked, &isLocked)
	if errors.Is(err, sql.ErrNoRows) {
		return refused, nil
	} else if err != nil {
		return nil, fmt.Errorf("look at item %s: %w", r.Hint, err)
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
	case isHeld:
		refused.Reason = registry.ReasonHeld
	case isBlocked:
		refused.Reason = registry.ReasonBlocked
	case isLocked:
		refused.Reason = registry.ReasonLocked
	case runAt > t.Now:
		refused.Reason, refused.After = registry.ReasonNotDue, time.Duration(runAt-t.Now)*time.Microsecond
	case turned && shares.limit.of(it.Collection) == 0:
		refused.Reason = registry.ReasonLimit
		return refused, nil
	case turned:
		refused.Reason = registry.ReasonCrowded
		return refused, nil
	default:
		// The claim ended before it reached this item: it had to step over too many others.
		refused.Reason = registry.ReasonQueued
		return refused, t.refreshReady(it.ID)
	}
	freed, err := t.Exec(`UPDATE work_item SET nudges = 0 WHERE id = $1 AND nudges > 0`, it.ID)
	t.wake = t.wake || freed > 0
	return refused, err
}

// Claimed implements registry.TokenKeeper.
func (e *Engine) Claimed(ctx context.Context, q registry.ClaimedQuery) ([]registry.WorkItem, error) {
	const most = 100 // a token may have claimed thousands, with megabytes of results
	return sqldb.Collect(e.db.Read.Ask(ctx, SelectItem+`JOIN attempt a ON a.item_id = i.id AND a.n = i.attempt
		WHERE i.status = 'running' AND a.finished_at IS NULL AND a.token = $1 AND ($2 = '' OR i.collection = $2) AND i.id > $3 ORDER BY i.id`+sqldb.Limit(most),
		sqldb.Clean(q.Token), sqldb.Clean(q.Collection), q.After), "list items claimed by token "+q.Token, ScanItem)
}

// refusedClaims returns the errors of claims that may get nothing: another token has announced the
// claim's worker, or the claim's token was revoked after the request was authenticated.
func (t *Tx) refusedClaims(ws []*sqldb.Write) (map[*sqldb.Write]error, error) {
	var workers, tokens []string
	for _, w := range ws {
		workers = append(workers, claimingOf(w).Worker)
		if claimingOf(w).Token != "" {
			tokens = append(tokens, claimingOf(w).Token)
		}
	}
	owners, err := t.owners(workers)
	if err != nil {
		return nil, err
	}
	revoked, err := t.revokedTokens(tokens...)
	if err != nil {
		return nil, err
	}
	out := map[*sqldb.Write]error{}
	for _, w := range ws {
		owner := owners[claimingOf(w).Worker]
		_, isRevoked := revoked[claimingOf(w).Token]
		switch {
		case isRevoked:
			out[w] = errRevoked
		case owner.Valid && owner.String != claimingOf(w).Token:
			out[w] = registry.ErrWorkerTaken
		}
	}
	return out, nil
}
