package work

import (
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
)

// remove deletes an item. A bulk act of its own deletes a batch's jobs.
func (t *Tx) remove(it registry.WorkItem, c registry.Command) error {
	if err := t.may(it, c.Act, registry.Deleted); err != nil {
		return err
	}
	if err := t.confirmed(it, c); err != nil {
		return err
	}
	ch := ChangeBy(it, c, registry.Deleted)
	ch.Note = stopNote(c)
	if err := t.Move(it, ch); err != nil {
		return err
	}
	// An aborted item's staging was cleaned up by the abort. A batch's upload goes only now, with
	// its jobs.
	if it.Status != registry.Aborted || it.Action == registry.Batch {
		if err := t.store.hooks.Stopped(t, it, c.Actor); err != nil {
			return err
		}
	}
	if err := errors.Join(t.endHold(it, c.Actor), t.abortDependents(it, c.Reason, c.Actor)); err != nil {
		return err
	}
	return t.actOnJobs(it, c)
}

// endHold releases the hold on an item that is aborted or deleted. Otherwise it would hold for ever
// those of its jobs that must still be completed.
func (t *Tx) endHold(it registry.WorkItem, actor string) error {
	if !it.OwnHold {
		return nil
	}
	for _, scope := range []registry.HoldScope{registry.HoldItem, registry.HoldBatch} {
		if err := t.removeHold(scope, it.ID, actor); err != nil && !errors.Is(err, registry.ErrNotFound) {
			return fmt.Errorf("release the hold on item %s: %w", it.ID, err)
		}
	}
	return nil
}

// confirmed returns a *registry.ConfirmationNeeded if the act has consequences and the command does
// not confirm them.
func (t *Tx) confirmed(it registry.WorkItem, c registry.Command) error {
	if c.Confirmed {
		return nil
	}
	needed, err := t.store.hooks.Consequences(t, it, c.Act)
	switch {
	case err != nil:
		return fmt.Errorf("look for the consequences of %s for item %s: %w", c.Act, it.ID, err)
	case len(needed) > 0:
		return &registry.ConfirmationNeeded{ItemID: it.ID, Act: c.Act, Consequences: needed}
	}
	return nil
}
