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

// endTelling ends the tries to tell a job's receiver: the next attempt at its step tells nobody,
// gives staging back and completes the job. A try that is under way may still succeed; then the job
// was told, and nothing was given up (see tx.toldAfterAll).
func (t *Tx) endTelling(it registry.WorkItem, c registry.Command) error {
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
		return fmt.Errorf("encode who gave up: %w", err)
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

// toldAfterAll forgets that a delivery was given up when the receiver was told all the same: by a
// try that was under way, or because somebody asked for it later.
func (t *Tx) toldAfterAll(subject registry.WorkItem) error {
	if _, given := subject.Results[registry.ResultUntold]; !given {
		return nil
	}
	return t.SetResult(subject, registry.ResultUntold, nil)
}

// eventAimed is the type of the event that says that a job tells another receiver than before.
const eventAimed = "callback-changed"

// aim lets a job that is sent back to tell its receiver tell the one that its collection has now: a
// person asks for it now, and the old one may be gone. A collection that has none any more leaves
// the job's as it is.
func (t *Tx) aim(it registry.WorkItem, actor string) error {
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
	return t.Event(it.ID, it.Attempt, eventAimed, actor, map[string]string{"from": old.Target(), "to": now.Callback.Target()})
}
