package worktest

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func commandTests() tests {
	return tests{
		"requeue_to_each_earlier_stage":                    requeueEach,
		"requeue_of_a_cancelled_job":                       requeueCancelled,
		"requeue_of_a_batch":                               requeueBatch,
		"retry_now_is_a_try_at_once_and_counts_as_one":     retryNow,
		"retry_now_waits_for_what_else_keeps_an_item":      retryNowKept,
		"retry_now_of_many":                                retryNowBulk,
		"retry_now_brings_no_tidying_forward":              retryNowTidy,
		"refused_transitions":                              refusedTransitions,
		"cancel":                                           cancel,
		"a_key_is_carried_out_once":                        commandKey,
		"I12_actor_and_reason_are_kept":                    commandAudit,
		"a_dry_run_answers_as_the_act_and_changes_nothing": dryRun,
	}
}

func requeueEach(f *fixture) {
	route, _ := registry.RouteOf(registry.Ingest)
	route = route.With(nil)
	for _, at := range []registry.Stage{registry.Estimate, registry.Download, registry.Notify} {
		for _, to := range append(route.UpTo(at), "") {
			id := f.Job(at)
			f.FailItem(id, registry.SystemFault)
			it := f.Command(id, registry.ActRequeue, to)
			want := to
			if to == "" {
				want = at
			}
			if it.Stage != want || it.Status != registry.Pending || it.Tries != 0 || it.RetryCount != 1 || it.ErrorClass != "" ||
				it.Note != "" || it.FinishedAt != nil || it.NeedsAdminReview {
				f.Errorf("failed at %s, requeued to %q: %+v", at, to, it)
			}
			if got := f.Take(want, id).Item.ID; got != id {
				f.Errorf("claimed %s", got)
			}
		}
		id := f.Job(at)
		f.FailItem(id, registry.SystemFault)
		for _, later := range []registry.Stage{registry.Report, "nonsense"} {
			f.RefusedCommand(id, registry.ActRequeue, later, registry.StateFailed, registry.StatePending)
		}
		if next, ok := route.Next(at); ok {
			f.RefusedCommand(id, registry.ActRequeue, next, registry.StateFailed, registry.StatePending)
		}
	}
}

// delay makes an item wait an hour for its next try.
func (f *fixture) delay(id string) {
	f.Helper()
	f.Settle(registry.Settlement{
		Lease: f.TakeItem(id).Lease, Outcome: registry.OutcomeRetry, Delay: time.Hour, Error: "the server is down", Class: registry.SystemFault, MaxAttempts: 5,
	})
}

// retryNow: an item that waits for its time is claimed at once, and keeps its tries. Other items
// wait for no time.
func retryNow(f *fixture) {
	batch := f.Submit()
	f.delay(batch)
	f.Confirm(batch, registry.ActRetryNow)
	f.Done(f.Take(registry.Expand, batch).Lease)

	id := f.Job(registry.Download)
	for tries := 1; tries <= 4; tries++ {
		f.RefusedCommand(id, registry.ActRetryNow, "", f.Item(id).State, registry.StatePending)
		f.delay(id)
		if got := f.Refused(registry.Download, id).Reason; got != registry.ReasonNotDue {
			f.Errorf("claim: %s, want %s", got, registry.ReasonNotDue)
		}
		why, err := f.Store.Why(f.Context(), id)
		f.Must(err)
		f.Says(why.Act, "retried automatically", "at once: retry item "+id)
		if it := f.Confirm(id, registry.ActRetryNow); it.Status != registry.Pending || it.Tries != tries || it.RetryCount != 0 || it.Delayed || it.RunAt.After(f.Clock.Now()) {
			f.Errorf("retried after %d tries: %+v", tries, it)
		}
		if got := f.Offered(5); !slices.Contains(got, id) {
			f.Errorf("due %v, want %s", got, id)
		}
	}
	c := f.Take(registry.Download, id)
	f.RefusedCommand(id, registry.ActRetryNow, "", registry.StateDownloading, registry.StatePending)
	v, err := f.Store.Settle(f.Context(), registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeRetry, Delay: time.Hour, MaxAttempts: 5, Error: "still down", Class: registry.SystemFault})
	f.Must(err)
	if v.Status != registry.Failed {
		f.Errorf("the fifth try left it %s, want failed", v.Status)
	}
	f.RefusedCommand(id, registry.ActRetryNow, "", registry.StateFailed, registry.StatePending)
}

// retryNowKept: a hold or an open requirement still stops the item.
func retryNowKept(f *fixture) {
	id := f.Job(registry.Download)
	f.delay(id)
	f.Hold(registry.HoldItem, id)
	f.Confirm(id, registry.ActRetryNow)
	if got := f.Refused(registry.Download, id).Reason; got != registry.ReasonHeld {
		f.Errorf("claim: %s, want held", got)
	}
	f.Release(registry.HoldItem, id)
	f.Take(registry.Download, id)

	snoozed := f.Processing(1)[0]
	f.Snooze(snoozed.Lease)
	f.Confirm(snoozed.Item.ID, registry.ActRetryNow)
	if got := f.Take(registry.Process, snoozed.Item.ID).Item.Tries; got != 0 {
		f.Errorf("%d tries, want none: it only waited", got)
	}
}

// retryNowBulk: a query finds the items that wait for their time, and leaves alone those that are
// due by then.
func retryNowBulk(f *fixture) {
	batch, jobs := f.Batch(3)
	f.delay(jobs[0])
	f.delay(jobs[1])
	bulk := f.Bulk(registry.ActRetryNow, "batch:"+batch, "delayed:yes")
	f.Confirm(jobs[0], registry.ActRetryNow)
	if p := f.Apply(bulk.ID); p.Matched != 2 || p.Applied != 1 || p.Refused != 0 {
		f.Errorf("%+v, want one of two retried", p)
	}
	for _, id := range jobs {
		f.Take(registry.Estimate, id)
	}
}

// retryNowTidy: a tidy keeps its time, because a superseded worker may still write what it removes
// (R26).
func retryNowTidy(f *fixture) {
	id := f.Job(registry.Download)
	f.TakeItem(id)
	f.Confirm(id, registry.ActAbort)
	f.RefusedCommand(f.TidyOf(id).ID, registry.ActRetryNow, "", registry.StatePending, registry.StatePending)
}

func requeueCancelled(f *fixture) {
	id := f.Job(registry.Download)
	f.Command(id, registry.ActCancel, "")
	f.Command(id, registry.ActRequeue, registry.Estimate)
	f.Finish(id)
}

func requeueBatch(f *fixture) {
	id := f.Submit()
	f.FailItem(id, registry.ContentFault)
	f.Command(id, registry.ActRequeue, "")
	c := f.Take(registry.Expand, id)
	_, err := f.Store.AddJobs(f.Context(), c.Lease, registrytest.NewJobs(1))
	f.Must(err)
	f.Done(c.Lease)
	f.Finish(f.Children(id)[0])
	f.FailItem(id, registry.SystemFault) // the mail could not be sent
	f.Command(id, registry.ActRequeue, "")
	if it := f.Item(id); it.Closing != 1 {
		f.Errorf("closing=%d: a report that was not sent is no update", it.Closing)
	}
	f.Done(f.Take(registry.Report, id).Lease)
	f.State(id, registry.StateCompleted)
}

func refusedTransitions(f *fixture) {
	batch, jobs := f.Batch(3)
	f.RefusedCommand(jobs[0], registry.ActRequeue, "", registry.StatePending, registry.StatePending)
	f.RefusedCommand(batch, registry.ActUpdateReport, "", registry.StateProcessing, registry.StateUpdateReport)
	f.Finish(jobs[0])
	f.RefusedCommand(jobs[0], registry.ActRequeue, "", registry.StateCompleted, registry.StatePending)
	f.RefusedCommand(jobs[0], registry.ActCancel, "", registry.StateCompleted, registry.StateCancelled)
	l := f.TakeItem(jobs[1]).Lease
	f.RefusedCommand(jobs[1], registry.ActRequeue, "", registry.StateEstimating, registry.StatePending)
	f.Settle(registry.Settlement{Lease: l, Outcome: registry.OutcomeFailed, Class: registry.ContentFault, Error: "no"})
	f.RefusedCommand(jobs[1], registry.ActCancel, "", registry.StateFailed, registry.StateCancelled)
	f.RefusedCommand(jobs[1], registry.ActUpdateReport, "", registry.StateFailed, registry.StateUpdateReport)
	f.RefusedCommand(jobs[2], registry.ActClaim, "", registry.StatePending, registry.StatePending)
	_, err := f.Store.Command(f.Context(), registry.Command{ItemID: "unknown", Act: registry.ActCancel, Actor: "admin"})
	f.Is(err, registry.ErrNotFound)
	if got := f.Item(jobs[1]).AllowedActs; !slices.Equal(got, registry.AllowedActs(f.Item(jobs[1]).Position())) || got[0] != registry.ActRequeue {
		f.Errorf("allowed acts of a failed job: %v", got)
	}
}

func cancel(f *fixture) {
	batch, jobs := f.Batch(1)
	it := f.Command(jobs[0], registry.ActCancel, "")
	if it.State != registry.StateCancelled || it.NeedsAdminReview || it.Retry || it.FinishedAt == nil {
		f.Errorf("cancelled item: %+v", it)
	}
	if got := f.Refused(registry.Estimate, jobs[0]).Reason; got != registry.ReasonSettled {
		f.Errorf("claim of a cancelled item: %s", got)
	}
	f.Done(f.Take(registry.Report, batch).Lease)
	f.State(batch, registry.StateFailed)
}

func commandKey(f *fixture) {
	id := f.Job(registry.Download)
	f.FailItem(id, registry.SystemFault)
	c := registry.Command{ItemID: id, Act: registry.ActRequeue, Actor: "admin", IdempotencyKey: "k"}
	for range 3 {
		if _, err := f.Store.Command(f.Context(), c); err != nil {
			f.Fatal(err)
		}
	}
	if got := f.Item(id).RetryCount; got != 1 {
		f.Errorf("retry_count=%d, want 1", got)
	}
	f.FailItem(id, registry.SystemFault)
	it, err := f.Store.Command(f.Context(), c)
	f.Must(err)
	if it.Status != registry.Failed {
		f.Error("a late repeat requeued the item again")
	}
	c.From = registry.Estimate
	_, err = f.Store.Command(f.Context(), c)
	f.Is(err, registry.ErrIdempotencyConflict)
	s := registrytest.Submission()
	s.IdempotencyKey = "k"
	_, err = f.Store.Submit(f.Context(), s)
	f.Is(err, registry.ErrIdempotencyConflict)
}

func commandAudit(f *fixture) {
	id := f.Job(registry.Download)
	f.FailItem(id, registry.SystemFault)
	f.Command(id, registry.ActRequeue, registry.Estimate)
	es, err := f.Store.Events(f.Context(), id, 0, 100)
	f.Must(err)
	last := es[len(es)-1]
	if last.Type != string(registry.ActRequeue) || last.Actor != "admin" || !last.At.Equal(f.Clock.Now()) || !strings.Contains(string(last.Data), "because") {
		f.Errorf("event %+v %s", last, last.Data)
	}
	f.Hold(registry.HoldItem, id)
	f.Release(registry.HoldItem, id)
	es, err = f.Store.Events(f.Context(), id, last.Seq, 100)
	f.Must(err)
	for _, e := range es {
		if e.Actor != "admin" || e.Seq <= last.Seq {
			f.Errorf("event %+v", e)
		}
	}
	if len(es) != 2 {
		f.Errorf("%d events of a hold and its release", len(es))
	}
}

// dryRun: it returns the item as it would be, or the error of the act, and leaves no trace: neither
// in rows nor in events, and its key is free.
func dryRun(f *fixture) {
	id := f.Job(registry.Download)
	running := f.Take(registry.Download, id)
	before := f.Item(id)
	ask := registry.Command{ItemID: id, Act: registry.ActCancel, Reason: "why not", Actor: "ann", IdempotencyKey: "k", DryRun: true}
	it, err := f.Store.Command(f.Context(), ask)
	f.Must(err)
	if it.Status != registry.Cancelled {
		f.Errorf("a dry run answers %s, want cancelled", it.Status)
	}
	ask.Act = registry.ActAbort
	var needed *registry.ConfirmationNeeded
	if _, err := f.Store.Command(f.Context(), ask); !errors.As(err, &needed) || len(needed.Consequences) == 0 {
		f.Errorf("a dry run of an abort: %v, want its consequences", err)
	}
	ask.Confirmed = true
	if it, err := f.Store.Command(f.Context(), ask); err != nil || it.Status != registry.Aborted {
		f.Errorf("a dry run of a confirmed abort: %s, %v", it.Status, err)
	}
	ask.Act = registry.ActRequeue
	var refused *registry.TransitionError
	if _, err := f.Store.Command(f.Context(), ask); !errors.As(err, &refused) {
		f.Errorf("a dry run of a requeue of a running item: %v, want the refusal", err)
	}
	events, err := f.Store.Events(f.Context(), id, 0, 500)
	f.Must(err)
	for _, e := range events {
		if e.Actor == "ann" {
			f.Errorf("a dry run left the event %s", e.Type)
		}
	}
	if after := f.Item(id); after.Status != before.Status || after.Attempt != before.Attempt || !after.UpdatedAt.Equal(before.UpdatedAt) {
		f.Errorf("a dry run left %+v, want %+v", after, before)
	}
	f.Done(running.Lease) // still the claim of its worker
	ask.Act, ask.DryRun = registry.ActHold, false
	if it, err := f.Store.Command(f.Context(), ask); err != nil || it.HeldBy == nil {
		f.Errorf("the key of a dry run: %v", err)
	}
}
