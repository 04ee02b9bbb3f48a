package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// Command implements registry.Commanding.
func (e *Engine) Command(ctx context.Context, c registry.Command) (registry.WorkItem, error) {
	if c.DryRun {
		c.IdempotencyKey = ""
	}
	var it registry.WorkItem
	err := e.WriteOrTry(ctx, c.DryRun, func(t *Tx) (err error) {
		it, err = t.command(c)
		return err
	})
	if errors.As(err, new(*registry.PastNoReturn)) || errors.As(err, new(*registry.ConfirmationNeeded)) { // these errors name the act and the item already
		return registry.WorkItem{}, err
	}
	if err != nil {
		return registry.WorkItem{}, fmt.Errorf("%s item %s: %w", c.Act, c.ItemID, err)
	}
	return it, nil
}

// command carries out an act, once for each idempotency key. It returns the item as it is
// afterwards, or as it was before if its rows are gone.
func (t *Tx) command(c registry.Command) (registry.WorkItem, error) {
	was, err := t.commandOnce(c)
	if err != nil {
		return was, err
	}
	it, err := t.Item(c.ItemID)
	if c.Act == registry.ActPurge && errors.Is(err, registry.ErrNotFound) && was.ID != "" {
		return was, nil
	}
	return it, err
}

func (t *Tx) commandOnce(c registry.Command) (was registry.WorkItem, err error) {
	words := []string{c.ItemID, string(c.Act), string(c.From), c.Reason}
	if c.Priority != nil {
		words = append(words, strconv.Itoa(*c.Priority))
	}
	if c.AgreesTo != "" {
		words = append(words, c.AgreesTo)
	}
	args, err := Fingerprint(words)
	if err != nil {
		return was, err
	}
	if _, done, err := t.Keyed(c.IdempotencyKey, args); err != nil || done {
		return was, err
	}
	if was, err = t.Item(c.ItemID); err != nil {
		return was, err
	}
	if err := t.CarryOut(was, c); err != nil {
		return was, err
	}
	return was, t.Answer(c.IdempotencyKey, args, c.ItemID, c.Act, c.Actor)
}

// CarryOut carries out a command on an item.
func (t *Tx) CarryOut(it registry.WorkItem, c registry.Command) error {
	switch c.Act {
	case registry.ActRequeue:
		return t.requeue(it, c)
	case registry.ActUpdateReport:
		return t.updateReport(it, c)
	case registry.ActCancel:
		to := registry.Cancelled
		if it.Action == registry.Batch && it.Status == registry.Pending && it.Stage == registry.Report && it.BlockerCount > 0 {
			to = registry.Pending // it reports the outcomes of its jobs
		}
		return t.stop(it, c, to)
	case registry.ActAbort:
		return t.stop(it, c, registry.Aborted)
	case registry.ActDelete:
		return t.remove(it, c)
	case registry.ActPurge:
		return t.Purge(it, c)
	case registry.ActRetryNow:
		return t.retryNow(it, c)
	case registry.ActHold, registry.ActUnhold:
		return t.holdOne(it, c)
	case registry.ActPriority:
		return t.prioritise(it, c)
	default:
		if act := t.store.hooks.acts[c.Act]; act != nil {
			return act(t, it, c)
		}
		return refusal(it, c.Act, it.Status)
	}
}

// ChangeBy returns the change by which a person's act leaves an item in its stage, with a new
// status.
func ChangeBy(it registry.WorkItem, c registry.Command, to registry.Status) Change {
	return Change{act: c.Act, Stage: it.Stage, Status: to, n: it.Attempt, Actor: c.Actor, Reason: sqldb.Clean(c.Reason)}
}

// requeue makes an item pending again, at the stage where it failed or an earlier one. Its tries
// start at zero.
func (t *Tx) requeue(it registry.WorkItem, c registry.Command) error {
	ch := ChangeBy(it, c, registry.Pending)
	route, _ := it.Route()
	if c.From != "" {
		if !slices.Contains(route.UpTo(it.Stage), c.From) {
			return fmt.Errorf("it cannot restart at stage %q, only at %v: %w", c.From, registry.OneOf(route.UpTo(it.Stage)), refusal(it, c.Act, ch.Status))
		}
		ch.Stage = c.From
	}
	if err := t.sealed(it); err != nil {
		return err
	}
	if err := t.Move(it, ch); err != nil {
		return err
	}
	if err := t.Do(`UPDATE work_item SET retry_count = retry_count + 1 WHERE id = $1`, it.ID); err != nil {
		return err
	}
	for _, requeued := range t.store.hooks.Requeued {
		if err := requeued(t, it, ch); err != nil {
			return err
		}
	}
	// An item that goes back to an earlier stage is checked again from there. In the stage where it
	// failed it continues from the last checkpoint, because faulty data were never recorded as
	// done.
	if it.Attempt > 0 && ch.Stage != it.Stage {
		if err := t.SetResult(it, registry.ResultRecheck, json.RawMessage(strconv.FormatInt(it.Attempt, 10))); err != nil {
			return err
		}
	}
	return nil
}

// stop cancels or aborts an item, and withdraws its attempt if it runs.
func (t *Tx) stop(it registry.WorkItem, c registry.Command, to registry.Status) error {
	if err := t.may(it, c.Act, to); err != nil {
		return err
	}
	if to == registry.Aborted {
		if err := t.confirmed(it, c); err != nil {
			return err
		}
	}
	ch := ChangeBy(it, c, to)
	if to.Settled() {
		ch.Note = stopNote(c)
	}
	if it.Status == registry.Running {
		if err := t.withdraw(it, ch.Note, to); err != nil {
			return err
		}
	}
	if err := t.Move(it, ch); err != nil {
		return err
	}
	if to == registry.Aborted {
		if err := errors.Join(t.endHold(it, c.Actor), t.store.hooks.Stopped(t, it, c.Actor)); err != nil {
			return err
		}
		if err := t.abortDependents(it, c.Reason, c.Actor); err != nil {
			return err
		}
	}
	return t.actOnJobs(it, c)
}

// actOnJobs carries out the act on a batch's jobs.
func (t *Tx) actOnJobs(it registry.WorkItem, c registry.Command) error {
	if it.Action != registry.Batch {
		return nil
	}
	return t.store.hooks.Family(t, it, c)
}

// stopNote returns the note of a stopped item: by whom, and why.
func stopNote(c registry.Command) string {
	by := map[registry.Act]string{
		registry.ActCancel: "cancelled by %s", registry.ActAbort: "aborted by %s", registry.ActDelete: "deleted by %s",
	}[c.Act]
	if c.Reason == "" {
		return sqldb.Clean(fmt.Sprintf(by, c.Actor))
	}
	return sqldb.Clean(fmt.Sprintf(by+": %s", c.Actor, c.Reason))
}

// retryNow lets an item have its next try at once. It changes neither the counted tries nor what
// the item waits for.
func (t *Tx) retryNow(it registry.WorkItem, c registry.Command) error {
	if err := Check(it, c.Act, registry.Pending); err != nil {
		return err
	}
	if err := t.Do(`UPDATE work_item SET run_at = $2, updated_at = $2 WHERE id = $1`, it.ID, t.Now); err != nil {
		return fmt.Errorf("start the next try of item %s now: %w", it.ID, err)
	}
	if err := t.refreshReady(it.ID); err != nil {
		return err
	}
	return t.Event(it.ID, it.Attempt, string(c.Act), c.Actor, Moved{From: it.Stage, Stage: it.Stage, Status: it.Status, Reason: sqldb.Clean(c.Reason), Error: it.Note, Class: it.ErrorClass})
}

// updateReport lets a failed batch report again as soon as its running jobs have settled.
func (t *Tx) updateReport(it registry.WorkItem, c registry.Command) error {
	if it.Action == registry.Batch && it.Status == registry.Failed && it.Stage != registry.Report {
		return fmt.Errorf("the batch failed before it had jobs; requeue it instead: %w", refusal(it, c.Act, registry.Pending))
	}
	if err := t.Move(it, ChangeBy(it, c, registry.Pending)); err != nil {
		return err
	}
	return t.unblocked(it.ID)
}

// holdOne adds or releases the hold on an item. The hold on a batch covers its jobs, too.
func (t *Tx) holdOne(it registry.WorkItem, c registry.Command) error {
	if err := Check(it, c.Act, it.Status); err != nil {
		return err
	}
	scope := registry.HoldItem
	if it.Action == registry.Batch {
		scope = registry.HoldBatch
	}
	if c.Act == registry.ActUnhold {
		err := t.removeHold(scope, it.ID, c.Actor)
		if errors.Is(err, registry.ErrNotFound) && scope == registry.HoldBatch {
			return t.removeHold(registry.HoldItem, it.ID, c.Actor) // of a collection that releases items one by one
		}
		return err
	}
	return t.addHold(registry.Hold{Scope: scope, Key: it.ID, Reason: c.Reason, Actor: c.Actor})
}

// refusal returns the error of the state machine for an act that it does not allow.
func refusal(it registry.WorkItem, act registry.Act, to registry.Status) error {
	te := registry.Refuse(it.Position(), act, to)
	te.ItemID = it.ID
	return te
}

// isRefusal reports whether an error refuses the act, as opposed to a fault of the system.
func isRefusal(err error) bool {
	var (
		transition *registry.TransitionError
		late       *registry.PastNoReturn
		confirm    *registry.ConfirmationNeeded
	)
	return errors.As(err, &transition) || errors.As(err, &late) || errors.As(err, &confirm) || errors.Is(err, registry.ErrNotFound) ||
		errors.Is(err, registry.ErrSamePerson)
}
