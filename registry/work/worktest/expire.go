package worktest

import (
	"slices"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func expireTests() tests {
	return tests{
		"of_completed_batches":               expireCompleted,
		"keeps_what_failed_or_is_unfinished": expireUnfinished,
		"keeps_what_is_held":                 expireHeld,
		"as_the_profile_was_at_submission":   expireFrozen,
		"keeps_what_would_be_repeated":       expireDuplicate,
		"waits_for_messages":                 expireTold,
		"waits_for_messages_that_failed":     expireUntold,
		"of_many_jobs_in_portions":           expireMany,
		"of_what_carried_messages":           expireCarriers,
	}
}

// expired purges what has expired, and checks the number of batches.
func (f *fixture) expired(want int) {
	f.Helper()
	got, err := f.Store.PurgeExpired(f.Context())
	f.Must(err)
	if got != want {
		f.Fatalf("%d batches were purged, want %d", got, want)
	}
}

// keptFor sets the collection's retention.
func (f *fixture) keptFor(days int) {
	f.Helper()
	f.Collection(registrytest.Mnemonic, registry.Profile{Owner: registrytest.Owner, RetentionDays: &days, DuplicateDays: new(int), Callback: &registry.Callback{URL: "https://receiver.test/", GoesOn: true, CompletedOnly: true}})
}

func expireCompleted(f *fixture) {
	forever, _ := f.completedBatch(1)
	f.keptFor(10)
	id, jobs := f.Batch(2)
	for _, job := range jobs {
		f.Finish(job)
	}
	f.Clock.Pass(5 * registrytest.Day) // it counts from when the batch completed
	f.Done(f.Take(registry.Report, id).Lease)
	before := f.Events(jobs[0])
	f.Clock.Pass(10*registrytest.Day - time.Second)
	f.expired(0)
	f.Clock.Pass(time.Second)
	f.expired(1)
	f.Gone(append(jobs, id)...)
	f.expired(0)
	f.State(forever, registry.StateCompleted)
	// R28: events stay, and tell who purged it, and why.
	for _, one := range []string{id, jobs[0]} {
		all, err := f.Store.Events(f.Context(), one, 0, 500)
		f.Must(err)
		if last := all[len(all)-1]; last.Type != string(registry.ActPurge) || last.Actor != "registry" {
			f.Errorf("last event %+v", last)
		}
	}
	if got := f.Events(jobs[0]); !slices.Equal(got[:len(got)-1], before) {
		f.Errorf("events %v, before %v", got, before)
	}
}

func expireUnfinished(f *fixture) {
	f.keptFor(1)
	failed, jobs := f.reported(4)
	running := f.Submit()
	f.Clock.Pass(1000 * registrytest.Day)
	f.expired(0)
	f.State(failed, registry.StateFailed)
	f.State(jobs[0], registry.StateCompleted) // goes with its batch only
	f.State(running, registry.StatePending)
	// What an admin has stopped for good is an admin's to purge.
	f.Confirm(failed, registry.ActDelete)
	f.CarriedOut()
	f.Clock.Pass(1000 * registrytest.Day)
	f.expired(0)
	f.State(failed, registry.StateDeleted)
}

func expireHeld(f *fixture) {
	f.keptFor(1)
	id, jobs := f.completedBatch(2)
	f.Clock.Pass(2 * registrytest.Day)
	for _, h := range []struct {
		scope registry.HoldScope
		key   string
	}{
		{registry.HoldAll, ""}, {registry.HoldCollection, registrytest.Mnemonic}, {registry.HoldBatch, id}, {registry.HoldItem, id}, {registry.HoldItem, jobs[1]},
	} {
		f.Hold(h.scope, h.key)
		f.expired(0)
		f.Clock.Pass(registrytest.Day)
		f.expired(0)
		f.Must(f.Store.RemoveHold(f.Context(), h.scope, h.key, "admin"))
		f.Clock.Pass(registrytest.Day)
	}
	f.State(id, registry.StateCompleted)
	f.Collection("other", registry.Profile{Owner: registrytest.Owner})
	f.Hold(registry.HoldCollection, "other")
	f.expired(1)
	f.Gone(append(jobs, id)...)
}

func expireFrozen(f *fixture) {
	f.keptFor(2)
	before, _ := f.completedBatch(1)
	f.keptFor(1000)
	after, _ := f.completedBatch(1)
	f.Clock.Pass(3 * registrytest.Day)
	f.expired(1)
	f.Gone(before)
	f.State(after, registry.StateCompleted)
}

func expireDuplicate(f *fixture) {
	days, window := 1, 5
	f.Collection(registrytest.Mnemonic, registry.Profile{Owner: registrytest.Owner, RetentionDays: &days, DuplicateDays: &window})
	id, _ := f.Batch(1)
	f.Clock.Pass(2 * registrytest.Day)
	f.Finish(f.Children(id)[0])
	f.Done(f.Take(registry.Report, id).Lease)
	f.Clock.Pass(3*registrytest.Day - time.Second)
	f.expired(0)
	f.Clock.Pass(time.Second)
	f.expired(1)
}

// expireUntold: an undelivered message stays until an admin deals with it.
func expireUntold(f *fixture) {
	f.keptFor(1)
	id, jobs := f.completedBatch(1)
	_, err := f.Store.Redeliver(f.Context(), registry.RedeliverRequest{ItemID: jobs[0], Actor: "admin"})
	f.Must(err)
	c := f.Take(registry.Deliver, "")
	f.Settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "no such receiver"})
	f.Clock.Pass(100 * registrytest.Day)
	f.expired(0)
	f.State(id, registry.StateCompleted)
	f.Confirm(c.Item.ID, registry.ActDelete)
	f.Clock.Pass(registrytest.Day)
	f.expired(1)
	f.Gone(append(jobs, id)...)
}

func expireTold(f *fixture) {
	f.keptFor(1)
	id, jobs := f.completedBatch(1)
	_, err := f.Store.Redeliver(f.Context(), registry.RedeliverRequest{ItemID: jobs[0], Actor: "admin"})
	f.Must(err)
	f.Clock.Pass(2 * registrytest.Day)
	f.expired(0)
	f.Done(f.Take(registry.Deliver, "").Lease)
	f.Clock.Pass(registrytest.Day - time.Second)
	f.expired(0) // it is looked at once a day
	f.Clock.Pass(time.Second)
	f.expired(1)
	f.Gone(append(jobs, id)...)
}

func expireMany(f *fixture) {
	f.keptFor(1)
	jobs := f.batchIn(registrytest.Mnemonic, 150, 5)
	id := f.Item(jobs[0]).ParentID
	for _, job := range jobs {
		f.Finish(job)
	}
	f.Done(f.Take(registry.Report, id).Lease)
	f.Clock.Pass(registrytest.Day)
	f.expired(1)
	f.expired(0) // its bulk act is on its way
	f.State(id, registry.StateCompleted)
	if p := f.CarriedOut(); len(p) != 1 || p[0].Applied != 150 || p[0].Refused != 0 {
		f.Errorf("%+v", p)
	}
	f.Gone(append(jobs, id)...)
}

func expireCarriers(f *fixture) {
	id, jobs := f.completedBatch(1)
	f.Collection(registrytest.Mnemonic, registry.Profile{Owner: registrytest.Owner, Callback: registrytest.Receiver()})
	_, err := f.Store.Redeliver(f.Context(), registry.RedeliverRequest{ItemID: jobs[0], Actor: "admin"})
	f.Must(err)
	c := f.Take(registry.Deliver, "")
	spec, _ := registry.DeliverySpecIn(c.Item.Spec)
	f.NoteDelivery(c.Lease, spec, 200, "")
	f.Done(c.Lease)
	f.Clock.Pass(30*registrytest.Day - time.Second)
	f.expired(0)
	f.State(c.Item.ID, registry.StateCompleted)
	f.Clock.Pass(time.Second)
	f.expired(0) // it is no batch
	f.Gone(c.Item.ID)
	if d := f.Deliveries(jobs[0]); len(d) != 1 || d[0].SentAt == nil || d[0].ItemID != "" {
		f.Errorf("deliveries %+v, want the message without the item that carried it", d)
	}
	f.State(id, registry.StateCompleted)
}
