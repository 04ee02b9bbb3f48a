package work

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// Change says where an item goes, and why.
type Change struct {
	act    registry.Act
	Stage  registry.Stage
	Status registry.Status
	tries  int
	losses int
	delay  int64 // microseconds until it may run
	class  registry.ErrorClass
	Note   string
	code   string // of a failure: its code, and the host that caused it
	host   string
	wait   registry.Reason
	Actor  string
	n      int64 // number of the attempt
	Reason string
}

// Shift is an item with its change.
type Shift struct {
	Item registry.WorkItem
	Change
}

// position is what a shift writes. Items with equal positions share a statement.
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
	waits           int64 // 1: the item stays in the stage in which it has waited for room
}

// Move carries out a change of one item.
func (t *Tx) Move(it registry.WorkItem, c Change) error { return t.moveAll([]Shift{{it, c}}) }

// moveAll carries out the changes of different items. It is the only place that writes the stage
// and status of known items. Items with equal positions share a statement. After all items are
// written, it releases what settled items held, and at last makes their dependents ready (R23).
func (t *Tx) moveAll(all []Shift) error {
	at := sqldb.IDsByKey[position]{}
	for i, s := range all {
		if err := Check(s.Item, s.act, s.Status); err != nil {
			return err
		}
		if s.Stage != s.Item.Stage {
			all[i].losses = 0
		}
		at.Add(t.positionOf(all[i]), s.Item.ID)
	}
	for p, ids := range at.All() {
		err := t.Do(`UPDATE work_item SET stage = $2, status = $3, tries = $4, losses = $5, error_class = $6, note = $7,
			wait_reason = $8, run_at = $9, nudge_at = $10, nudges = 0, updated_at = $11, finished_at = $12, ready = $13,
			cause = $14, cause_code = $15, cause_host = $16, purge_at = NULL, room_waited = room_waited * $17
			WHERE `+t.Among("id"), t.List(ids), p.stage, p.status, p.tries, p.losses, p.class, p.note, p.wait, p.runAt,
			p.nudge, t.Now, p.finished, p.ready, p.cause.fingerprint, p.cause.code, p.cause.host, p.waits)
		if err != nil {
			return fmt.Errorf("move items: %w", err)
		}
	}
	var gone []Shift
	var blocked []string
	for _, s := range all {
		if s.Item.BlockerCount > 0 && s.Status == registry.Pending {
			blocked = append(blocked, s.Item.ID) // readiness depends on the stage and on which requirements are open
		}
	}
	if err := t.refreshReady(blocked...); err != nil {
		return err
	}
	for _, s := range all {
		if err := t.afterMove(s); err != nil {
			return err
		}
		if s.Status.Settled() {
			gone = append(gone, s)
		}
	}
	return t.releaseSettled(gone)
}

func (t *Tx) positionOf(s Shift) position {
	p := position{
		stage: s.Stage, status: s.Status, tries: s.tries, losses: s.losses, class: s.class, note: s.Note, wait: s.wait, runAt: t.Now + s.delay,
		waits: sqldb.Bit(s.Stage == s.Item.Stage && !s.Item.Status.Settled() && !s.Status.Settled()),
	}
	if s.Status == registry.Failed {
		p.cause = causeOf(s.Stage, s.class, s.code, s.host, s.Note)
	}
	if s.Status.Settled() {
		p.finished = sql.NullInt64{Int64: t.Now, Valid: true}
	} else if s.Item.BlockerCount == 0 && s.Status == registry.Pending {
		p.nudge = messageAt(s.Stage, p.runAt)
		if s.delay <= 0 {
			p.ready = 1
		}
	}
	return p
}

// afterMove does what follows from an item's new position.
func (t *Tx) afterMove(s Shift) (err error) {
	it, c := s.Item, s.Change
	if it.Status == registry.Running && t.store.slotWaits.Load() > 0 {
		t.asked = true
	}
	if t.positionOf(s).ready == 1 {
		t.wake = true
		err = t.openLane(c.Stage, it.Collection)
	}
	if err != nil {
		return err
	}
	// An item that snoozes again for the same reason writes no event.
	if c.act != registry.ActSnooze || c.Note != it.Note {
		if err := t.movedEvent(s); err != nil {
			return err
		}
	}
	if it.Status.Settled() && !c.Status.Settled() {
		return t.reopen(it.ID)
	}
	if c.act == registry.ActAdvance && t.store.hooks.Followed(it) {
		if err := t.store.hooks.Advanced(t, s); err != nil {
			return err
		}
	}
	if it.Status == registry.Running && c.Status == registry.Pending && c.Stage == it.Stage {
		for _, paused := range t.store.hooks.Paused {
			if err := paused(t, s); err != nil {
				return err
			}
		}
	}
	if c.act == registry.ActAdvance && c.Stage == registry.Report {
		if err := t.leaveLine(it.ID); err != nil {
			return err
		}
		return t.unblocked(it.ID) // if its jobs have settled already, the batch begins its closing here
	}
	return nil
}

func (t *Tx) movedEvent(s Shift) error {
	return t.Event(s.Item.ID, s.n, string(s.act), s.Actor, Moved{
		From: s.Item.Stage, Stage: s.Stage, Status: s.Status, Reason: s.Reason, Error: s.Note, Class: s.class, Wait: string(s.wait),
	})
}

// Check returns a *registry.TransitionError unless the state machine allows the act.
func Check(it registry.WorkItem, act registry.Act, to registry.Status) error {
	err := registry.CheckAct(it.Position(), act, to)
	var te *registry.TransitionError
	if errors.As(err, &te) {
		te.ItemID = it.ID
	}
	return err
}

// releaseSettled releases what settled items hold: locks, edges of dependents, and the room of
// completed items. A failed or cancelled item keeps its staging for a requeue, and so its
// reservation. The reservation of an aborted or deleted item goes with its staging (R24).
func (t *Tx) releaseSettled(gone []Shift) error {
	if len(gone) == 0 {
		return nil
	}
	ids := make([]string, len(gone))
	for i, s := range gone {
		ids[i] = s.Item.ID
	}
	t.gone = append(t.gone, ids...)
	// Most items hold nothing any more, so ask for all of them at once.
	locked, err := t.Strings(`SELECT item_id FROM lock WHERE `+t.Among("item_id")+`
		UNION SELECT item_id FROM lock_wait WHERE `+t.Among("item_id"), t.List(ids))
	if err != nil {
		return fmt.Errorf("look for locks: %w", err)
	}
	roomy, err := t.Strings(`SELECT item_id FROM reservation WHERE `+t.Among("item_id"), t.List(ids))
	if err != nil {
		return fmt.Errorf("look for reservations: %w", err)
	}
	for _, s := range gone {
		if slices.Contains(locked, s.Item.ID) {
			if err := t.unlock(s.Item.ID); err != nil {
				return err
			}
		}
		for _, settled := range t.store.hooks.Settled {
			if err := settled(t, s); err != nil {
				return err
			}
		}
		if s.Status != registry.Completed {
			continue
		}
		if slices.Contains(roomy, s.Item.ID) {
			if err := t.Unreserve(s.Item.ID); err != nil {
				return err
			}
		}
		if err := t.setRetention(s.Item); err != nil {
			return err
		}
	}
	for _, settled := range t.store.hooks.SettledTogether {
		if err := settled(t, gone); err != nil {
			return err
		}
	}
	return t.satisfy(gone)
}
