package registrytest

import (
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
)

func deliveryTests() []test {
	return []test{
		{"tries_are_noted", triesNoted},
		{"what_was_delivered_stays_so", deliveredStays},
		{"only_the_live_attempt_of_who_tells_it_notes", deliveryFenced},
		{"is_passed_on_once", passedOn},
		{"of_a_failure_is_made_when_a_job_fails", failureTold},
		{"tells_that_rows_were_bad", bornFailedTold},
		{"of_a_failure_is_made_once_a_failure", failureToldOnce},
		{"goes_to_the_callback_of_now_when_it_is_asked_for", redelivered},
		{"cannot_be_asked_for_in_vain", redeliverRefused},
		{"is_given_up_and_the_job_completes", givenUp},
		{"that_was_given_up_is_told_all_the_same", toldAfterAll},
		{"goes_to_the_callback_of_now_when_its_job_is_requeued", aimedAnew},
		{"of_a_preserved_job_ends_with_what_is_left_of_the_job", remainsDeleted},
		{"ends_when_the_batch_is_deleted", untoldBatchDeleted},
		{"goes_with_its_item", deliveryPurged},
	}
}

// receiver is a callback that nobody answers.
func receiver() *registry.Callback { return &registry.Callback{URL: "https://receiver.test/mc/{job}"} }

// submitTold makes a batch while its collection has a callback, which is taken from it again.
func (f *fixture) submitTold(callback *registry.Callback) string {
	f.Helper()
	before, err := f.Collection(f.Context(), mnemonic)
	f.must(err)
	told := before.Profile
	told.Callback = callback
	f.collection(mnemonic, told)
	id := f.submit()
	f.collection(mnemonic, before.Profile)
	return id
}

// toldJob is a job whose collection is told how it ends, at a stage.
func (f *fixture) toldJob(callback *registry.Callback, at registry.Stage) string {
	f.Helper()
	id := f.submitTold(callback)
	c := f.takeItem(id)
	_, err := f.AddJobs(f.Context(), c.Lease, newJobs(1))
	f.must(err)
	f.done(c.Lease)
	jobs := f.all(registry.ItemQuery{ParentID: id})
	f.bring(jobs[0].ID, at)
	return jobs[0].ID
}

// completedMessage is what its notify step tells of a job.
func completedMessage(id string) registry.DeliverySpec {
	return registry.DeliverySpec{Subject: id, State: registry.StateCompleted, Callback: *receiver()}
}

func (f *fixture) noted(l registry.Lease, m registry.DeliverySpec, status int, text string) registry.Delivery {
	f.Helper()
	d, err := f.NoteDelivery(f.Context(), l, registry.DeliveryTry{Message: m, Status: status, Error: text})
	f.must(err)
	return d
}

func (f *fixture) deliveries(id string) []registry.Delivery {
	f.Helper()
	all, err := f.Deliveries(f.Context(), id)
	f.must(err)
	return all
}

// carriers are the items that tell something.
func (f *fixture) carriers() []registry.WorkItem {
	f.Helper()
	return f.all(registry.ItemQuery{Action: registry.DeliverMessage})
}

func triesNoted(f *fixture) {
	id := f.toldJob(receiver(), registry.Notify)
	c := f.takeItem(id)
	m := completedMessage(id)
	for i := 1; i <= 2; i++ {
		d := f.noted(c.Lease, m, 503, "not\x00 now")
		if d.ID != m.ID() || d.Subject != id || d.Tries != i || d.Status != 503 || !strings.Contains(d.Error, "now") || d.SentAt != nil || !d.TriedAt.Equal(f.clock.now()) {
			f.Errorf("try %d: %+v", i, d)
		}
		f.clock.pass(time.Second)
	}
	d := f.noted(c.Lease, m, 204, "")
	if d.Tries != 3 || d.Status != 204 || d.Error != "" || d.SentAt == nil || !d.SentAt.Equal(f.clock.now()) || d.Target != "https://receiver.test" {
		f.Errorf("delivered: %+v", d)
	}
	if all := f.deliveries(id); len(all) != 1 || all[0].ID != d.ID || all[0].Tries != 3 {
		f.Errorf("deliveries %+v", all)
	}
	events, err := f.Events(f.Context(), id, 0, 500)
	f.must(err)
	n := 0
	for _, e := range events {
		if e.Type == registry.EventDelivery {
			n++
		}
	}
	if n != 3 {
		f.Errorf("%d events, want one a try", n)
	}
}

func deliveredStays(f *fixture) {
	id := f.toldJob(receiver(), registry.Notify)
	c := f.takeItem(id)
	sent := f.noted(c.Lease, completedMessage(id), 200, "").SentAt
	f.clock.pass(time.Second)
	for _, text := range []string{"no answer", ""} {
		if d := f.noted(c.Lease, completedMessage(id), 0, text); d.SentAt == nil || !d.SentAt.Equal(*sent) {
			f.Errorf("after another try: %+v, want it delivered at %v", d, sent)
		}
	}
}

func deliveryFenced(f *fixture) {
	id, other := f.toldJob(receiver(), registry.Notify), f.toldJob(receiver(), registry.Notify)
	c := f.takeItem(id)
	_, err := f.NoteDelivery(f.Context(), c.Lease, registry.DeliveryTry{Message: completedMessage(other)})
	f.is(err, registry.ErrInvalid)
	f.is(f.PassOn(f.Context(), c.Lease, completedMessage(other)), registry.ErrInvalid)
	stale := registry.Lease{ItemID: id, N: c.Lease.N - 1}
	_, err = f.NoteDelivery(f.Context(), stale, registry.DeliveryTry{Message: completedMessage(id)})
	f.is(err, registry.ErrClaimLost)
	f.is(f.PassOn(f.Context(), stale, completedMessage(id)), registry.ErrClaimLost)
	if n := len(f.deliveries(id)) + len(f.deliveries(other)) + len(f.carriers()); n != 0 {
		f.Errorf("%d deliveries and items came of it", n)
	}
}

func passedOn(f *fixture) {
	id := f.toldJob(receiver(), registry.Notify)
	c := f.takeItem(id)
	m := completedMessage(id)
	f.noted(c.Lease, m, 503, "not now")
	for range 2 {
		f.must(f.PassOn(f.Context(), c.Lease, m))
	}
	f.done(c.Lease)
	f.state(id, registry.StateCompleted)
	all := f.carriers()
	if len(all) != 1 || all[0].Collection != mnemonic {
		f.Fatalf("items %+v, want one that goes on", all)
	}
	carrier := f.take(registry.Deliver, "")
	spec, ok := registry.DeliverySpecIn(carrier.Item.Spec)
	if !ok || spec != m {
		f.Errorf("it tells %+v, want %+v", spec, m)
	}
	if d := f.noted(carrier.Lease, spec, 200, ""); d.ID != m.ID() || d.Tries != 2 || d.SentAt == nil || d.ItemID != carrier.Item.ID {
		f.Errorf("delivered: %+v", d)
	}
	f.done(carrier.Lease)
	f.state(carrier.Item.ID, registry.StateCompleted)
}

func failureTold(f *fixture) {
	for _, tt := range []struct {
		callback *registry.Callback
		stage    registry.Stage
		want     int
	}{
		{receiver(), registry.Download, 1},
		{nil, registry.Download, 0},
		{&registry.Callback{URL: receiver().URL, CompletedOnly: true}, registry.Download, 0},
		{receiver(), registry.Notify, 0}, // it is preserved, and the receiver does not answer
	} {
		before := len(f.carriers())
		id := f.toldJob(tt.callback, tt.stage)
		c := f.takeItem(id)
		f.settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeFailed, Class: registry.ContentFault, Error: "wrong digest"})
		all := f.carriers()
		if len(all)-before != tt.want {
			f.Errorf("%+v at %s: %d items, want %d", tt.callback, tt.stage, len(all)-before, tt.want)
			continue
		}
		if tt.want == 0 {
			if d := f.deliveries(id); len(d) != 0 {
				f.Errorf("deliveries %+v", d)
			}
			continue
		}
		spec, _ := registry.DeliverySpecIn(f.item(all[0].ID).Spec)
		if d := f.deliveries(id); len(d) != 1 || d[0].Tries != 0 || d[0].State != registry.StateFailed || d[0].ItemID != all[0].ID || spec.Subject != id {
			f.Errorf("deliveries %+v by %+v", d, spec)
		}
	}
}

// Bad rows are jobs that failed: their receiver is told of each, in the transaction that makes them, and of a repeat not again.
func bornFailedTold(f *fixture) {
	completedOnly := *receiver()
	completedOnly.CompletedOnly = true
	for _, unasked := range []*registry.Callback{nil, &completedOnly} { // nobody is to be told, or wants to be
		l := f.takeItem(f.submitTold(unasked)).Lease
		jobs := newJobs(2)
		jobs[0].Fault = "the line is wrong"
		_, err := f.AddJobs(f.Context(), l, jobs)
		f.must(err)
		if all := f.carriers(); len(all) != 0 {
			f.Errorf("%+v: items %+v", unasked, all)
		}
		f.done(l)
	}
	batch := f.submitTold(receiver())
	l := f.takeItem(batch).Lease
	jobs := newJobs(40)
	for i := range jobs {
		jobs[i].Fault = "the line is wrong"
	}
	jobs[3].Fault = "" // good
	for range 2 {
		_, err := f.AddJobs(f.Context(), l, jobs)
		f.must(err)
	}
	carriers := map[string]registry.DeliverySpec{}
	for _, it := range f.carriers() {
		spec, ok := registry.DeliverySpecIn(it.Spec)
		if !ok || it.Collection != mnemonic || it.Status != registry.Pending {
			f.Errorf("carrier %+v", it)
		}
		carriers[spec.Subject] = spec
	}
	for i, id := range f.children(batch) {
		told := i != 3
		d := f.deliveries(id)
		if (len(d) == 1) != told || told && (d[0].State != registry.StateFailed || d[0].ID != carriers[id].ID() || d[0].Tries != 0) {
			f.Errorf("row %d: deliveries %+v", i+1, d)
		}
	}
	if len(carriers) != 39 {
		f.Errorf("%d messages, want 39", len(carriers))
	}
	f.done(l)
	f.invariants()
}

func failureToldOnce(f *fixture) {
	id := f.toldJob(receiver(), registry.Download)
	fail := func() {
		f.Helper()
		c := f.takeItem(id)
		s := registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "no"}
		f.settle(s)
		f.settle(s) // which is answered with the recorded verdict (R9)
	}
	fail()
	_, err := f.Command(f.Context(), registry.Command{ItemID: id, Act: registry.ActRequeue, From: registry.Download, Actor: "admin"})
	f.must(err)
	fail()
	var ids []string
	for _, d := range f.deliveries(id) {
		ids = append(ids, d.ID)
	}
	if len(ids) != 2 || ids[0] == ids[1] || len(f.carriers()) != 2 {
		f.Errorf("messages %q by %d items, want one a failure", ids, len(f.carriers()))
	}
	// A lost worker's last try fails, too, in the sweep.
	lost := f.toldJob(receiver(), registry.Download)
	for !f.item(lost).Status.Settled() {
		f.loseOnce(lost)
	}
	if d := f.deliveries(lost); len(d) != 1 {
		f.Errorf("of a lost job %+v", d)
	}
}

func redelivered(f *fixture) {
	id := f.toldJob(receiver(), registry.Notify)
	c := f.takeItem(id)
	f.noted(c.Lease, completedMessage(id), 200, "")
	f.done(c.Lease)
	f.collection(mnemonic, registry.Profile{Owner: owner, Callback: &registry.Callback{URL: "https://moved.test/"}})
	r := registry.RedeliverRequest{ItemID: id, Reason: "it was lost", Actor: "admin", IdempotencyKey: f.unique("key")}
	var items []string
	for range 2 {
		it, err := f.Redeliver(f.Context(), r)
		f.must(err)
		items = append(items, it.ID)
	}
	if items[0] != items[1] || len(f.carriers()) != 1 {
		f.Errorf("items %q, want the repeat to be answered with the first", items)
	}
	r.Reason = "another"
	_, err := f.Redeliver(f.Context(), r)
	f.is(err, registry.ErrIdempotencyConflict)
	carrier := f.take(registry.Deliver, "")
	spec, _ := registry.DeliverySpecIn(carrier.Item.Spec)
	want := completedMessage(id)
	if spec.ID() != want.ID() || !spec.Again || spec.Reason != "it was lost" || spec.Callback.URL != "https://moved.test/" {
		f.Errorf("it tells %+v", spec)
	}
	if d := f.noted(carrier.Lease, spec, 200, ""); d.Tries != 2 || d.Target != "https://moved.test" {
		f.Errorf("%+v", d)
	}
}

func redeliverRefused(f *fixture) {
	batch, jobs := f.batch(1)
	ask := func(id string) error {
		_, err := f.Redeliver(f.Context(), registry.RedeliverRequest{ItemID: id, Actor: "admin"})
		return err
	}
	f.is(ask("none"), registry.ErrNotFound)
	f.is(ask(batch), registry.ErrInvalid)
	f.is(ask(jobs[0]), registry.ErrInvalid) // it goes on
	c := f.takeItem(jobs[0])
	f.settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "no"})
	f.is(ask(jobs[0]), registry.ErrNoCallback)
	f.collection(mnemonic, registry.Profile{Owner: owner, Callback: receiver()})
	f.must(ask(jobs[0]))
	if d := f.deliveries(jobs[0]); len(d) != 1 || d[0].State != registry.StateFailed {
		f.Errorf("%+v", d)
	}
}

func deliveryPurged(f *fixture) {
	id := f.toldJob(receiver(), registry.Notify)
	c := f.takeItem(id)
	f.noted(c.Lease, completedMessage(id), 200, "")
	f.must(f.PassOn(f.Context(), c.Lease, completedMessage(id)))
	f.done(c.Lease)
	f.finish(f.item(id).ParentID)
	_, err := f.Command(f.Context(), registry.Command{ItemID: f.item(id).ParentID, Act: registry.ActPurge, Actor: "admin"})
	f.must(err)
	if d := f.deliveries(id); len(d) != 0 {
		f.Errorf("deliveries %+v of an item that was purged", d)
	}
	// Whoever was about to tell it can still say so.
	carrier := f.take(registry.Deliver, "")
	spec, _ := registry.DeliverySpecIn(carrier.Item.Spec)
	if d := f.noted(carrier.Lease, spec, 200, ""); d.ID != spec.ID() || d.SentAt == nil || d.Tries != 1 {
		f.Errorf("of a purged job it notes %+v", d)
	}
	f.done(carrier.Lease)
	f.state(carrier.Item.ID, registry.StateCompleted)
	if d := f.deliveries(id); len(d) != 0 {
		f.Errorf("deliveries %+v are there again, and nothing removes them", d)
	}
}
