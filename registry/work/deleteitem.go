package work

import (
	"errors"
	"fmt"

	"github.com/holdfast/holdfast/registry"
)

// remove gives an item up. A batch's jobs follow by a bulk act of their own.
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
	// The staging of what was aborted has been seen to, but not the upload of a batch whose jobs go
	// only now.
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

// endHold takes away the hold on an item that is given up for good: what of its jobs is only
// carried on would be held by it for ever.
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

// confirmed returns a *registry.ConfirmationNeeded when an act has consequences that nobody
// confirmed.
func (t *Tx) confirmed(it registry.WorkItem, c registry.Command) error {
	if c.Confirmed {
		return nil
	}
	needed, err := t.store.hooks.Consequences(t, it, c.Act)
	switch {
	case err != nil:
		return fmt.Errorf("look what %s of item %s would take along: %w", c.Act, it.ID, err)
	case len(needed) > 0:
		return &registry.ConfirmationNeeded{ItemID: it.ID, Act: c.Act, Consequences: needed}
	}
	return nil
}
