package outbound

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/collection"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// giveUpCallback stops the tries to reach a job's receiver. The next attempt at notify skips the
// callback, releases staging and completes the job. A running try may still succeed; tx.clearUntold
// then removes the record.
func (t *Tx) giveUpCallback(it registry.WorkItem, c registry.Command) error {
	to := registry.Pending
	if it.Status == registry.Running {
		to = registry.Running
	}
	if err := work.Check(it, c.Act, to); err != nil {
		return err
	}
	receiver, err := it.Receiver()
	if err != nil {
		return err
	}
	u := registry.Untold{Target: receiver.Target(), Actor: c.Actor, Reason: sqldb.Clean(c.Reason), At: sqldb.FromMicros(t.Now)}
	raw, err := json.Marshal(u)
	if err != nil {
		return fmt.Errorf("encode the record of the given-up callback: %w", err)
	}
	if to == registry.Running {
		err = t.Event(it.ID, it.Attempt, string(c.Act), c.Actor, work.Moved{From: it.Stage, Stage: it.Stage, Status: to, Reason: sqldb.Clean(c.Reason)})
	} else {
		err = t.Move(it, work.ChangeBy(it, c, to))
	}
	if err != nil {
		return err
	}
	return t.SetResult(it, registry.ResultUntold, raw)
}

// clearUntold removes the record that a callback was given up, because the receiver got it after
// all: from a try that was running, or from a later redelivery.
func (t *Tx) clearUntold(subject registry.WorkItem) error {
	if _, given := subject.Results[registry.ResultUntold]; !given {
		return nil
	}
	return t.SetResult(subject, registry.ResultUntold, nil)
}

// eventRetargeted is the kind of the event that says that a job's callback has a new receiver.
const eventRetargeted = "callback-changed"

// retarget makes a job that is requeued at notify use the collection's present callback, since the
// old receiver may be gone. If the collection has none now, the job keeps its own.
func (t *Tx) retarget(it registry.WorkItem, actor string) error {
	old, err := it.Receiver()
	if err != nil || old == nil {
		return err
	}
	now, err := collection.ProfileNow(t.Tx, it.Collection)
	if err != nil || now.Callback == nil || reflect.DeepEqual(old, now.Callback) {
		return err
	}
	raw, err := json.Marshal(now.Callback)
	if err != nil {
		return fmt.Errorf("encode callback: %w", err)
	}
	if err := t.SetResult(it, registry.ResultCallback, raw); err != nil {
		return err
	}
	return t.Event(it.ID, it.Attempt, eventRetargeted, actor, map[string]string{"from": old.Target(), "to": now.Callback.Target()})
}
