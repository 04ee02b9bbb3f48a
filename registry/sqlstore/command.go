package sqlstore

import (
	"context"
	"encoding/json"
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
		it, err = t.command(c)
		return err
	})
	if errors.As(err, new(*registry.PastNoReturn)) || errors.As(err, new(*registry.ConfirmationNeeded)) { // which name the act and the item themselves
		return registry.WorkItem{}, err
	}
	if err != nil {
		return registry.WorkItem{}, fmt.Errorf("%s item %s: %w", c.Act, c.ItemID, err)
	}
	return it, nil
}

// command carries an act out, once for each idempotency key: a repeat changes nothing. It returns the item as it is then,
// or as it was when its rows are gone.
func (t *tx) command(c registry.Command) (registry.WorkItem, error) {
	was, err := t.asked(c)
	if err != nil {
		return was, err
	}
	it, err := t.item(c.ItemID)
	if c.Act == registry.ActPurge && errors.Is(err, registry.ErrNotFound) && was.ID != "" {
		return was, nil
	}
	return it, err
}

func (t *tx) asked(c registry.Command) (was registry.WorkItem, err error) {
	words := []string{c.ItemID, string(c.Act), string(c.From), c.Reason}
	if c.Priority != nil {
		words = append(words, strconv.Itoa(*c.Priority))
	}
	if c.AgreesTo != "" {
		words = append(words, c.AgreesTo)
	}
	args, err := fingerprint(words)
	if err != nil {
		return was, err
	}
	if _, done, err := t.keyed(c.IdempotencyKey, args); err != nil || done {
		return was, err
	}
	if was, err = t.item(c.ItemID); err != nil {
		return was, err
	}
	if err := t.carryOut(was, c); err != nil {
		return was, err
	}
	return was, t.answer(c.IdempotencyKey, args, c.ItemID, c.Act, c.Actor)
}

// carryOut does what the command asks of the item.
func (t *tx) carryOut(it registry.WorkItem, c registry.Command) error {
	switch c.Act {
	case registry.ActRequeue:
		return t.requeue(it, c)
	case registry.ActUpdateReport:
		return t.updateReport(it, c)
	case registry.ActCancel:
		to := registry.Cancelled
		if it.Action == registry.Batch && it.Status == registry.Pending && it.Stage == registry.Report && it.BlockerCount > 0 {
			to = registry.Pending // it reports what becomes of its jobs
		}
		return t.stop(it, c, to)
	case registry.ActAbort:
		return t.stop(it, c, registry.Aborted)
	case registry.ActDelete:
		return t.remove(it, c)
	case registry.ActPurge:
		return t.purge(it, c)
	case registry.ActRetryNow:
		return t.retryNow(it, c)
	case registry.ActHold, registry.ActUnhold:
		return t.holdOne(it, c)
	case registry.ActPriority:
		return t.prioritise(it, c)
	case registry.ActGiveUp:
		return t.endTelling(it, c)
	case registry.ActAbandon:
		return t.abandon(it, c)
	default:
		return refusal(it, c.Act, it.Status)
	}
}

// changeBy is what an admin's act makes of an item that stays in its stage.
func changeBy(it registry.WorkItem, c registry.Command, to registry.Status) change {
	return change{act: c.Act, stage: it.Stage, status: to, n: it.Attempt, actor: c.Actor, reason: clean(c.Reason)}
}

// requeue sends an item back to the stage where it failed or an earlier one. Tries start anew.
func (t *tx) requeue(it registry.WorkItem, c registry.Command) error {
	ch := changeBy(it, c, registry.Pending)
	route, _ := it.Route()
	if c.From != "" {
		if !slices.Contains(route.UpTo(it.Stage), c.From) {
			return fmt.Errorf("stage %q: it may start again at %v: %w", c.From, route.UpTo(it.Stage), refusal(it, c.Act, ch.status))
		}
		ch.stage = c.From
	}
	if err := t.sealed(it); err != nil {
		return err
	}
	if err := t.move(it, ch); err != nil {
		return err
	}
	if err := t.do(`UPDATE work_item SET retry_count = retry_count + 1 WHERE id = $1`, it.ID); err != nil {
		return err
	}
	if err := t.withdrawAbandonment(it, c.Actor); err != nil {
		return err
	}
	// An item that is sent further back is to be looked at anew. Where it failed it goes on from the last checkpoint: what was
	// wrong was never noted as done.
	if it.Stage == registry.Notify && ch.stage == it.Stage {
		if err := t.aim(it, c.Actor); err != nil {
			return err
		}
	}
	if it.Attempt > 0 && ch.stage != it.Stage {
		if err := t.setResult(it, registry.ResultRecheck, json.RawMessage(strconv.FormatInt(it.Attempt, 10))); err != nil {
			return err
		}
	}
	return nil
}

// stop ends an item where it stands, and the attempt at it if it runs.
func (t *tx) stop(it registry.WorkItem, c registry.Command, to registry.Status) error {
	if err := t.may(it, c.Act, to); err != nil {
		return err
	}
	if to == registry.Aborted {
		if err := t.confirmed(it, c, t.consequencesOfAbort); err != nil {
			return err
		}
	}
	ch := changeBy(it, c, to)
	if to.Settled() {
		ch.note = done(c)
	}
	if it.Status == registry.Running {
		if err := t.withdraw(it, ch.note, to); err != nil {
			return err
		}
	}
	if err := t.move(it, ch); err != nil {
		return err
	}
	if to == registry.Aborted {
		if err := errors.Join(t.endHold(it, c.Actor), t.tidy(it, c.Actor)); err != nil {
			return err
		}
		if err := t.abortDependents(it, c.Reason, c.Actor); err != nil {
			return err
		}
	}
	return t.family(it, c)
}

// done tells by whom and why an item was stopped.
func done(c registry.Command) string {
	words := map[registry.Act]string{
		registry.ActCancel: "cancelled", registry.ActAbort: "aborted", registry.ActDelete: "deleted",
	}
	by := words[c.Act] + " by " + c.Actor
	if c.Reason != "" {
		by += ": " + c.Reason
	}
	return clean(by)
}

// retryNow lets an item have its next try at once. The tries that were counted stay counted, and so does what it waited for.
func (t *tx) retryNow(it registry.WorkItem, c registry.Command) error {
	if err := check(it, c.Act, registry.Pending); err != nil {
		return err
	}
	if err := t.do(`UPDATE work_item SET run_at = $2, updated_at = $2 WHERE id = $1`, it.ID, t.now); err != nil {
		return fmt.Errorf("bring the next try of item %s forward: %w", it.ID, err)
	}
	if err := t.place(it.ID); err != nil {
		return err
	}
	return t.event(it.ID, it.Attempt, string(c.Act), c.Actor, moved{From: it.Stage, Stage: it.Stage, Status: it.Status, Reason: clean(c.Reason), Error: it.Note, Class: it.ErrorClass})
}

// updateReport lets a failed batch report again, once the jobs that run again have settled.
func (t *tx) updateReport(it registry.WorkItem, c registry.Command) error {
	if it.Action == registry.Batch && it.Status == registry.Failed && it.Stage != registry.Report {
		return fmt.Errorf("the batch failed before it had jobs; requeue it instead: %w", refusal(it, c.Act, registry.Pending))
	}
	if err := t.move(it, changeBy(it, c, registry.Pending)); err != nil {
		return err
	}
	return t.unblocked(it.ID)
}

// holdOne sets or takes away the hold on an item, which for a batch covers its jobs, too.
func (t *tx) holdOne(it registry.WorkItem, c registry.Command) error {
	if err := check(it, c.Act, it.Status); err != nil {
		return err
	}
	scope := registry.HoldItem
	if it.Action == registry.Batch {
		scope = registry.HoldBatch
	}
	if c.Act == registry.ActUnhold {
		err := t.removeHold(scope, it.ID, c.Actor)
		if errors.Is(err, registry.ErrNotFound) && scope == registry.HoldBatch {
			return t.removeHold(registry.HoldItem, it.ID, c.Actor) // of a collection that releases one by one
		}
		return err
	}
	return t.addHold(registry.Hold{Scope: scope, Key: it.ID, Reason: c.Reason, Actor: c.Actor})
}

// refusal is the state machine's answer to what it does not have.
func refusal(it registry.WorkItem, act registry.Act, to registry.Status) error {
	te := registry.Refuse(it.Position(), act, to)
	te.ItemID = it.ID
	return te
}

// isRefusal tells a no to an act from a fault of ours.
func isRefusal(err error) bool {
	var (
		transition *registry.TransitionError
		late       *registry.PastNoReturn
		confirm    *registry.ConfirmationNeeded
	)
	return errors.As(err, &transition) || errors.As(err, &late) || errors.As(err, &confirm) || errors.Is(err, registry.ErrNotFound) ||
		errors.Is(err, registry.ErrSamePerson)
}
