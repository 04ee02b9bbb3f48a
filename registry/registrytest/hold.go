package registrytest

import (
	"errors"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
)

func holdTests() []test {
	return []test{
		{"lock_collection", holdEachScope},
		{"lock_ingest", holdAll},
		{"a_pause_and_holds_on_collections_and_batches_are_about_deposits_alone", holdDeposits},
		{"acts_on_many_items_are_carried_out_while_the_queue_is_paused", actWhilePaused},
		{"what_is_settled_cannot_be_held", holdSettled},
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
		{registry.HoldIngest, "", []string{batch, jobs[0], jobs[1], apart}, nil},
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

// duties makes an item of each kind that takes no deposit in, and that can wait under a hold.
func (f *fixture) duties() (ids []string) {
	f.Helper()
	for _, action := range registry.ObjectActions() {
		ids = append(ids, f.about(action, f.object()).ID)
	}
	given := f.job(registry.Provision)
	ids = append(ids, f.bulk(registry.ActCancel, "id:"+given).ID)
	f.sure(given, registry.ActAbort)
	ids = append(ids, f.tidyOf(given).ID)
	f.clock.pass(time.Hour)
	f.fail(f.toldJob(receiver(), registry.Download), registry.SystemFault)
	return append(ids, f.carriers()[0].ID)
}

// holdDeposits: what is no deposit starts under the holds of deposits, and is kept by those of its own.
func holdDeposits(f *fixture) {
	ids := f.duties()
	batch := f.submit()
	deposits := []registry.Hold{{Scope: registry.HoldIngest}, {Scope: registry.HoldCollection, Key: mnemonic}, {Scope: registry.HoldBatch, Key: batch}}
	for _, h := range deposits {
		f.hold(h.Scope, h.Key)
		f.state(batch, registry.StateHeld)
	}
	seen := map[registry.Action]bool{}
	for _, id := range ids {
		it := f.item(id)
		seen[it.Action] = true
		f.heldBy(id, "", "")
		for _, h := range []registry.Hold{{Scope: registry.HoldAll}, {Scope: registry.HoldStage, Key: string(it.Stage)}, {Scope: registry.HoldItem, Key: id}} {
			f.hold(h.Scope, h.Key)
			if got := f.refusedOrOther(it.Stage, id); got != registry.ReasonHeld {
				f.Errorf("%s under %s %s: claim: %s, want held", it.Action, h.Scope, h.Key, got)
			}
			f.release(h.Scope, h.Key)
		}
		f.take(it.Stage, id)
	}
	for _, r := range registry.Routes() {
		if !r.Deposit && !seen[r.Action] {
			f.Errorf("no item of action %s was tried", r.Action)
		}
	}
	if got := f.refused(registry.Expand, batch).Reason; got != registry.ReasonHeld {
		f.Errorf("the batch: %s, want held", got)
	}
}

// actWhilePaused: what an admin asks of many items, or of a batch with its jobs, comes true although nothing is taken in.
func actWhilePaused(f *fixture) {
	_, jobs := f.batch(2)
	gone, its := f.batch(2)
	f.hold(registry.HoldIngest, "")
	f.hold(registry.HoldCollection, mnemonic)
	f.apply(f.bulk(registry.ActCancel, "id:"+jobs[0]).ID)
	f.state(jobs[0], registry.StateCancelled)
	f.state(jobs[1], registry.StateHeld)
	f.sure(gone, registry.ActAbort)
	f.carriedOut()
	f.sure(gone, registry.ActDelete)
	f.carriedOut()
	for _, id := range append(its, gone) {
		f.state(id, registry.StateDeleted)
	}
}

// holdSettled: a hold is refused alike as an act and by its scope, and leaves nothing.
func holdSettled(f *fixture) {
	batch, jobs := f.batch(1)
	f.finish(jobs[0])
	jobs = append(jobs, f.job(registry.Download))
	f.sure(jobs[1], registry.ActCancel)
	f.done(f.take(registry.Report, batch).Lease)
	for _, h := range []registry.Hold{
		{Scope: registry.HoldItem, Key: jobs[0]},
		{Scope: registry.HoldItem, Key: jobs[1]},
		{Scope: registry.HoldBatch, Key: batch},
		{Scope: registry.HoldItem, Key: batch},
	} {
		h.Reason, h.Actor = "look", "admin"
		f.refusedCommand(h.Key, registry.ActHold, "", f.item(h.Key).State, f.item(h.Key).State)
		var te *registry.TransitionError
		if err := f.AddHold(f.Context(), h); !errors.As(err, &te) || te.ItemID != h.Key {
			f.Errorf("hold %s %s: %v, want a refused transition", h.Scope, h.Key, err)
		}
	}
	if all, err := f.Holds(f.Context()); err != nil || len(all) != 0 {
		f.Errorf("holds %+v, %v", all, err)
	}
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
		{Scope: registry.HoldIngest, Key: "x"},
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
