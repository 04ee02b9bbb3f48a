package registrytest

import (
	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
)

func holdTests() []test {
	return []test{
		{"lock_collection", holdEachScope},
		{"lock_ingest", holdAll},
		{"two_holds_are_released_together", twoHolds},
		{"a_running_step_goes_on", holdWhileRunning},
		{"a_repeat_replaces_reason_and_actor", holdRepeated},
		{"what_is_no_hold", noHold},
	}
}

func (f *fixture) hold(scope registry.HoldScope, key string) {
	f.Helper()
	f.must(f.AddHold(f.Context(), registry.Hold{Scope: scope, Key: key, Reason: "look at it", Actor: "admin"}))
}

func (f *fixture) release(scope registry.HoldScope, key string) {
	f.Helper()
	f.must(f.RemoveHold(f.Context(), scope, key, "admin"))
}

func holdEachScope(f *fixture) {
	f.collection("other", registry.Profile{Storages: []string{"tape"}})
	batch, jobs := f.batch(2)
	apart := f.submit(func(s *registry.Submission) { s.Collection = "other" })
	stored := f.job(registry.Process)
	held := func(id string) bool { return f.item(id).State == registry.StateHeld }
	for _, tt := range []struct {
		scope registry.HoldScope
		key   string
		held  []string
		free  []string
	}{
		{registry.HoldAll, "", []string{batch, jobs[0], jobs[1], apart}, nil},
		{registry.HoldStage, "estimate", jobs, []string{batch, apart}},
		{registry.HoldCollection, mnemonic, []string{batch, jobs[0], jobs[1]}, []string{apart}},
		{registry.HoldCollection, "other", []string{apart}, []string{batch, jobs[0]}},
		{registry.HoldBatch, batch, []string{batch, jobs[0], jobs[1]}, []string{apart}},
		{registry.HoldItem, jobs[0], jobs[:1], []string{batch, jobs[1], apart}},
		{registry.HoldVolume, registry.DefaultStorage, []string{stored}, []string{batch, jobs[0], apart}},
		{registry.HoldVolume, "tape", nil, []string{batch, jobs[0], apart, stored}},
	} {
		f.hold(tt.scope, tt.key)
		for _, id := range tt.held {
			if !held(id) {
				f.Errorf("%s %s: %s is not held", tt.scope, tt.key, id)
			}
			if got := f.refusedOrOther(f.item(id).Stage, id); got != registry.ReasonHeld {
				f.Errorf("%s %s: claim of %s: %s, want held", tt.scope, tt.key, id, got)
			}
		}
		for _, id := range tt.free {
			if held(id) {
				f.Errorf("%s %s: %s is held", tt.scope, tt.key, id)
			}
		}
		f.release(tt.scope, tt.key)
		for _, id := range tt.held {
			if held(id) {
				f.Errorf("%s %s: %s is still held", tt.scope, tt.key, id)
			}
		}
	}
}

// refusedOrOther is the reason of a refusal; when the claim gives another item, that is put back and the hinted one
// counts as held.
func (f *fixture) refusedOrOther(stage registry.Stage, id string) registry.Reason {
	f.Helper()
	c, err := f.Claim(f.Context(), f.request(stage, id))
	if err == nil {
		f.settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeReleased})
		if c.Item.ID == id {
			return "claimed"
		}
		return registry.ReasonHeld
	}
	return f.refused(stage, id).Reason
}

func holdAll(f *fixture) {
	id := f.submit()
	f.hold(registry.HoldAll, "")
	if got := f.refused(registry.Expand, id).Reason; got != registry.ReasonHeld {
		f.Errorf("paused: %s", got)
	}
	later := f.submit() // submissions go on
	f.state(later, registry.StateHeld)
	f.release(registry.HoldAll, "")
	f.take(registry.Expand, id)
	f.take(registry.Expand, later)
}

func twoHolds(f *fixture) {
	id := f.submit()
	f.hold(registry.HoldCollection, mnemonic)
	f.hold(registry.HoldItem, id)
	f.release(registry.HoldCollection, mnemonic)
	f.state(id, registry.StateHeld)
	if got := f.offered(5); has(got, id) {
		f.Error("offered although another hold covers it")
	}
	f.release(registry.HoldItem, id)
	f.state(id, registry.StatePending)
	if got := f.offered(5); !has(got, id) {
		f.Errorf("due %v, want %s", got, id)
	}
}

func holdWhileRunning(f *fixture) {
	id := f.submit()
	l := f.take(registry.Expand, id).Lease
	f.hold(registry.HoldItem, id)
	f.state(id, registry.StateProcessing)
	if lost := f.renew(beat(l)); len(lost) != 0 {
		f.Errorf("lost %v", lost)
	}
	f.done(l)
	f.state(id, registry.StateHeld)
	if got := f.refused(registry.Report, id).Reason; got != registry.ReasonHeld {
		f.Errorf("the next step: %s", got)
	}
}

func holdRepeated(f *fixture) {
	f.hold(registry.HoldCollection, mnemonic)
	f.must(f.AddHold(f.Context(), registry.Hold{Scope: registry.HoldCollection, Key: mnemonic, Reason: "other", Actor: "boss"}))
	f.hold(registry.HoldAll, "")
	got, err := f.Holds(f.Context())
	f.must(err)
	want := []registry.Hold{
		{Scope: registry.HoldAll, Reason: "look at it", Actor: "admin", CreatedAt: f.clock.now()},
		{Scope: registry.HoldCollection, Key: mnemonic, Reason: "other", Actor: "boss", CreatedAt: f.clock.now()},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("holds (-want +got):\n%s", diff)
	}
}

func noHold(f *fixture) {
	f.is(f.RemoveHold(f.Context(), registry.HoldItem, "unknown", "admin"), registry.ErrNotFound)
	f.is(f.RemoveHold(f.Context(), registry.HoldItem, "a\x00\xff", "admin"), registry.ErrNotFound)
	for _, h := range []registry.Hold{
		{Scope: registry.HoldAll, Key: "x"},
		{Scope: registry.HoldItem},
		{Scope: "nonsense", Key: "x"},
		{},
		{Scope: registry.HoldItem, Key: "a\x00"},
		{Scope: registry.HoldItem, Key: "\xff"},
		{Scope: registry.HoldVolume},
		{Scope: registry.HoldWorker},
	} {
		if err := f.AddHold(f.Context(), h); err == nil {
			f.Errorf("hold %+v was taken", h)
		}
	}
	got, err := f.Holds(f.Context())
	f.must(err)
	if len(got) != 0 {
		f.Errorf("holds %+v", got)
	}
}
