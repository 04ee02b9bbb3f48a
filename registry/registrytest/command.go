package registrytest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
)

func commandTests() []test {
	return []test{
		{"requeue_to_each_earlier_stage", requeueEach},
		{"requeue_of_a_cancelled_job", requeueCancelled},
		{"requeue_of_a_batch", requeueBatch},
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
