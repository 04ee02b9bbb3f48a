package outboundtest

import (
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func deliveryTests() tests {
	return tests{
		"tries_are_noted":                                      triesNoted,
		"what_was_delivered_stays_so":                          deliveredStays,
		"only_the_live_attempt_of_who_tells_it_notes":          deliveryFenced,
		"is_passed_on_once":                                    passedOn,
		"is_passed_on_when_an_item_for_it_was_given_up":        passedOnAnew,
		"of_a_failure_is_made_when_a_job_fails":                failureTold,
		"tells_that_rows_were_bad":                             bornFailedTold,
		"of_a_failure_is_made_once_a_failure":                  failureToldOnce,
		"goes_to_the_callback_of_now_when_it_is_asked_for":     redelivered,
		"cannot_be_asked_for_in_vain":                          redeliverRefused,
		"of_all_jobs_of_a_batch_is_asked_for_at_once":          jobsRedelivered,
		"is_given_up_and_the_job_completes":                    givenUp,
		"that_was_given_up_is_told_all_the_same":               toldAfterAll,
		"of_a_job_counts_until_it_is_given_up":                 untoldCounted,
		"goes_to_the_callback_of_now_when_its_job_is_requeued": aimedAnew,
		"of_a_preserved_job_ends_with_what_is_left_of_the_job": remainsDeleted,
		"ends_when_the_batch_is_deleted":                       untoldBatchDeleted,
		"goes_with_its_item":                                   deliveryPurged,
	}
}

func triesNoted(f *fixture) {
	id := f.JobWithCallback(registrytest.Receiver(), registry.Notify)
	c := f.TakeItem(id)
	m := registrytest.CompletedMessage(id)
	for i := 1; i <= 2; i++ {
		d := f.NoteDelivery(c.Lease, m, 503, "not\x00 now")
		if d.ID != m.ID() || d.Subject != id || d.Tries != i || d.Status != 503 || !strings.Contains(d.Error, "now") || d.SentAt != nil || !d.TriedAt.Equal(f.Clock.Now()) {
			f.Errorf("try %d: %+v", i, d)
		}
		f.Clock.Pass(time.Second)
	}
	d := f.NoteDelivery(c.Lease, m, 204, "")
	if d.Tries != 3 || d.Status != 204 || d.Error != "" || d.SentAt == nil || !d.SentAt.Equal(f.Clock.Now()) || d.Target != "https://receiver.test" {
		f.Errorf("delivered: %+v", d)
	}
	if all := f.Deliveries(id); len(all) != 1 || all[0].ID != d.ID || all[0].Tries != 3 {
		f.Errorf("deliveries %+v", all)
	}
	events, err := f.Store.Events(f.Context(), id, 0, 500)
	f.Must(err)
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
	id := f.JobWithCallback(registrytest.Receiver(), registry.Notify)
	c := f.TakeItem(id)
	sent := f.NoteDelivery(c.Lease, registrytest.CompletedMessage(id), 200, "").SentAt
	f.Clock.Pass(time.Second)
	for _, text := range []string{"no answer", ""} {
		if d := f.NoteDelivery(c.Lease, registrytest.CompletedMessage(id), 0, text); d.SentAt == nil || !d.SentAt.Equal(*sent) {
			f.Errorf("after another try: %+v, want it delivered at %v", d, sent)
		}
	}
}

func deliveryFenced(f *fixture) {
	id, other := f.JobWithCallback(registrytest.Receiver(), registry.Notify), f.JobWithCallback(registrytest.Receiver(), registry.Notify)
	c := f.TakeItem(id)
	_, err := f.Store.NoteDelivery(f.Context(), c.Lease, registry.DeliveryTry{Message: registrytest.CompletedMessage(other)})
	f.Is(err, registry.ErrInvalid)
	f.Is(f.Store.PassOn(f.Context(), c.Lease, registrytest.CompletedMessage(other)), registry.ErrInvalid)
	stale := registry.Lease{ItemID: id, N: c.Lease.N - 1}
	_, err = f.Store.NoteDelivery(f.Context(), stale, registry.DeliveryTry{Message: registrytest.CompletedMessage(id)})
	f.Is(err, registry.ErrClaimLost)
	f.Is(f.Store.PassOn(f.Context(), stale, registrytest.CompletedMessage(id)), registry.ErrClaimLost)
	if n := len(f.Deliveries(id)) + len(f.Deliveries(other)) + len(f.DeliveryItems()); n != 0 {
		f.Errorf("%d deliveries and items came of it", n)
	}
}

func passedOn(f *fixture) {
	id := f.JobWithCallback(registrytest.Receiver(), registry.Notify)
	c := f.TakeItem(id)
	m := registrytest.CompletedMessage(id)
	f.NoteDelivery(c.Lease, m, 503, "not now")
	for range 2 {
		f.Must(f.Store.PassOn(f.Context(), c.Lease, m))
	}
	f.Done(c.Lease)
	f.State(id, registry.StateCompleted)
	all := f.DeliveryItems()
	if len(all) != 1 || all[0].Collection != registrytest.Mnemonic {
		f.Fatalf("items %+v, want one that goes on", all)
	}
	carrier := f.Take(registry.Deliver, "")
	spec, ok := registry.DeliverySpecIn(carrier.Item.Spec)
	if m.About = f.Item(id).Heading(); !ok || spec != m {
		f.Errorf("it tells %+v, want %+v", spec, m)
	}
	if d := f.NoteDelivery(carrier.Lease, spec, 200, ""); d.ID != m.ID() || d.Tries != 2 || d.SentAt == nil || d.ItemID != carrier.Item.ID {
		f.Errorf("delivered: %+v", d)
	}
	f.Done(carrier.Lease)
	f.State(carrier.Item.ID, registry.StateCompleted)
}

// passedOnAnew: a job can pass its message on even if an earlier item with that message was given
// up.
func passedOnAnew(f *fixture) {
	id := f.untold()
	f.Collection(registrytest.Mnemonic, registry.Profile{Owner: registrytest.Owner, Callback: registrytest.Receiver()})
	asked, err := f.Store.Redeliver(f.Context(), registry.RedeliverRequest{ItemID: id, Actor: "admin"})
	f.Must(err)
	f.Confirm(asked.ID, registry.ActAbort)
	f.Command(id, registry.ActRequeue, "")
	c := f.TakeItem(id)
	m := registrytest.CompletedMessage(id)
	for range 2 {
		f.Must(f.Store.PassOn(f.Context(), c.Lease, m))
	}
	f.Done(c.Lease)
	carrier := f.Take(registry.Deliver, "")
	if d := f.NoteDelivery(carrier.Lease, m, 200, ""); d.Tries != 2 || d.SentAt == nil || d.ItemID != carrier.Item.ID || len(f.DeliveryItems()) != 2 {
		f.Errorf("%+v, by %d items", d, len(f.DeliveryItems()))
	}
	f.Done(carrier.Lease)
}

func failureTold(f *fixture) {
	for _, tt := range []struct {
		callback *registry.Callback
		stage    registry.Stage
		want     int
	}{
		{registrytest.Receiver(), registry.Download, 1},
		{nil, registry.Download, 0},
		{&registry.Callback{URL: registrytest.Receiver().URL, CompletedOnly: true}, registry.Download, 0},
		{registrytest.Receiver(), registry.Notify, 0}, // it is preserved, and the receiver does not answer
	} {
		before := len(f.DeliveryItems())
		id := f.JobWithCallback(tt.callback, tt.stage)
		c := f.TakeItem(id)
		f.Settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeFailed, Class: registry.ContentFault, Error: "wrong digest"})
		all := f.DeliveryItems()
		if len(all)-before != tt.want {
			f.Errorf("%+v at %s: %d items, want %d", tt.callback, tt.stage, len(all)-before, tt.want)
			continue
		}
		if tt.want == 0 {
			if d := f.Deliveries(id); len(d) != 0 {
				f.Errorf("deliveries %+v", d)
			}
			continue
		}
		spec, _ := registry.DeliverySpecIn(f.Item(all[0].ID).Spec)
		if d := f.Deliveries(id); len(d) != 1 || d[0].Tries != 0 || d[0].State != registry.StateFailed || d[0].ItemID != all[0].ID || spec.Subject != id {
			f.Errorf("deliveries %+v by %+v", d, spec)
		}
	}
}

// bornFailedTold: refused rows are failed jobs. Their transaction queues a callback for each; a
// repeat queues none.
func bornFailedTold(f *fixture) {
	completedOnly := *registrytest.Receiver()
	completedOnly.CompletedOnly = true
	for _, unasked := range []*registry.Callback{nil, &completedOnly} { // nobody is to be told, or wants to be
		l := f.TakeItem(f.SubmitWithCallback(unasked)).Lease
		jobs := registrytest.NewJobs(2)
		jobs[0].Fault = "the line is wrong"
		_, err := f.Store.AddJobs(f.Context(), l, jobs)
		f.Must(err)
		if all := f.DeliveryItems(); len(all) != 0 {
			f.Errorf("%+v: items %+v", unasked, all)
		}
		f.Done(l)
	}
	batch := f.SubmitWithCallback(registrytest.Receiver())
	l := f.TakeItem(batch).Lease
	jobs := registrytest.NewJobs(40)
	for i := range jobs {
		jobs[i].Fault = "the line is wrong"
	}
	jobs[3].Fault = "" // good
	for range 2 {
		_, err := f.Store.AddJobs(f.Context(), l, jobs)
		f.Must(err)
	}
	carriers := map[string]registry.DeliverySpec{}
	for _, it := range f.DeliveryItems() {
		spec, ok := registry.DeliverySpecIn(it.Spec)
		if !ok || it.Collection != registrytest.Mnemonic || it.Status != registry.Pending {
			f.Errorf("carrier %+v", it)
		}
		carriers[spec.Subject] = spec
	}
	for i, id := range f.Children(batch) {
		told := i != 3
		d := f.Deliveries(id)
		if (len(d) == 1) != told || told && (d[0].State != registry.StateFailed || d[0].ID != carriers[id].ID() || d[0].Tries != 0) {
			f.Errorf("row %d: deliveries %+v", i+1, d)
		}
	}
	if len(carriers) != 39 {
		f.Errorf("%d messages, want 39", len(carriers))
	}
	f.Done(l)
	f.Invariants()
}

func failureToldOnce(f *fixture) {
	id := f.JobWithCallback(registrytest.Receiver(), registry.Download)
	fail := func() {
		f.Helper()
		c := f.TakeItem(id)
		s := registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "no"}
		f.Settle(s)
		f.Settle(s) // which is answered with the recorded verdict (R9)
	}
	fail()
	_, err := f.Store.Command(f.Context(), registry.Command{ItemID: id, Act: registry.ActRequeue, From: registry.Download, Actor: "admin"})
	f.Must(err)
	fail()
	var ids []string
	for _, d := range f.Deliveries(id) {
		ids = append(ids, d.ID)
	}
	if len(ids) != 2 || ids[0] == ids[1] || len(f.DeliveryItems()) != 2 {
		f.Errorf("messages %q by %d items, want one a failure", ids, len(f.DeliveryItems()))
	}
	// A lost worker's last try fails, too, in the sweep.
	lost := f.JobWithCallback(registrytest.Receiver(), registry.Download)
	for !f.Item(lost).Status.Settled() {
		f.LoseOnce(lost)
	}
	if d := f.Deliveries(lost); len(d) != 1 {
		f.Errorf("of a lost job %+v", d)
	}
}

func redelivered(f *fixture) {
	id := f.JobWithCallback(registrytest.Receiver(), registry.Notify)
	c := f.TakeItem(id)
	f.NoteDelivery(c.Lease, registrytest.CompletedMessage(id), 200, "")
	f.Done(c.Lease)
	f.Collection(registrytest.Mnemonic, registry.Profile{Owner: registrytest.Owner, Callback: &registry.Callback{URL: "https://moved.test/"}})
	r := registry.RedeliverRequest{ItemID: id, Reason: "it was lost", Actor: "admin", IdempotencyKey: f.Unique("key")}
	var items []string
	for range 2 {
		it, err := f.Store.Redeliver(f.Context(), r)
		f.Must(err)
		items = append(items, it.ID)
	}
	if items[0] != items[1] || len(f.DeliveryItems()) != 1 {
		f.Errorf("items %q, want the repeat to be answered with the first", items)
	}
	r.Reason = "another"
	_, err := f.Store.Redeliver(f.Context(), r)
	f.Is(err, registry.ErrIdempotencyConflict)
	carrier := f.Take(registry.Deliver, "")
	spec, _ := registry.DeliverySpecIn(carrier.Item.Spec)
	want := registrytest.CompletedMessage(id)
	if of := f.Item(id).Heading(); spec.About != of || of == id || !strings.Contains(carrier.Item.Name, of) {
		f.Errorf("%q, about %q, does not say the job's heading %q", carrier.Item.Name, spec.About, of)
	}
	if spec.ID() != want.ID() || !spec.Again || spec.Reason != "it was lost" || spec.Callback.URL != "https://moved.test/" {
		f.Errorf("it tells %+v", spec)
	}
	if d := f.NoteDelivery(carrier.Lease, spec, 200, ""); d.Tries != 2 || d.Target != "https://moved.test" {
		f.Errorf("%+v", d)
	}
}

func redeliverRefused(f *fixture) {
	batch, jobs := f.Batch(1)
	ask := func(id string) error {
		_, err := f.Store.Redeliver(f.Context(), registry.RedeliverRequest{ItemID: id, Actor: "admin"})
		return err
	}
	f.Is(ask("none"), registry.ErrNotFound)
	f.Is(ask(batch), registry.ErrInvalid)
	f.Is(ask(jobs[0]), registry.ErrInvalid) // it goes on
	c := f.TakeItem(jobs[0])
	f.Settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "no"})
	f.Is(ask(jobs[0]), registry.ErrNoCallback)
	f.Collection(registrytest.Mnemonic, registry.Profile{Owner: registrytest.Owner, Callback: registrytest.Receiver()})
	f.Must(ask(jobs[0]))
	if d := f.Deliveries(jobs[0]); len(d) != 1 || d[0].State != registry.StateFailed {
		f.Errorf("%+v", d)
	}
}

// jobsRedelivered: what is asked for all jobs of a batch is the same as for each of them; what goes
// on has no outcome. A large batch is asked for in parts.
func jobsRedelivered(f *fixture) {
	batch, jobs := f.Batch(registry.RedeliveredAtOnce + 2)
	ask := func(id, after, key string) (registry.Redelivered, error) {
		return f.Store.RedeliverJobs(f.Context(), registry.RedeliverJobsRequest{BatchID: id, After: after, Reason: "it was lost", Actor: "admin", IdempotencyKey: key})
	}
	_, err := ask(jobs[0], "", "")
	f.Is(err, registry.ErrInvalid)
	_, err = ask("none", "", "")
	f.Is(err, registry.ErrNotFound)
	_, err = ask(batch, "", "")
	f.Is(err, registry.ErrNoCallback)
	f.Collection(registrytest.Mnemonic, registry.Profile{Owner: registrytest.Owner, Callback: registrytest.Receiver()})
	failed := []string{jobs[0], jobs[len(jobs)-1]}
	for _, id := range failed {
		f.Settle(registry.Settlement{Lease: f.TakeItem(id).Lease, Outcome: registry.OutcomeFailed, Class: registry.SystemFault, Error: "no"})
	}
	if len(f.DeliveryItems()) != 0 {
		f.Fatalf("deliveries of jobs without a callback: %+v", f.DeliveryItems())
	}
	key := f.Unique("key")
	first, err := ask(batch, "", key)
	f.Must(err)
	for range 2 {
		again, err := ask(batch, "", key)
		f.Must(err)
		if again != first || first.Queued != 1 || first.Next == "" {
			f.Fatalf("%+v, the first %+v", again, first)
		}
	}
	last, err := ask(batch, first.Next, f.Unique("key"))
	f.Must(err)
	if last.Queued != 1 || last.Next != "" {
		f.Errorf("the rest: %+v", last)
	}
	if items := f.DeliveryItems(); len(items) != 2 {
		f.Errorf("%d items deliver, want 2", len(items))
	}
	for _, id := range failed {
		d := f.Deliveries(id)
		if len(d) != 1 || d[0].State != registry.StateFailed || d[0].ItemID == "" || d[0].Target != "https://receiver.test" {
			f.Fatalf("%+v", d)
		}
		if _, err := f.Store.Redeliver(f.Context(), registry.RedeliverRequest{ItemID: id, Actor: "admin"}); err != nil {
			f.Errorf("%v", err)
		}
		if one := f.Deliveries(id); len(one) != 1 || one[0].ID != d[0].ID || one[0].ItemID == d[0].ItemID {
			f.Errorf("%+v, asked for alone; together %+v", one, d)
		}
	}
	_, err = ask(batch, "x", "")
	f.Is(err, registry.ErrNotFound)
}

func deliveryPurged(f *fixture) {
	id := f.JobWithCallback(registrytest.Receiver(), registry.Notify)
	c := f.TakeItem(id)
	f.NoteDelivery(c.Lease, registrytest.CompletedMessage(id), 200, "")
	f.Must(f.Store.PassOn(f.Context(), c.Lease, registrytest.CompletedMessage(id)))
	f.Done(c.Lease)
	f.Finish(f.Item(id).ParentID)
	_, err := f.Store.Command(f.Context(), registry.Command{ItemID: f.Item(id).ParentID, Act: registry.ActPurge, Actor: "admin"})
	f.Must(err)
	if d := f.Deliveries(id); len(d) != 0 {
		f.Errorf("deliveries %+v of an item that was purged", d)
	}
	// Whoever was about to tell it can still say so.
	carrier := f.Take(registry.Deliver, "")
	spec, _ := registry.DeliverySpecIn(carrier.Item.Spec)
	if d := f.NoteDelivery(carrier.Lease, spec, 200, ""); d.ID != spec.ID() || d.SentAt == nil || d.Tries != 1 {
		f.Errorf("of a purged job it notes %+v", d)
	}
	f.Done(carrier.Lease)
	f.State(carrier.Item.ID, registry.StateCompleted)
	if d := f.Deliveries(id); len(d) != 0 {
		f.Errorf("deliveries %+v are there again, and nothing removes them", d)
	}
}
