package sqlstore

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast/holdfast/registry"
)

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
	code   string // of a failure: what happened in one word, and with which host
	host   string
	wait   registry.Reason
	actor  string
	n      int64 // the attempt
	reason string
}

// shift is an item that goes somewhere.
type shift struct {
	it registry.WorkItem
	change
}

// position is what a shift writes.
type position struct {
	stage           registry.Stage
	status          registry.Status
	tries, losses   int
	class           registry.ErrorClass
	note            string
	cause           cause
	wait            registry.Reason
	runAt           int64
	nudge, finished sql.NullInt64
	ready           int
	waits           int64 // 1: it is still in the stage where it has waited for room
}

// move carries out a change.
func (t *tx) move(it registry.WorkItem, c change) error { return t.moveAll([]shift{{it, c}}) }

// moveAll carries out changes of different items: the one place where (stage, status) of known items is written. Items
// that come to the same position share a statement, and what settled items leave behind is seen to for all of them, their
// dependents last (R23).
func (t *tx) moveAll(all []shift) error {
	at := groups[position]{}
	for i, s := range all {
		if err := check(s.it, s.act, s.status); err != nil {
			return err
		}
		if s.stage != s.it.Stage {
			all[i].losses = 0
		}
		at.add(t.positionOf(all[i]), s.it.ID)
	}
	for p, ids := range at.all() {
		err := t.do(`UPDATE work_item SET stage = $2, status = $3, tries = $4, losses = $5, error_class = $6, note = $7,
			wait_reason = $8, run_at = $9, nudge_at = $10, nudges = 0, updated_at = $11, finished_at = $12, ready = $13,
			cause = $14, cause_code = $15, cause_host = $16, purge_at = NULL, room_waited = room_waited * $17
			WHERE `+t.among("id"), t.list(ids), p.stage, p.status, p.tries, p.losses, p.class, p.note, p.wait, p.runAt,
			p.nudge, t.now, p.finished, p.ready, p.cause.fingerprint, p.cause.code, p.cause.host, p.waits)
		if err != nil {
			return fmt.Errorf("move items: %w", err)
		}
	}
	var gone []shift
	for _, s := range all {
		if err := t.moved(s); err != nil {
			return err
		}
		if s.status.Settled() {
			gone = append(gone, s)
		}
	}
	return t.letGo(gone)
}

func (t *tx) positionOf(s shift) position {
	p := position{
		stage: s.stage, status: s.status, tries: s.tries, losses: s.losses, class: s.class, note: s.note, wait: s.wait, runAt: t.now + s.delay,
		waits: bit(s.stage == s.it.Stage && !s.it.Status.Settled() && !s.status.Settled()),
	}
	if s.status == registry.Failed {
		p.cause = causeOf(s.stage, s.class, s.code, s.host, s.note)
	}
	if s.status.Settled() {
		p.finished = sql.NullInt64{Int64: t.now, Valid: true}
	} else if s.it.BlockerCount == 0 && s.status == registry.Pending {
		p.nudge = sql.NullInt64{Int64: p.runAt, Valid: true}
		if s.delay <= 0 {
			p.ready = 1
		}
	}
	return p
}

// moved sees to what follows from an item's new position.
func (t *tx) moved(s shift) (err error) {
	it, c := s.it, s.change
	if t.positionOf(s).ready == 1 {
		t.wake = true
		err = t.openLane(c.stage, it.Collection)
	} else if it.BlockerCount > 0 && c.status == registry.Pending {
		err = t.place(it.ID) // whether its open prerequisites matter depends on the stage and on them
	}
	if err != nil {
		return err
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
	if it.Status.Settled() && !c.status.Settled() {
		return t.reopen(it.ID)
	}
	if c.act == registry.ActAdvance && c.stage == registry.Report {
		if err := t.leaveLine(it.ID); err != nil {
			return err
		}
		return t.unblocked(it.ID) // a batch whose jobs are settled already begins its closing here
	}
	return nil
}

// check asks the state machine.
func check(it registry.WorkItem, act registry.Act, to registry.Status) error {
	err := registry.CheckAct(it.Position(), act, to)
	var te *registry.TransitionError
	if errors.As(err, &te) {
		te.ItemID = it.ID
	}
	return err
}

// letGo releases what settled items had: their locks, their edges to dependents, and, when they completed, their room.
// A failed or cancelled item keeps its staging for a requeue, and so its reservation; that of an aborted or deleted one
// goes when its staging is gone (R24).
func (t *tx) letGo(gone []shift) error {
	if len(gone) == 0 {
		return nil
	}
	ids := make([]string, len(gone))
	for i, s := range gone {
		ids[i] = s.it.ID
	}
	// Most had nothing any more.
	locked, err := t.strings(`SELECT item_id FROM lock WHERE `+t.among("item_id")+`
		UNION SELECT item_id FROM lock_wait WHERE `+t.among("item_id"), t.list(ids))
	if err != nil {
		return fmt.Errorf("look for locks: %w", err)
	}
	roomy, err := t.strings(`SELECT item_id FROM reservation WHERE `+t.among("item_id"), t.list(ids))
	if err != nil {
		return fmt.Errorf("look for reservations: %w", err)
	}
	for _, s := range gone {
		if slices.Contains(locked, s.it.ID) {
			if err := t.unlock(s.it.ID); err != nil {
				return err
			}
		}
		if err := errors.Join(t.endCheck(s), t.tellFailed(s), t.mailFailed(s), t.mailStopped(s), t.closeDeliveries(s)); err != nil {
			return err
		}
		if s.status != registry.Completed {
			continue
		}
		if slices.Contains(roomy, s.it.ID) {
			if err := t.unreserve(s.it.ID); err != nil {
				return err
			}
		}
		if err := errors.Join(t.tidied(s.it), t.tidyAgain(s.it), t.keep(s.it)); err != nil {
			return err
		}
	}
	return t.satisfy(gone)
}
