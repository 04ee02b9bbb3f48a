package outboundtest

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

// outcome checks the outcome that a job shows besides its state.
func (f *fixture) outcome(id, want string) registry.WorkItem {
	f.Helper()
	it := f.Item(id)
	if got := it.OutcomeText(); got != want {
		f.Errorf("outcome %q, want %q", got, want)
	}
	return it
}

// untold returns a job with a preserved object that failed at notify, because its receiver does not
// answer.
func (f *fixture) untold() (id string) {
	f.Helper()
	id = f.Committed(registry.Notify, registry.Preserved)
	c := f.TakeItem(id)
	f.NoteDelivery(c.Lease, registrytest.CompletedMessage(id), 503, "not now")
	f.Settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "receiver.test does not answer"})
	return id
}

// objectOfJob returns the object that a job preserved.
func (f *fixture) objectOfJob(id string) string {
	f.Helper()
	var identity registry.Identity
	f.Must(json.Unmarshal(f.Item(id).Results[registry.ResultARK], &identity))
	return identity.ARK
}

// givenUp: an admin stops the tries. The job completes with that record, and nothing waits for the
// receiver.
func givenUp(f *fixture) {
	id := f.untold()
	it := f.outcome(id, "preserved; callback not delivered")
	if it.Commitment != registry.Preserved || !slices.Contains(it.AllowedActs, registry.ActGiveUp) {
		f.Fatalf("%q allows %v", it.Commitment, it.AllowedActs)
	}
	f.Confirm(id, registry.ActGiveUp)
	f.State(id, registry.StateNotify)
	c := f.TakeItem(id)
	if to, err := c.Item.Receiver(); to != nil || err != nil {
		f.Errorf("it tells %+v, %v, want nobody", to, err)
	}
	f.Done(c.Lease)
	f.State(id, registry.StateCompleted)
	it = f.outcome(id, "preserved; callback given up")
	u, ok := it.Untold()
	if !ok || u.Actor != "admin" || u.Reason != "because" || u.Target != "https://receiver.test" || u.At.IsZero() {
		f.Errorf("%+v", u)
	}
	if es := f.Events(id); !slices.Contains(es, string(registry.ActGiveUp)) {
		f.Errorf("events %v", es)
	}
	f.Finish(it.ParentID)
	f.State(it.ParentID, registry.StateCompleted)
}

// untoldCounted: a job's own message counts as undelivered until it is given up, even if a later
// try fails.
func untoldCounted(f *fixture) {
	counts := func(want int64) {
		f.Helper()
		a, err := f.Store.Attention(f.Context())
		f.Must(err)
		if a.Undelivered != want || len(a.Messages) != int(want) {
			f.Errorf("%d messages are not delivered, and %d listed, want %d", a.Undelivered, len(a.Messages), want)
		}
	}
	id := f.untold()
	counts(1)
	f.Command(id, registry.ActRequeue, "")
	c := f.TakeItem(id)
	counts(1)
	f.Confirm(id, registry.ActGiveUp)
	counts(0)
	f.NoteDelivery(c.Lease, registrytest.CompletedMessage(id), 503, "not now")
	f.Done(c.Lease)
	f.State(id, registry.StateCompleted)
	counts(0)
	deleted := f.untold()
	counts(1)
	f.Confirm(deleted, registry.ActDelete)
	counts(0)
}

// toldAfterAll: a running try may still succeed, and a later redelivery may. Both remove the record
// that it was given up.
func toldAfterAll(f *fixture) {
	id := f.Committed(registry.Notify, registry.Preserved)
	c := f.TakeItem(id)
	f.Confirm(id, registry.ActGiveUp)
	if it := f.Item(id); it.Status != registry.Running || slices.Contains(it.AllowedActs, registry.ActGiveUp) {
		f.Errorf("it is %s and allows %v", it.Status, it.AllowedActs)
	}
	f.NoteDelivery(c.Lease, registrytest.CompletedMessage(id), 200, "")
	f.Done(c.Lease)
	f.State(id, registry.StateCompleted)
	if _, ok := f.outcome(id, "").Untold(); ok {
		f.Error("it was told, and says that it was not")
	}

	late := f.untold()
	f.Confirm(late, registry.ActGiveUp)
	f.Finish(late)
	f.Collection(registrytest.Mnemonic, registry.Profile{Owner: registrytest.Owner, Callback: registrytest.Receiver()})
	_, err := f.Store.Redeliver(f.Context(), registry.RedeliverRequest{ItemID: late, Actor: "admin"})
	f.Must(err)
	carrier := f.Take(registry.Deliver, "")
	spec, _ := registry.DeliverySpecIn(carrier.Item.Spec)
	f.NoteDelivery(carrier.Lease, spec, 200, "")
	f.Done(carrier.Lease)
	f.outcome(late, "")
}

// aimedAnew: a job requeued at notify uses the collection's present callback.
func aimedAnew(f *fixture) {
	id := f.untold()
	aim := func(profile registry.Profile, want string) {
		f.Helper()
		profile.Owner = registrytest.Owner
		f.Collection(registrytest.Mnemonic, profile)
		f.Command(id, registry.ActRequeue, "")
		c := f.TakeItem(id)
		to, err := c.Item.Receiver()
		f.Must(err)
		if to == nil || to.URL != want {
			f.Errorf("it tells %+v, want %s", to, want)
		}
		f.Settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "no"})
	}
	aim(registry.Profile{}, registrytest.Receiver().URL) // the collection has none any more: the job's stays
	aim(registry.Profile{Callback: &registry.Callback{URL: "https://moved.test/"}}, "https://moved.test/")
	aim(registry.Profile{}, "https://moved.test/")
	n := 0
	for _, e := range f.Events(id) {
		if e == "callback-changed" {
			n++
		}
	}
	if n != 1 {
		f.Errorf("%d events of a changed callback, want 1", n)
	}
}

// remainsDeleted: a job with a preserved object can be deleted. The object stays, and the batch can
// be cleaned up.
func remainsDeleted(f *fixture) {
	id := f.untold()
	ark := f.objectOfJob(id)
	f.Says(f.Unconfirmed(id, registry.ActDelete), "version 1 of "+ark+" is preserved and stays", "https://receiver.test is not notified")
	f.Confirm(id, registry.ActDelete)
	f.outcome(id, "preserved; callback not delivered")
	if o, err := f.Store.Object(f.Context(), ark); err != nil || len(o.Versions) != 1 {
		f.Errorf("object %+v, %v", o, err)
	}
	batch := f.Item(id).ParentID
	for it := f.Item(batch); !it.Status.Settled(); it = f.Item(batch) {
		c := f.TakeItem(batch)
		_, err := f.Store.CloseReport(f.Context(), c.Lease)
		f.Must(err)
		f.Done(c.Lease)
	}
	f.Confirm(batch, registry.ActDelete)
	f.Confirm(batch, registry.ActPurge)
	_, err := f.Store.Item(f.Context(), id)
	f.Is(err, registry.ErrNotFound)
	if o, err := f.Store.Object(f.Context(), ark); err != nil || len(o.Versions) != 1 {
		f.Errorf("after the purge: object %+v, %v", o, err)
	}
}

// untoldBatchDeleted: deleting a batch says what happens to jobs with announced or preserved
// objects, and does that. A purge names the jobs that it waits for.
func untoldBatchDeleted(f *fixture) {
	batch := f.SubmitWithCallback(registrytest.Receiver())
	c := f.TakeItem(batch)
	jobs := registrytest.NewJobs(4)
	_, err := f.Store.AddJobs(f.Context(), c.Lease, jobs)
	f.Must(err)
	f.Done(c.Lease)
	ids := f.Children(batch)
	for i, id := range ids[:3] {
		f.Bring(id, registry.Process)
		l := f.TakeItem(id).Lease
		ark := f.Named(l, f.Unique("object")).ARK
		if i == 2 { // it has announced its version, and fails
			f.Intend(l, ark, 1, `{}`)
			f.Settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "no"})
			continue
		}
		f.Preserve(l, ark, 1, registrytest.File(registrytest.FilePath))
		f.Done(l)
		f.Bring(id, registry.Notify)
	}
	f.FailItem(ids[0], registry.SystemFault) // its receiver does not answer; that of the second one is being tried
	f.Confirm(batch, registry.ActHold)       // what is at work cannot be deleted
	f.Says(f.Unconfirmed(batch, registry.ActDelete), "2 jobs are deleted, 1 of them stopped first", "the object of 1 job that did not complete is preserved and stays",
		"1 job whose object is preserved already completes; its receiver is not notified", "1 job is past the point of no return")
	f.Confirm(batch, registry.ActDelete)
	f.CarriedOut()
	f.State(ids[0], registry.StateDeleted)
	f.Finish(ids[1])
	f.outcome(ids[1], "preserved; callback given up")
	f.State(ids[2], registry.StateFailed)
	f.State(ids[3], registry.StateDeleted)
	_, err = f.Store.Command(f.Context(), registry.Command{ItemID: batch, Act: registry.ActPurge, Actor: "admin"})
	if refused := (*registry.TransitionError)(nil); !errors.As(err, &refused) || !strings.Contains(err.Error(), ids[2]) || strings.Contains(err.Error(), ids[0]) {
		f.Errorf("purge beside a job that is left: %v", err)
	}
}
