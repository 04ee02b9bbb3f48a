package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"

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

// command carries an act out, once for each idempotency key: a repeat changes nothing.
func (t *tx) command(c registry.Command) error {
	asked := []string{c.ItemID, string(c.Act), string(c.From), c.Reason}
	if c.Priority != nil {
		asked = append(asked, strconv.Itoa(*c.Priority))
	}
	args, err := fingerprint(asked)
	if err != nil {
		return err
	}
	if _, done, err := t.keyed(c.IdempotencyKey, args); err != nil || done {
		return err
	}
	if err := t.carryOut(c); err != nil {
		return err
	}
	return t.answer(c.IdempotencyKey, args, c.ItemID, c.Act, c.Actor)
}

func (t *tx) carryOut(c registry.Command) error {
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
		return t.cancel(it, ch)
	case registry.ActPriority:
		return t.prioritise(it, c)
	default:
		return refusal(it, registry.Status(c.Act))
	}
}

// requeue sends an item back to the stage where it failed or an earlier one. Tries start anew.
func (t *tx) requeue(it registry.WorkItem, c registry.Command, ch change) error {
	route, _ := registry.RouteOf(it.Action)
	if c.From != "" {
		if !slices.Contains(route.UpTo(it.Stage), c.From) {
			return fmt.Errorf("stage %q: it may start again at %v: %w", c.From, route.UpTo(it.Stage), refusal(it, ch.status))
		}
		ch.stage = c.From
	}
	if err := t.move(it, ch); err != nil {
		return err
	}
	if _, err := t.exec(`UPDATE work_item SET retry_count = retry_count + 1 WHERE id = $1`, it.ID); err != nil {
		return err
	}
	if ch.stage == registry.Report && it.ErrorClass == registry.JobsFault {
		return t.unblocked(it.ID) // its report is out: another run of it is an update
	}
	return t.reopen(it.ID)
}

// cancel stops an item, unless it has announced a version: that can only be rolled forward (R7).
func (t *tx) cancel(it registry.WorkItem, ch change) error {
	var object string
	var version int
	err := t.get(`SELECT object_id, version FROM object_version WHERE item_id = $1 LIMIT 1`, []any{it.ID}, &object, &version)
	switch {
	case err == nil:
		return fmt.Errorf("past the point of no return: it is version %d of %s: %w", version, object, refusal(it, ch.status))
	case !errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("look for a version of item %s: %w", it.ID, err)
	}
	return t.move(it, ch)
}

func refusal(it registry.WorkItem, to registry.Status) error {
	return &registry.TransitionError{ItemID: it.ID, From: it.Status, To: to, Allowed: it.AllowedActs}
}

// updateReport lets a failed batch report again, once the jobs that run again have settled.
func (t *tx) updateReport(it registry.WorkItem, ch change) error {
	if it.Stage != registry.Report {
		return fmt.Errorf("the batch failed before it had jobs; requeue it instead: %w", refusal(it, ch.status))
	}
	if err := t.move(it, ch); err != nil {
		return err
	}
	return t.unblocked(it.ID)
}
