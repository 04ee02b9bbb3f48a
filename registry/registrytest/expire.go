package registrytest

import (
	"slices"
	"time"

	"github.com/holdfast/holdfast/registry"
)

func expireTests() []test {
	return []test{
		{"of_completed_batches", expireCompleted},
		{"keeps_what_failed_or_is_unfinished", expireUnfinished},
		{"keeps_what_is_held", expireHeld},
		{"as_the_profile_was_at_submission", expireFrozen},
		{"keeps_what_would_be_repeated", expireDuplicate},
		{"waits_for_messages", expireTold},
		{"waits_for_messages_that_failed", expireUntold},
		{"of_many_jobs_in_portions", expireMany},
		{"of_what_carried_messages", expireCarriers},
	}
}

// expired purges what is over, and checks how many batches that were.
func (f *fixture) expired(want int) {
	f.Helper()
	got, err := f.PurgeExpired(f.Context())
	f.must(err)
	if got != want {
		f.Fatalf("%d batches were purged, want %d", got, want)
	}
}

// keptFor gives the tests' collection a retention.
func (f *fixture) keptFor(days int) {
	f.Helper()
	f.collection(mnemonic, registry.Profile{Owner: owner, RetentionDays: &days, DuplicateDays: new(int), Callback: &registry.Callback{URL: "https://receiver.test/", GoesOn: true, CompletedOnly: true}})
}

func expireCompleted(f *fixture) {
	forever, _ := f.completedBatch(1)
	f.keptFor(10)
	id, jobs := f.batch(2)
	for _, job := range jobs {
		f.finish(job)
	}
	f.clock.pass(5 * day) // it counts from when the batch completed
	f.done(f.take(registry.Report, id).Lease)
	before := f.events(jobs[0])
	f.clock.pass(10*day - time.Second)
	f.expired(0)
	f.clock.pass(time.Second)
	f.expired(1)
	f.gone(append(jobs, id)...)
	f.expired(0)
	f.state(forever, registry.StateCompleted)
	// R28: events stay, and tell who purged it, and why.
	for _, one := range []string{id, jobs[0]} {
		all, err := f.Events(f.Context(), one, 0, 500)
		f.must(err)
		if last := all[len(all)-1]; last.Type != string(registry.ActPurge) || last.Actor != "registry" {
			f.Errorf("last event %+v", last)
		}
	}
	if got := f.events(jobs[0]); !slices.Equal(got[:len(got)-1], before) {
		f.Errorf("events %v, before %v", got, before)
	}
}

func expireUnfinished(f *fixture) {
	f.keptFor(1)
	failed, jobs := f.reported(4)
	running := f.submit()
	f.clock.pass(1000 * day)
	f.expired(0)
	f.state(failed, registry.StateFailed)
	f.state(jobs[0], registry.StateCompleted) // goes with its batch only
	f.state(running, registry.StatePending)
	// What an admin has stopped for good is an admin's to purge.
	f.sure(failed, registry.ActDelete)
	f.carriedOut()
	f.clock.pass(1000 * day)
	f.expired(0)
	f.state(failed, registry.StateDeleted)
}

func expireHeld(f *fixture) {
	f.keptFor(1)
	id, jobs := f.completedBatch(2)
	f.clock.pass(2 * day)
	for _, h := range []struct {
		scope registry.HoldScope
		key   string
	}{
		{registry.HoldAll, ""}, {registry.HoldCollection, mnemonic}, {registry.HoldBatch, id}, {registry.HoldItem, id}, {registry.HoldItem, jobs[1]},
	} {
		f.hold(h.scope, h.key)
		f.expired(0)
		f.clock.pass(day)
		f.expired(0)
		f.must(f.RemoveHold(f.Context(), h.scope, h.key, "admin"))
		f.clock.pass(day)
	}
	f.state(id, registry.StateCompleted)
	f.collection("other", registry.Profile{Owner: owner})
	f.hold(registry.HoldCollection, "other")
	f.expired(1)
	f.gone(append(jobs, id)...)
}

func expireFrozen(f *fixture) {
	f.keptFor(2)
	before, _ := f.completedBatch(1)
	f.keptFor(1000)
	after, _ := f.completedBatch(1)
	f.clock.pass(3 * day)
	f.expired(1)
	f.gone(before)
	f.state(after, registry.StateCompleted)
}

func expireDuplicate(f *fixture) {
	days, window := 1, 5
	f.collection(mnemonic, registry.Profile{Owner: owner, RetentionDays: &days, DuplicateDays: &window})
	id, _ := f.batch(1)
	f.clock.pass(2 * day)
	f.finish(f.children(id)[0])
	f.done(f.take(registry.Report, id).Lease)
	f.clock.pass(3*day - time.Second)
	f.expired(0)
	f.clock.pass(time.Second)
	f.expired(1)
}

// Whoever could not be told is an admin's to see to; until then what there is to tell stays.
func expireUntold(f *fixture) {
	f.keptFor(1)
	id, jobs := f.completedBatch(1)
	_, err := f.Redeliver(f.Context(), registry.RedeliverRequest{ItemID: jobs[0], Actor: "admin"})
	f.must(err)
	c := f.take(registry.Deliver, "")
	f.settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "no such receiver"})
	f.clock.pass(100 * day)
	f.expired(0)
	f.state(id, registry.StateCompleted)
	f.sure(c.Item.ID, registry.ActDelete)
	f.clock.pass(day)
	f.expired(1)
	f.gone(append(jobs, id)...)
}

func expireTold(f *fixture) {
	f.keptFor(1)
	id, jobs := f.completedBatch(1)
	_, err := f.Redeliver(f.Context(), registry.RedeliverRequest{ItemID: jobs[0], Actor: "admin"})
	f.must(err)
	f.clock.pass(2 * day)
	f.expired(0)
	f.done(f.take(registry.Deliver, "").Lease)
	f.clock.pass(day - time.Second)
	f.expired(0) // it is looked at once a day
	f.clock.pass(time.Second)
	f.expired(1)
	f.gone(append(jobs, id)...)
}

func expireMany(f *fixture) {
	f.keptFor(1)
	jobs := f.batchIn(mnemonic, 150, 5)
	id := f.item(jobs[0]).ParentID
	for _, job := range jobs {
		f.finish(job)
	}
	f.done(f.take(registry.Report, id).Lease)
	f.clock.pass(day)
	f.expired(1)
	f.expired(0) // its bulk act is on its way
	f.state(id, registry.StateCompleted)
	if p := f.carriedOut(); len(p) != 1 || p[0].Applied != 150 || p[0].Refused != 0 {
		f.Errorf("%+v", p)
	}
	f.gone(append(jobs, id)...)
}

func expireCarriers(f *fixture) {
	id, jobs := f.completedBatch(1)
	f.collection(mnemonic, registry.Profile{Owner: owner, Callback: receiver()})
	_, err := f.Redeliver(f.Context(), registry.RedeliverRequest{ItemID: jobs[0], Actor: "admin"})
	f.must(err)
	c := f.take(registry.Deliver, "")
	spec, _ := registry.DeliverySpecIn(c.Item.Spec)
	f.noted(c.Lease, spec, 200, "")
	f.done(c.Lease)
	f.clock.pass(30*day - time.Second)
	f.expired(0)
	f.state(c.Item.ID, registry.StateCompleted)
	f.clock.pass(time.Second)
	f.expired(0) // it is no batch
	f.gone(c.Item.ID)
	if d := f.deliveries(jobs[0]); len(d) != 1 || d[0].SentAt == nil || d[0].ItemID != "" {
		f.Errorf("deliveries %+v, want the message without the item that carried it", d)
	}
	f.state(id, registry.StateCompleted)
}
