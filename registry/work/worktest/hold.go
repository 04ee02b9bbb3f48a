package worktest

import (
	"errors"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func holdTests() tests {
	return tests{
		"lock_collection": holdEachScope,
		"lock_ingest":     holdAll,
		"a_pause_and_holds_on_collections_and_batches_are_about_deposits_alone": holdDeposits,
		"acts_on_many_items_are_carried_out_while_the_queue_is_paused":          actWhilePaused,
		"what_is_settled_cannot_be_held":                                        holdSettled,
		"two_holds_are_released_together":                                       twoHolds,
		"a_running_step_goes_on":                                                holdWhileRunning,
		"a_repeat_replaces_reason_and_actor":                                    holdRepeated,
		"what_is_no_hold":                                                       noHold,
	}
}

func holdEachScope(f *fixture) {
	f.Collection("other", registry.Profile{Storages: []string{"tape"}})
	batch, jobs := f.Batch(2)
	apart := f.Submit(func(s *registry.Submission) { s.Collection = "other" })
	stored := f.Job(registry.Process)
	held := func(id string) bool { return f.Item(id).State == registry.StateHeld }
	for _, tt := range []struct {
		scope registry.HoldScope
		key   string
		held  []string
		free  []string
	}{
		{registry.HoldAll, "", []string{batch, jobs[0], jobs[1], apart}, nil},
		{registry.HoldIngest, "", []string{batch, jobs[0], jobs[1], apart}, nil},
		{registry.HoldStage, "estimate", jobs, []string{batch, apart}},
		{registry.HoldCollection, registrytest.Mnemonic, []string{batch, jobs[0], jobs[1]}, []string{apart}},
		{registry.HoldCollection, "other", []string{apart}, []string{batch, jobs[0]}},
		{registry.HoldBatch, batch, []string{batch, jobs[0], jobs[1]}, []string{apart}},
		{registry.HoldItem, jobs[0], jobs[:1], []string{batch, jobs[1], apart}},
		{registry.HoldVolume, registry.DefaultStorage, []string{stored}, []string{batch, jobs[0], apart}},
		{registry.HoldVolume, "tape", nil, []string{batch, jobs[0], apart, stored}},
	} {
		f.Hold(tt.scope, tt.key)
		for _, id := range tt.held {
			if !held(id) {
				f.Errorf("%s %s: %s is not held", tt.scope, tt.key, id)
			}
			if got := f.refusedOrOther(f.Item(id).Stage, id); got != registry.ReasonHeld {
				f.Errorf("%s %s: claim of %s: %s, want held", tt.scope, tt.key, id, got)
			}
		}
		for _, id := range tt.free {
			if held(id) {
				f.Errorf("%s %s: %s is held", tt.scope, tt.key, id)
			}
		}
		f.Release(tt.scope, tt.key)
		for _, id := range tt.held {
			if held(id) {
				f.Errorf("%s %s: %s is still held", tt.scope, tt.key, id)
			}
		}
	}
}

// refusedOrOther returns the reason of a refusal. If the claim gives another item, it releases that
// one and treats the hinted item as held.
func (f *fixture) refusedOrOther(stage registry.Stage, id string) registry.Reason {
	f.Helper()
	c, err := f.Store.Claim(f.Context(), f.Request(stage, id))
	if err == nil {
		f.Settle(registry.Settlement{Lease: c.Lease, Outcome: registry.OutcomeReleased})
		if c.Item.ID == id {
			return "claimed"
		}
		return registry.ReasonHeld
	}
	return f.Refused(stage, id).Reason
}

func holdAll(f *fixture) {
	id := f.Submit()
	f.Hold(registry.HoldAll, "")
	if got := f.Refused(registry.Expand, id).Reason; got != registry.ReasonHeld {
		f.Errorf("paused: %s", got)
	}
	later := f.Submit() // submissions go on
	f.State(later, registry.StateHeld)
	f.Release(registry.HoldAll, "")
	f.Take(registry.Expand, id)
	f.Take(registry.Expand, later)
}

// duties makes an item of each kind that is no deposit and can wait under a hold.
func (f *fixture) duties() (ids []string) {
	f.Helper()
	for _, action := range registry.ObjectActions() {
		ids = append(ids, f.ItemAbout(action, f.Object()).ID)
	}
	given := f.Job(registry.Provision)
	ids = append(ids, f.Bulk(registry.ActCancel, "id:"+given).ID)
	f.Confirm(given, registry.ActAbort)
	ids = append(ids, f.TidyOf(given).ID)
	f.Clock.Pass(time.Hour)
	f.FailItem(f.JobWithCallback(registrytest.Receiver(), registry.Download), registry.SystemFault)
	return append(ids, f.DeliveryItems()[0].ID, f.Task(), f.ProcessStep())
}

// holdDeposits: holds on deposits do not stop other items; holds of their own do.
func holdDeposits(f *fixture) {
	ids := f.duties()
	batch := f.Submit()
	deposits := []registry.Hold{{Scope: registry.HoldIngest}, {Scope: registry.HoldCollection, Key: registrytest.Mnemonic}, {Scope: registry.HoldBatch, Key: batch}}
	for _, h := range deposits {
		f.Hold(h.Scope, h.Key)
		f.State(batch, registry.StateHeld)
	}
	seen := map[registry.Action]bool{}
	for _, id := range ids {
		it := f.Item(id)
		seen[it.Action] = true
		f.HeldBy(id, "", "")
		for _, h := range []registry.Hold{{Scope: registry.HoldAll}, {Scope: registry.HoldStage, Key: string(it.Stage)}, {Scope: registry.HoldItem, Key: id}} {
			f.Hold(h.Scope, h.Key)
			if got := f.refusedOrOther(it.Stage, id); got != registry.ReasonHeld {
				f.Errorf("%s under %s %s: claim: %s, want held", it.Action, h.Scope, h.Key, got)
			}
			f.Release(h.Scope, h.Key)
		}
		f.Take(it.Stage, id)
	}
	for _, r := range registry.Routes() {
		if !r.Deposit && !seen[r.Action] {
			f.Errorf("no item of action %s was tried", r.Action)
		}
	}
	if got := f.Refused(registry.Expand, batch).Reason; got != registry.ReasonHeld {
		f.Errorf("the batch: %s, want held", got)
	}
}

// actWhilePaused: an admin's act on many items, or on a batch and its jobs, is carried out during a
// pause.
func actWhilePaused(f *fixture) {
	_, jobs := f.Batch(2)
	gone, its := f.Batch(2)
	f.Hold(registry.HoldIngest, "")
	f.Hold(registry.HoldCollection, registrytest.Mnemonic)
	f.Apply(f.Bulk(registry.ActCancel, "id:"+jobs[0]).ID)
	f.State(jobs[0], registry.StateCancelled)
	f.State(jobs[1], registry.StateHeld)
	f.Confirm(gone, registry.ActAbort)
	f.CarriedOut()
	f.Confirm(gone, registry.ActDelete)
	f.CarriedOut()
	for _, id := range append(its, gone) {
		f.State(id, registry.StateDeleted)
	}
}

// holdSettled: a hold on a settled item is refused, as an act and as a scope, and leaves nothing.
func holdSettled(f *fixture) {
	batch, jobs := f.Batch(1)
	f.Finish(jobs[0])
	jobs = append(jobs, f.Job(registry.Download))
	f.Confirm(jobs[1], registry.ActCancel)
	f.Done(f.Take(registry.Report, batch).Lease)
	for _, h := range []registry.Hold{
		{Scope: registry.HoldItem, Key: jobs[0]},
		{Scope: registry.HoldItem, Key: jobs[1]},
		{Scope: registry.HoldBatch, Key: batch},
		{Scope: registry.HoldItem, Key: batch},
	} {
		h.Reason, h.Actor = "look", "admin"
		f.RefusedCommand(h.Key, registry.ActHold, "", f.Item(h.Key).State, f.Item(h.Key).State)
		var te *registry.TransitionError
		if err := f.Store.AddHold(f.Context(), h); !errors.As(err, &te) || te.ItemID != h.Key {
			f.Errorf("hold %s %s: %v, want a refused transition", h.Scope, h.Key, err)
		}
	}
	if all, err := f.Store.Holds(f.Context()); err != nil || len(all) != 0 {
		f.Errorf("holds %+v, %v", all, err)
	}
}

func twoHolds(f *fixture) {
	id := f.Submit()
	f.Hold(registry.HoldCollection, registrytest.Mnemonic)
	f.Hold(registry.HoldItem, id)
	f.Release(registry.HoldCollection, registrytest.Mnemonic)
	f.State(id, registry.StateHeld)
	if got := f.Offered(5); slices.Contains(got, id) {
		f.Error("offered although another hold covers it")
	}
	f.Release(registry.HoldItem, id)
	f.State(id, registry.StatePending)
	if got := f.Offered(5); !slices.Contains(got, id) {
		f.Errorf("due %v, want %s", got, id)
	}
}

func holdWhileRunning(f *fixture) {
	id := f.Submit()
	l := f.Take(registry.Expand, id).Lease
	f.Hold(registry.HoldItem, id)
	f.State(id, registry.StateProcessing)
	if lost := f.Renew(registrytest.Beat(l)); len(lost) != 0 {
		f.Errorf("lost %v", lost)
	}
	f.Done(l)
	f.State(id, registry.StateHeld)
	if got := f.Refused(registry.Report, id).Reason; got != registry.ReasonHeld {
		f.Errorf("the next step: %s", got)
	}
}

func holdRepeated(f *fixture) {
	f.Hold(registry.HoldCollection, registrytest.Mnemonic)
	f.Must(f.Store.AddHold(f.Context(), registry.Hold{Scope: registry.HoldCollection, Key: registrytest.Mnemonic, Reason: "other", Actor: "boss"}))
	f.Hold(registry.HoldAll, "")
	got, err := f.Store.Holds(f.Context())
	f.Must(err)
	want := []registry.Hold{
		{Scope: registry.HoldAll, Reason: "look at it", Actor: "admin", CreatedAt: f.Clock.Now()},
		{Scope: registry.HoldCollection, Key: registrytest.Mnemonic, Reason: "other", Actor: "boss", CreatedAt: f.Clock.Now()},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("holds (-want +got):\n%s", diff)
	}
}

func noHold(f *fixture) {
	f.Is(f.Store.RemoveHold(f.Context(), registry.HoldItem, "unknown", "admin"), registry.ErrNotFound)
	f.Is(f.Store.RemoveHold(f.Context(), registry.HoldItem, "a\x00\xff", "admin"), registry.ErrNotFound)
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
		if err := f.Store.AddHold(f.Context(), h); err == nil {
			f.Errorf("hold %+v was taken", h)
		}
	}
	got, err := f.Store.Holds(f.Context())
	f.Must(err)
	if len(got) != 0 {
		f.Errorf("holds %+v", got)
	}
}
