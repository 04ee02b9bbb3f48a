package worktest

import (
	"slices"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func heldWorkerTests() tests {
	return tests{
		"a_held_worker_gets_nothing_and_others_are_rung_for": heldWorkerTurnedAway,
		"by_its_id_or_by_its_host":                           heldWorkerKeys,
		"what_it_runs_goes_on":                               heldWorkerGoesOn,
		"R09_a_repeated_claim_is_answered_as_before":         heldWorkerRepeat,
		"R20_its_slots_are_not_in_the_window":                heldWorkerWindow,
	}
}

// asks claims for a worker, and returns the reason of a refusal, "" for a claim.
func (f *fixture) asks(worker, hint string) (registry.Claim, registry.Reason) {
	f.Helper()
	return f.asksAt(registry.Expand, worker, hint)
}

func (f *fixture) asksAt(stage registry.Stage, worker, hint string) (registry.Claim, registry.Reason) {
	f.Helper()
	r := f.Request(stage, hint)
	r.Worker = worker
	c, err := f.Store.Claim(f.Context(), r)
	if err == nil {
		return c, ""
	}
	return c, f.ReasonOf(err)
}

func heldWorkerTurnedAway(f *fixture) {
	id := f.Submit()
	if got := f.Offered(1); !slices.Equal(got, []string{id}) {
		f.Fatalf("due %v", got)
	}
	f.Hold(registry.HoldWorker, "worker-1")
	if _, got := f.asks("worker-1", id); got != registry.ReasonHeld {
		f.Fatalf("claim of a held worker: %q, want held", got)
	}
	f.State(id, registry.StatePending) // the item itself is not held
	f.HeldBy(id, "", "")
	if got := f.Item(id).Attempt; got != 0 {
		f.Errorf("attempt=%d, want 0", got)
	}
	if got := f.Offered(1); len(got) != 0 {
		f.Errorf("due %v at once: the held worker would be asked without end", got)
	}
	f.Clock.Pass(time.Second)
	if got := f.Offered(1); !slices.Equal(got, []string{id}) {
		f.Errorf("due %v a second later, want %s for another worker", got, id)
	}
	if c, got := f.asks("worker-2", id); got != "" || c.Item.ID != id {
		f.Errorf("another worker got %s, %q", c.Item.ID, got)
	}
	f.Release(registry.HoldWorker, "worker-1")
	next := f.Submit()
	if c, got := f.asks("worker-1", next); got != "" || c.Item.ID != next {
		f.Errorf("after the release it got %s, %q", c.Item.ID, got)
	}
}

func heldWorkerKeys(f *fixture) {
	id := f.Submit()
	for _, tt := range []struct {
		worker, key string
		held        bool
	}{
		{"node-17-x7k2qa", "node-17-x7k2qa", true},
		{"node-17-x7k2qa", "node", true},
		{"node-17-x7k2qa", "nod", false},
		{"node-17-x7k2qa", "node-17-x7k2qb", false},
		{"node-2-17-x7k2qa", "node", false}, // host node-2 is another machine
		{"node-2-17-x7k2qa", "node-2", true},
		{"node-17-x7k2qa/one-item", "node", true},
	} {
		f.Hold(registry.HoldWorker, tt.key)
		if got := f.Renewal(tt.worker, registry.Expand, 1).Held; got != tt.held {
			f.Errorf("worker %s under a hold on %s: renewal says %v", tt.worker, tt.key, got)
		}
		c, reason := f.asks(tt.worker, id)
		if got := reason == registry.ReasonHeld; got != tt.held {
			f.Errorf("worker %s under a hold on %s: claim says %q", tt.worker, tt.key, reason)
		}
		if reason == "" {
			f.Settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeReleased})
		}
		f.Release(registry.HoldWorker, tt.key)
		if f.Renewal(tt.worker, registry.Expand, 1).Held {
			f.Errorf("worker %s is still held", tt.worker)
		}
	}
}

func heldWorkerGoesOn(f *fixture) {
	id := f.Submit()
	c, _ := f.asks("worker-1", id)
	f.Hold(registry.HoldWorker, "worker-1")
	f.Clock.Pass(registrytest.Lease / 2)
	r := f.Renewal("worker-1", registry.Expand, 1, registrytest.Beat(c.Lease))
	if !r.Held || len(r.Lost) != 0 {
		f.Errorf("renewal %+v, want held and nothing lost", r)
	}
	if v := f.Done(c.Lease); v.Stage != registry.Report {
		f.Errorf("verdict %+v", v)
	}
}

func heldWorkerRepeat(f *fixture) {
	r := f.Request(registry.Expand, f.Submit())
	first, err := f.Store.Claim(f.Context(), r)
	f.Must(err)
	f.Hold(registry.HoldWorker, r.Worker)
	again, err := f.Store.Claim(f.Context(), r) // the answer was lost
	f.Must(err)
	if again.Lease != first.Lease {
		f.Errorf("lease %+v, want %+v", again.Lease, first.Lease)
	}
}

func heldWorkerWindow(f *fixture) {
	var ids []string
	for range 12 {
		ids = append(ids, f.Submit())
	}
	f.Renewal("host-1-aaaaaa", registry.Expand, 1)
	f.Renewal("other-1-aaaaaa", registry.Expand, 4)
	f.Hold(registry.HoldWorker, "other")
	if got := f.Offered(2); len(got) != 2 {
		f.Errorf("%d are due right after the hold, want 2 for the one slot that is left", len(got))
	}
	f.Renewal("other-1-aaaaaa", registry.Expand, 4)
	if got := f.Offered(2); len(got) != 0 {
		f.Errorf("%d more are due after a renewal of the held worker, want none", len(got))
	}
	q, err := f.Store.QueueStatus(f.Context())
	f.Must(err)
	if q.Stages[0].Capacity != 1 || q.Stages[0].Workers != 2 {
		f.Errorf("queue %+v, want one slot and two workers, one of which is held", q.Stages[0])
	}
	f.Release(registry.HoldWorker, "other")
	f.Renewal("other-1-aaaaaa", registry.Expand, 4)
	if got := f.Offered(2); len(got) != 8 {
		f.Errorf("%d more are due after the release, want 8 for its four slots", len(got))
	}
	q, err = f.Store.QueueStatus(f.Context())
	f.Must(err)
	if q.Stages[0].Capacity != 5 || int(q.Stages[0].Ready) != len(ids) {
		f.Errorf("queue %+v, want 5 slots and %d ready", q.Stages[0], len(ids))
	}
}
