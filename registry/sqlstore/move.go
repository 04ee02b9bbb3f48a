package sqlstore

import (
	"database/sql"
	"errors"
	"fmt"

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
	wait   registry.Reason
	actor  string
	n      int64 // the attempt
	reason string
}

// move carries out a change: the one place where (stage, status) of a known item is written.
func (t *tx) move(it registry.WorkItem, c change) error {
	if err := check(it, c.act, c.status); err != nil {
		return err
	}
	var finished, nudge sql.NullInt64
	runAt, ready := t.now+c.delay, 0
	if c.status.Settled() {
		finished = sql.NullInt64{Int64: t.now, Valid: true}
	} else if it.BlockerCount == 0 && c.status == registry.Pending {
		nudge = sql.NullInt64{Int64: runAt, Valid: true}
		if c.delay <= 0 {
			ready, t.wake = 1, true
		}
	}
	if c.stage != it.Stage {
		c.losses = 0
	}
	err := t.do(`UPDATE work_item SET stage = $2, status = $3, tries = $4, losses = $5, error_class = $6, note = $7,
		wait_reason = $8, run_at = $9, nudge_at = $10, nudges = 0, updated_at = $11, finished_at = $12, ready = $13 WHERE id = $1`,
		it.ID, c.stage, c.status, c.tries, c.losses, c.class, c.note, c.wait, runAt, nudge, t.now, finished, ready)
	if err != nil {
		return fmt.Errorf("move item %s: %w", it.ID, err)
	}
	if ready == 1 {
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
		if err := t.reopen(it.ID); err != nil {
			return err
		}
	}
	switch {
	case c.status.Settled():
		return t.letGo(it, c.status)
	case c.act == registry.ActAdvance && c.stage == registry.Report:
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

// letGo releases what a settled item had: its locks, its edges to dependents, and, when it completed, its room.
// A failed or cancelled item keeps its staging for a requeue, and so its reservation; that of an aborted or deleted one
// goes when its staging is gone (R24).
func (t *tx) letGo(it registry.WorkItem, to registry.Status) error {
	if err := t.unlock(it.ID); err != nil {
		return err
	}
	if to == registry.Completed {
		if err := t.unreserve(it.ID); err != nil {
			return err
		}
		if err := t.tidied(it); err != nil {
			return err
		}
	}
	return t.satisfy(it.ID, to)
}
