package registrytest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
)

func commandTests() []test {
	return []test{
		{"requeue_to_each_earlier_stage", requeueEach},
		{"requeue_of_a_cancelled_job", requeueCancelled},
		{"requeue_of_a_batch", requeueBatch},
		{"retry_now_is_a_try_at_once_and_counts_as_one", retryNow},
		{"retry_now_waits_for_what_else_keeps_an_item", retryNowKept},
		{"retry_now_of_many", retryNowBulk},
		{"retry_now_brings_no_tidying_forward", retryNowTidy},
		{"refused_transitions", refusedTransitions},
		{"cancel", cancel},
		{"a_key_is_carried_out_once", commandKey},
		{"I12_actor_and_reason_are_kept", commandAudit},
	}
}

// refusedCommand asks for an act that the state machine does not have.
func (f *fixture) refusedCommand(id string, act registry.Act, stage registry.Stage, from, to registry.State) {
	f.Helper()
	before := f.item(id)
	_, err := f.Command(f.Context(), registry.Command{ItemID: id, Act: act, From: stage, Actor: "admin"})
	var te *registry.TransitionError
	if !errors.As(err, &te) {
		f.Errorf("%s %s: %v, want a refused transition", act, stage, err)
		return
	}
	if want := fmt.Sprintf("state change (%s -> %s) is not allowed", from, to); !strings.Contains(err.Error(), want) || te.ItemID != id {
		f.Errorf("%s %s: %q, want %q of item %s", act, stage, err, want, id)
	}
	if diff := cmp.Diff(before, f.item(id)); diff != "" {
		f.Errorf("the refused %s changed the item:\n%s", act, diff)
	}
}

func requeueEach(f *fixture) {
	route, _ := registry.RouteOf(registry.Ingest)
	route = route.With(nil)
	for _, at := range []registry.Stage{registry.Estimate, registry.Download, registry.Notify} {
		for _, to := range append(route.UpTo(at), "") {
			id := f.job(at)
			f.fail(id, registry.SystemFault)
			it := f.command(id, registry.ActRequeue, to)
			want := to
			if to == "" {
				want = at
			}
			if it.Stage != want || it.Status != registry.Pending || it.Tries != 0 || it.RetryCount != 1 || it.ErrorClass != "" ||
				it.Note != "" || it.FinishedAt != nil || it.NeedsAdminReview {
				f.Errorf("failed at %s, requeued to %q: %+v", at, to, it)
			}
			if got := f.take(want, id).Item.ID; got != id {
				f.Errorf("claimed %s", got)
			}
		}
		id := f.job(at)
		f.fail(id, registry.SystemFault)
		for _, later := range []registry.Stage{registry.Report, "nonsense"} {
			f.refusedCommand(id, registry.ActRequeue, later, registry.StateFailed, registry.StatePending)
		}
		if next, ok := route.Next(at); ok {
			f.refusedCommand(id, registry.ActRequeue, next, registry.StateFailed, registry.StatePending)
		}
	}
}

// delay has an item wait an hour for its next try.
func (f *fixture) delay(id string) {
	f.Helper()
	f.settle(registry.Settlement{
		Lease: f.takeItem(id).Lease, Outcome: registry.OutcomeRetry, Delay: time.Hour, Error: "the server is down", Class: registry.SystemFault, MaxAttempts: 5,
	})
}

// retryNow: what waits for its time is claimed at once, with the tries it had; one that is due, runs or failed waits for no time.
func retryNow(f *fixture) {
	batch := f.submit()
	f.delay(batch)
	f.sure(batch, registry.ActRetryNow)
	f.done(f.take(registry.Expand, batch).Lease)

	id := f.job(registry.Download)
	for tries := 1; tries <= 4; tries++ {
		f.refusedCommand(id, registry.ActRetryNow, "", f.item(id).State, registry.StatePending)
		f.delay(id)
		if got := f.refused(registry.Download, id).Reason; got != registry.ReasonNotDue {
			f.Errorf("claim: %s, want %s", got, registry.ReasonNotDue)
		}
		why, err := f.Why(f.Context(), id)
		f.must(err)
		f.says(why.Act, "tried again by itself", "at once: retry item "+id)
		if it := f.sure(id, registry.ActRetryNow); it.Status != registry.Pending || it.Tries != tries || it.RetryCount != 0 || it.Delayed || it.RunAt.After(f.clock.now()) {
			f.Errorf("retried after %d tries: %+v", tries, it)
		}
		if got := f.offered(5); !has(got, id) {
			f.Errorf("due %v, want %s", got, id)
		}
	}
	c := f.take(registry.Download, id)
	f.refusedCommand(id, registry.ActRetryNow, "", registry.StateDownloading, registry.StatePending)
	v, err := f.Settle(f.Context(), registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeRetry, Delay: time.Hour, MaxAttempts: 5, Error: "still down", Class: registry.SystemFault})
	f.must(err)
	if v.Status != registry.Failed {
		f.Errorf("the fifth try left it %s, want failed", v.Status)
	}
	f.refusedCommand(id, registry.ActRetryNow, "", registry.StateFailed, registry.StatePending)
}

// retryNowKept: a hold goes on keeping the item, and so does an open prerequisite.
func retryNowKept(f *fixture) {
	id := f.job(registry.Download)
	f.delay(id)
	f.hold(registry.HoldItem, id)
	f.sure(id, registry.ActRetryNow)
	if got := f.refused(registry.Download, id).Reason; got != registry.ReasonHeld {
		f.Errorf("claim: %s, want held", got)
	}
	f.release(registry.HoldItem, id)
	f.take(registry.Download, id)

	snoozed := f.processing(1)[0]
	f.snooze(snoozed.Lease)
	f.sure(snoozed.Item.ID, registry.ActRetryNow)
	if got := f.take(registry.Process, snoozed.Item.ID).Item.Tries; got != 0 {
		f.Errorf("%d tries, want none: it only waited", got)
	}
}

// retryNowBulk: a query finds what waits for its time, and what is due by then is left alone.
func retryNowBulk(f *fixture) {
	batch, jobs := f.batch(3)
	f.delay(jobs[0])
	f.delay(jobs[1])
	bulk := f.bulk(registry.ActRetryNow, "batch:"+batch, "delayed:yes")
	f.sure(jobs[0], registry.ActRetryNow)
	if p := f.apply(bulk.ID); p.Matched != 2 || p.Applied != 1 || p.Refused != 0 {
		f.Errorf("%+v, want one of two retried", p)
	}
	for _, id := range jobs {
		f.take(registry.Estimate, id)
	}
}

// retryNowTidy: until its time comes a superseded worker may still write what it removes (R26).
func retryNowTidy(f *fixture) {
	id := f.job(registry.Download)
	f.takeItem(id)
	f.sure(id, registry.ActAbort)
	f.refusedCommand(f.tidyOf(id).ID, registry.ActRetryNow, "", registry.StatePending, registry.StatePending)
}

func requeueCancelled(f *fixture) {
	id := f.job(registry.Download)
	f.command(id, registry.ActCancel, "")
	f.command(id, registry.ActRequeue, registry.Estimate)
	f.finish(id)
}

func requeueBatch(f *fixture) {
	id := f.submit()
	f.fail(id, registry.ContentFault)
	f.command(id, registry.ActRequeue, "")
	c := f.take(registry.Expand, id)
	_, err := f.AddJobs(f.Context(), c.Lease, newJobs(1))
	f.must(err)
	f.done(c.Lease)
	f.finish(f.children(id)[0])
	f.fail(id, registry.SystemFault) // the mail could not be sent
	f.command(id, registry.ActRequeue, "")
	if it := f.item(id); it.Closing != 1 {
		f.Errorf("closing=%d: a report that was not sent is no update", it.Closing)
	}
	f.done(f.take(registry.Report, id).Lease)
	f.state(id, registry.StateCompleted)
}

func refusedTransitions(f *fixture) {
	batch, jobs := f.batch(3)
	f.refusedCommand(jobs[0], registry.ActRequeue, "", registry.StatePending, registry.StatePending)
	f.refusedCommand(batch, registry.ActUpdateReport, "", registry.StateProcessing, registry.StateUpdateReport)
	f.finish(jobs[0])
	f.refusedCommand(jobs[0], registry.ActRequeue, "", registry.StateCompleted, registry.StatePending)
	f.refusedCommand(jobs[0], registry.ActCancel, "", registry.StateCompleted, registry.StateCancelled)
	l := f.takeItem(jobs[1]).Lease
	f.refusedCommand(jobs[1], registry.ActRequeue, "", registry.StateEstimating, registry.StatePending)
	f.settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeFailed, Class: registry.ContentFault, Error: "no"})
	f.refusedCommand(jobs[1], registry.ActCancel, "", registry.StateFailed, registry.StateCancelled)
	f.refusedCommand(jobs[1], registry.ActUpdateReport, "", registry.StateFailed, registry.StateUpdateReport)
	f.refusedCommand(jobs[2], registry.ActClaim, "", registry.StatePending, registry.StatePending)
	_, err := f.Command(f.Context(), registry.Command{ItemID: "unknown", Act: registry.ActCancel, Actor: "admin"})
	f.is(err, registry.ErrNotFound)
	if got := f.item(jobs[1]).AllowedActs; !slices.Equal(got, registry.AllowedActs(f.item(jobs[1]).Position())) || got[0] != registry.ActRequeue {
		f.Errorf("allowed acts of a failed job: %v", got)
	}
}

func cancel(f *fixture) {
	batch, jobs := f.batch(1)
	it := f.command(jobs[0], registry.ActCancel, "")
	if it.State != registry.StateCancelled || it.NeedsAdminReview || it.Retry || it.FinishedAt == nil {
		f.Errorf("cancelled item: %+v", it)
	}
	if got := f.refused(registry.Estimate, jobs[0]).Reason; got != registry.ReasonSettled {
		f.Errorf("claim of a cancelled item: %s", got)
	}
	f.done(f.take(registry.Report, batch).Lease)
	f.state(batch, registry.StateFailed)
}

func commandKey(f *fixture) {
	id := f.job(registry.Download)
	f.fail(id, registry.SystemFault)
	c := registry.Command{ItemID: id, Act: registry.ActRequeue, Actor: "admin", IdempotencyKey: "k"}
	for range 3 {
		if _, err := f.Command(f.Context(), c); err != nil {
			f.Fatal(err)
		}
	}
	if got := f.item(id).RetryCount; got != 1 {
		f.Errorf("retry_count=%d, want 1", got)
	}
	f.fail(id, registry.SystemFault)
	it, err := f.Command(f.Context(), c)
	f.must(err)
	if it.Status != registry.Failed {
		f.Error("a late repeat requeued the item again")
	}
	c.From = registry.Estimate
	_, err = f.Command(f.Context(), c)
	f.is(err, registry.ErrIdempotencyConflict)
	s := submission()
	s.IdempotencyKey = "k"
	_, err = f.Submit(f.Context(), s)
	f.is(err, registry.ErrIdempotencyConflict)
}

func commandAudit(f *fixture) {
	id := f.job(registry.Download)
	f.fail(id, registry.SystemFault)
	f.command(id, registry.ActRequeue, registry.Estimate)
	es, err := f.Events(f.Context(), id, 0, 100)
	f.must(err)
	last := es[len(es)-1]
	if last.Type != string(registry.ActRequeue) || last.Actor != "admin" || !last.At.Equal(f.clock.now()) || !strings.Contains(string(last.Data), "because") {
		f.Errorf("event %+v %s", last, last.Data)
	}
	f.hold(registry.HoldItem, id)
	f.release(registry.HoldItem, id)
	es, err = f.Events(f.Context(), id, last.Seq, 100)
	f.must(err)
	for _, e := range es {
		if e.Actor != "admin" || e.Seq <= last.Seq {
			f.Errorf("event %+v", e)
		}
	}
	if len(es) != 2 {
		f.Errorf("%d events of a hold and its release", len(es))
	}
}
