package worktest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func heldByTests() tests {
	return tests{
		"the_oldest_hold_is_named":                                 oldestHold,
		"an_item_runs_until_its_step_is_over":                      heldAfterRunning,
		"a_settled_item_is_held_by_nothing":                        settledNotHeld,
		"hold_after_Pending_at_every_stage":                        heldAtEveryStage,
		"a_volume_holds_the_stages_that_write_to_it":               volumeHeld,
		"a_volume_holds_what_is_copied_to_it":                      otherStorageHeld,
		"a_hold_on_the_collection_stops_a_batch_before_it_expands": heldBatch,
		"a_hold_during_a_batch":                                    heldDuringBatch,
		"lists_and_claims_go_by_the_rule_of_Covers":                sameRule,
	}
}

func oldestHold(f *fixture) {
	batch, jobs := f.Batch(2)
	f.HeldBy(jobs[0], "", "")
	f.Hold(registry.HoldItem, jobs[0])
	f.Clock.Pass(time.Second)
	f.Hold(registry.HoldCollection, registrytest.Mnemonic)
	f.Clock.Pass(time.Second)
	f.Hold(registry.HoldAll, "")
	f.HeldBy(jobs[0], registry.HoldItem, jobs[0])
	f.HeldBy(jobs[1], registry.HoldCollection, registrytest.Mnemonic)
	f.Clock.Pass(time.Second)
	f.Hold(registry.HoldItem, jobs[0]) // a repeat is no younger hold
	f.HeldBy(jobs[0], registry.HoldItem, jobs[0])
	listed := map[string]*registry.Hold{}
	for _, it := range f.All(registry.ItemQuery{}) {
		listed[it.ID] = it.HeldBy
	}
	for _, id := range append(jobs, batch) {
		if got, want := listed[id], f.Item(id).HeldBy; got == nil || *got != *want {
			f.Errorf("the list shows %+v, the item %+v", got, want)
		}
	}
	f.Release(registry.HoldItem, jobs[0])
	f.HeldBy(jobs[0], registry.HoldCollection, registrytest.Mnemonic)
	f.Release(registry.HoldCollection, registrytest.Mnemonic)
	f.HeldBy(jobs[0], registry.HoldAll, "")
	f.Release(registry.HoldAll, "")
	f.HeldBy(jobs[0], "", "")
	f.State(jobs[0], registry.StatePending)
}

// heldAfterRunning: a running item shows the hold that will stop its next step.
func heldAfterRunning(f *fixture) {
	id := f.Job(registry.Download)
	l := f.TakeItem(id).Lease
	f.Hold(registry.HoldStage, string(registry.Download))
	f.HeldBy(id, "", "")
	f.Hold(registry.HoldVolume, registry.DefaultStorage) // process, its next stage, writes there
	f.HeldBy(id, registry.HoldVolume, registry.DefaultStorage)
	f.State(id, registry.StateDownloading)
	if lost := f.Renew(registrytest.Beat(l)); len(lost) != 0 {
		f.Errorf("lost %v", lost)
	}
	if v := f.Done(l); v.Stage != registry.Process || v.Status != registry.Pending {
		f.Errorf("verdict %+v", v)
	}
	f.State(id, registry.StateHeld)
	f.HeldBy(id, registry.HoldVolume, registry.DefaultStorage)
}

func settledNotHeld(f *fixture) {
	failed, done := f.Job(registry.Estimate), f.Job(registry.Estimate)
	f.FailItem(failed, registry.SystemFault)
	f.Finish(done)
	f.Hold(registry.HoldAll, "")
	for _, id := range []string{failed, done} {
		f.HeldBy(id, "", "")
	}
}

func heldAtEveryStage(f *fixture) {
	name := f.EveryStep()
	_, jobs := f.Batch(1, func(s *registry.Submission) { s.Collection = name })
	id := jobs[0]
	route, _ := f.Item(id).Route()
	for _, step := range route.Steps {
		f.Hold(registry.HoldCollection, name)
		f.State(id, registry.StateHeld)
		if got := f.Refused(step.Stage, id).Reason; got != registry.ReasonHeld {
			f.Errorf("%s: claim: %s, want held", step.Stage, got)
		}
		f.Release(registry.HoldCollection, name)
		if got := f.Offered(5); !slices.Contains(got, id) {
			f.Errorf("%s: due %v after the release, want %s", step.Stage, got, id)
		}
		c := f.Take(step.Stage, id)
		f.Hold(registry.HoldCollection, name) // while it runs
		f.Done(c.Lease)
		want := registry.StateHeld
		if _, more := route.Next(step.Stage); !more {
			want = registry.StateCompleted
		}
		f.State(id, want)
		f.Release(registry.HoldCollection, name)
	}
}

func volumeHeld(f *fixture) {
	f.Collection("tapes", registry.Profile{Storages: []string{"tape"}})
	batch := f.Submit(func(s *registry.Submission) { s.Collection = "tapes" })
	c := f.TakeItem(batch)
	_, err := f.Store.AddJobs(f.Context(), c.Lease, registrytest.NewJobs(1))
	f.Must(err)
	f.Done(c.Lease)
	onTape, onDisk := f.Children(batch)[0], f.Job(registry.Estimate)
	if a, b := f.Item(onTape).Storages, f.Item(onDisk).Storages; !slices.Equal(a, []string{"tape"}) || !slices.Equal(b, []string{registry.DefaultStorage}) {
		f.Errorf("volumes %q and %q", a, b)
	}
	route, _ := f.Item(onTape).Route()
	for _, step := range route.Steps {
		f.Bring(onTape, step.Stage)
		f.Bring(onDisk, step.Stage)
		for _, tt := range []struct {
			volume       string
			tape, onDisk bool
		}{
			{"tape", step.Writes == registry.StorageVolume, false},
			{registry.DefaultStorage, false, step.Writes == registry.StorageVolume},
			{registry.DefaultStaging, step.Writes == registry.StagingVolume, step.Writes == registry.StagingVolume},
		} {
			f.Hold(registry.HoldVolume, tt.volume)
			if got := f.Item(onTape).HeldBy != nil; got != tt.tape {
				f.Errorf("%s, volume %s: the item for tape is held: %v, want %v", step.Stage, tt.volume, got, tt.tape)
			}
			if got := f.Item(onDisk).HeldBy != nil; got != tt.onDisk {
				f.Errorf("%s, volume %s: the item for disk is held: %v, want %v", step.Stage, tt.volume, got, tt.onDisk)
			}
			f.Release(registry.HoldVolume, tt.volume)
		}
	}
	if writes := slices.ContainsFunc(route.Steps, func(s registry.Step) bool { return s.Writes == registry.StorageVolume }); !writes {
		f.Error("no stage writes to storage")
	}
}

// otherStorageHeld: a hold on the first storage stops where the version is written, one on another
// storage where it is copied. The items continue when the hold is released.
func otherStorageHeld(f *fixture) {
	name := f.EveryStep()
	_, jobs := f.Batch(1, func(s *registry.Submission) { s.Collection = name })
	id := jobs[0]
	route, _ := f.Item(id).Route()
	all := f.Item(id).Storages
	for _, step := range route.Steps {
		f.Bring(id, step.Stage)
		for i, volume := range all {
			want := step.Writes == registry.StorageVolume && i == 0 || step.Writes == registry.OtherStorages && i > 0 || step.Writes == registry.AllStorages
			f.Hold(registry.HoldVolume, volume)
			if got := f.Item(id).HeldBy != nil; got != want {
				f.Errorf("%s: a hold on storage %d of %v holds it: %v, want %v", step.Stage, i+1, all, got, want)
			}
			if want {
				if got := f.Refused(step.Stage, id).Reason; got != registry.ReasonHeld {
					f.Errorf("%s: claim: %s, want held", step.Stage, got)
				}
			}
			f.Release(registry.HoldVolume, volume)
			if got := f.Take(step.Stage, id); got.Item.ID != id {
				f.Errorf("%s: after the release %s is claimed", step.Stage, got.Item.ID)
			} else {
				f.Settle(registry.Settlement{Lease: got.Lease, Outcome: registry.OutcomeReleased})
			}
		}
	}
	if _, there := route.Step(registry.Replicate); !there || len(all) < 3 {
		f.Errorf("the route has no replicate, or the storages are only %v", all)
	}
}

func heldBatch(f *fixture) {
	f.Hold(registry.HoldCollection, registrytest.Mnemonic)
	id := f.Submit()
	f.State(id, registry.StateHeld)
	if got := f.Refused(registry.Expand, id).Reason; got != registry.ReasonHeld {
		f.Errorf("claim: %s, want held", got)
	}
	if got := f.Children(id); len(got) != 0 {
		f.Errorf("a held batch has jobs %v", got)
	}
	f.Release(registry.HoldCollection, registrytest.Mnemonic)
	f.State(id, registry.StatePending)
	f.Take(registry.Expand, id)
}

func heldDuringBatch(f *fixture) {
	batch, jobs := f.Batch(3)
	f.Finish(jobs[0])
	running := f.TakeItem(jobs[1])
	f.Hold(registry.HoldCollection, registrytest.Mnemonic)
	f.Done(running.Lease)
	for _, id := range jobs[1:] {
		f.State(id, registry.StateHeld)
	}
	p, err := f.Store.BatchProgress(f.Context(), batch)
	f.Must(err)
	if !p.Held || p.Completed != 1 || p.States[registry.StateHeld] != 2 {
		f.Errorf("progress %+v, want 1 completed and all the rest held", p)
	}
	f.Release(registry.HoldCollection, registrytest.Mnemonic)
	for _, id := range jobs[1:] {
		f.Finish(id)
	}
	f.Done(f.Take(registry.Report, batch).Lease)
	f.State(batch, registry.StateCompleted)
}

// sameRule: lists, the queue's counts and refused claims agree with registry.Hold.Covers for every
// hold.
func sameRule(f *fixture) {
	random := rand.New(rand.NewPCG(3, 1)) //nolint:gosec // a test that can be repeated
	f.Collection("tapes", registry.Profile{Storages: []string{"tape", "cold"}})
	keys := map[registry.HoldScope][]string{
		registry.HoldAll: {""}, registry.HoldIngest: {""}, registry.HoldCollection: {registrytest.Mnemonic, "tapes", "none"}, registry.HoldWorker: {"worker-1"},
		registry.HoldVolume: {registry.DefaultStorage, registry.DefaultStaging, "tape", "cold", "col", "none"}, registry.HoldBatch: {"none"}, registry.HoldItem: {"none"},
	}
	for _, stage := range registry.Stages() {
		keys[registry.HoldStage] = append(keys[registry.HoldStage], string(stage))
	}
	for i, stage := range []registry.Stage{registry.Expand, registry.Estimate, registry.Provision, registry.Download, registry.Process, registry.Replicate, registry.Record, registry.Process, registry.Notify} {
		batch := f.Submit(func(s *registry.Submission) { s.Collection = []string{registrytest.Mnemonic, "tapes"}[i%2] })
		keys[registry.HoldBatch] = append(keys[registry.HoldBatch], batch)
		keys[registry.HoldItem] = append(keys[registry.HoldItem], batch)
		if stage == registry.Expand {
			continue
		}
		c := f.TakeItem(batch)
		_, err := f.Store.AddJobs(f.Context(), c.Lease, registrytest.NewJobs(2))
		f.Must(err)
		f.Done(c.Lease)
		jobs := f.Children(batch)
		for _, job := range jobs {
			f.Bring(job, stage)
		}
		f.TakeItem(jobs[1])
		keys[registry.HoldItem] = append(keys[registry.HoldItem], jobs...)
	}
	keys[registry.HoldItem] = append(keys[registry.HoldItem], f.duties()...)
	scopes := registry.HoldScopes()
	for range 80 {
		var holds []registry.Hold
		for range 1 + random.IntN(3) {
			h := registry.Hold{Scope: scopes[random.IntN(len(scopes))]}
			h.Key = keys[h.Scope][random.IntN(len(keys[h.Scope]))]
			if slices.ContainsFunc(holds, func(o registry.Hold) bool { return o.Scope == h.Scope && o.Key == h.Key }) {
				continue
			}
			f.Clock.Pass(time.Millisecond)
			f.Hold(h.Scope, h.Key)
			holds = append(holds, h)
		}
		f.agrees(holds)
		for _, h := range holds {
			f.Release(h.Scope, h.Key)
		}
	}
}

// agrees checks all items against holds, which are in the order of their creation.
func (f *fixture) agrees(holds []registry.Hold) {
	f.Helper()
	counted := map[registry.Stage]int64{}
	for _, it := range f.All(registry.ItemQuery{}) {
		want := slices.IndexFunc(holds, func(h registry.Hold) bool { return h.Covers(it) })
		what := fmt.Sprintf("item at %s %s of %s under %+v", it.Stage, it.Status, it.Collection, holds)
		switch {
		case want < 0 && it.HeldBy != nil:
			f.Errorf("%s: held by %+v, want by nothing", what, *it.HeldBy)
		case want >= 0 && (it.HeldBy == nil || it.HeldBy.Scope != holds[want].Scope || it.HeldBy.Key != holds[want].Key):
			f.Errorf("%s: held by %+v, want by %+v", what, it.HeldBy, holds[want])
		}
		if it.Status == registry.Pending && want >= 0 {
			counted[it.Stage]++
		}
		if it.Status == registry.Pending && (it.State == registry.StateHeld) != (want >= 0) {
			f.Errorf("%s: state %s", what, it.State)
		}
	}
	q, err := f.Store.QueueStatus(f.Context())
	f.Must(err)
	for _, stage := range q.Stages {
		if stage.Held != counted[stage.Stage] {
			f.Errorf("the queue counts %d held at %s under %+v, want %d", stage.Held, stage.Stage, holds, counted[stage.Stage])
		}
	}
}
