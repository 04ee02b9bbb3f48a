package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast/holdfast/registry"
)

// Command implements registry.Administering.
func (s *Store) Command(ctx context.Context, c registry.Command) (registry.WorkItem, error) {
	var it registry.WorkItem
	err := s.write(ctx, func(t *tx) (err error) {
		if err := t.command(c); err != nil {
			return err
		}
		it, err = t.item(c.ItemID)
		return err
	})
	if err != nil {
		return registry.WorkItem{}, fmt.Errorf("%s item %s: %w", c.Act, c.ItemID, err)
	}
	return it, nil
}

func (t *tx) command(c registry.Command) error {
	it, err := t.item(c.ItemID)
	if err != nil {
		return err
	}
	ch := change{act: c.Act, stage: it.Stage, status: registry.Pending, n: it.Attempt, actor: c.Actor, reason: c.Reason}
	switch c.Act {
	case registry.ActRequeue:
		return t.requeue(it, c, ch)
	case registry.ActUpdateReport:
		return t.updateReport(it, ch)
	case registry.ActCancel:
		ch.status = registry.Cancelled
		return t.move(it, ch)
	default:
		return &registry.TransitionError{
			ItemID: it.ID, From: it.Status, To: registry.Status(c.Act), Allowed: registry.AllowedActs(it.Action, it.Status),
		}
	}
}

// requeue sends an item back to the stage where it failed or an earlier one. Tries start anew.
func (t *tx) requeue(it registry.WorkItem, c registry.Command, ch change) error {
	route, _ := registry.RouteOf(it.Action)
	if c.From != "" {
		if !slices.Contains(route.UpTo(it.Stage), c.From) {
			return fmt.Errorf("stage %q: %w; it may start again at %v", c.From, registry.ErrNotFound, route.UpTo(it.Stage))
		}
		ch.stage = c.From
	}
	if err := t.move(it, ch); err != nil {
		return err
	}
	if _, err := t.exec(`UPDATE work_item SET retry_count = retry_count + 1 WHERE id = $1`, it.ID); err != nil {
		return err
	}
	return t.reopen(it.ID)
}

// updateReport lets a failed batch report again, once the jobs that run again have settled.
func (t *tx) updateReport(it registry.WorkItem, ch change) error {
	if it.Stage != registry.Report {
		return errors.Join(fmt.Errorf("the batch failed before it had jobs; requeue it instead"),
			&registry.TransitionError{ItemID: it.ID, From: it.Status, To: ch.status, Allowed: registry.AllowedActs(it.Action, it.Status)})
	}
	if err := t.move(it, ch); err != nil {
		return err
	}
	return t.unblocked(it.ID)
}
