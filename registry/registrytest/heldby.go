package registrytest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast/holdfast/registry"
)

func heldByTests() []test {
	return []test{
		{"the_oldest_hold_is_named", oldestHold},
		{"an_item_runs_until_its_step_is_over", heldAfterRunning},
		{"a_settled_item_is_held_by_nothing", settledNotHeld},
		{"hold_after_Pending_at_every_stage", heldAtEveryStage},
		{"a_volume_holds_the_stages_that_write_to_it", volumeHeld},
		{"a_volume_holds_what_is_copied_to_it", otherStorageHeld},
		{"a_hold_on_the_collection_stops_a_batch_before_it_expands", heldBatch},
		{"a_hold_during_a_batch", heldDuringBatch},
		{"lists_and_claims_go_by_the_rule_of_Covers", sameRule},
	}
}

// heldBy checks which hold an item shows; scope "" for none.
func (f *fixture) heldBy(id string, scope registry.HoldScope, key string) {
	f.Helper()
	got := f.item(id).HeldBy
	switch {
	case scope == "" && got != nil:
		f.Errorf("held by %+v, want by nothing", *got)
	case scope != "" && got == nil:
		f.Errorf("held by nothing, want by %s %s", scope, key)
	case scope != "" && (got.Scope != scope || got.Key != key || got.Reason != "look at it" || got.Actor != "admin" || got.CreatedAt.IsZero()):
		f.Errorf("held by %+v, want by %s %s", *got, scope, key)
	}
}

func oldestHold(f *fixture) {
	batch, jobs := f.batch(2)
	f.heldBy(jobs[0], "", "")
	f.hold(registry.HoldItem, jobs[0])
	f.clock.pass(time.Second)
	f.hold(registry.HoldCollection, mnemonic)
	f.clock.pass(time.Second)
	f.hold(registry.HoldAll, "")
	f.heldBy(jobs[0], registry.HoldItem, jobs[0])
	f.heldBy(jobs[1], registry.HoldCollection, mnemonic)
	f.clock.pass(time.Second)
	f.hold(registry.HoldItem, jobs[0]) // a repeat is no younger hold
	f.heldBy(jobs[0], registry.HoldItem, jobs[0])
	listed := map[string]*registry.Hold{}
	for _, it := range f.all(registry.ItemQuery{}) {
		listed[it.ID] = it.HeldBy
	}
	for _, id := range append(jobs, batch) {
		if got, want := listed[id], f.item(id).HeldBy; got == nil || *got != *want {
			f.Errorf("the list shows %+v, the item %+v", got, want)
		}
	}
	f.release(registry.HoldItem, jobs[0])
	f.heldBy(jobs[0], registry.HoldCollection, mnemonic)
	f.release(registry.HoldCollection, mnemonic)
	f.heldBy(jobs[0], registry.HoldAll, "")
	f.release(registry.HoldAll, "")
	f.heldBy(jobs[0], "", "")
	f.state(jobs[0], registry.StatePending)
}

// heldAfterRunning: a running item shows the hold that will stop its next step.
func heldAfterRunning(f *fixture) {
	id := f.job(registry.Download)
	l := f.takeItem(id).Lease
	f.hold(registry.HoldStage, string(registry.Download))
	f.heldBy(id, "", "")
	f.hold(registry.HoldVolume, registry.DefaultStorage) // process, its next stage, writes there
	f.heldBy(id, registry.HoldVolume, registry.DefaultStorage)
	f.state(id, registry.StateDownloading)
	if lost := f.renew(beat(l)); len(lost) != 0 {
		f.Errorf("lost %v", lost)
	}
	if v := f.done(l); v.Stage != registry.Process || v.Status != registry.Pending {
		f.Errorf("verdict %+v", v)
	}
	f.state(id, registry.StateHeld)
	f.heldBy(id, registry.HoldVolume, registry.DefaultStorage)
}

func settledNotHeld(f *fixture) {
	failed, done := f.job(registry.Estimate), f.job(registry.Estimate)
	f.fail(failed, registry.SystemFault)
	f.finish(done)
	f.hold(registry.HoldAll, "")
	for _, id := range []string{failed, done} {
		f.heldBy(id, "", "")
	}
}

func heldAtEveryStage(f *fixture) {
	name := f.everyStep()
	_, jobs := f.batch(1, func(s *registry.Submission) { s.Collection = name })
	id := jobs[0]
	route, _ := f.item(id).Route()
	for _, step := range route.Steps {
		f.hold(registry.HoldCollection, name)
		f.state(id, registry.StateHeld)
		if got := f.refused(step.Stage, id).Reason; got != registry.ReasonHeld {
			f.Errorf("%s: claim: %s, want held", step.Stage, got)
		}
		f.release(registry.HoldCollection, name)
		if got := f.offered(5); !has(got, id) {
			f.Errorf("%s: due %v after the release, want %s", step.Stage, got, id)
		}
		c := f.take(step.Stage, id)
		f.hold(registry.HoldCollection, name) // while it runs
		f.done(c.Lease)
		want := registry.StateHeld
		if _, more := route.Next(step.Stage); !more {
			want = registry.StateCompleted
		}
		f.state(id, want)
		f.release(registry.HoldCollection, name)
	}
}

func volumeHeld(f *fixture) {
	f.collection("tapes", registry.Profile{Storages: []string{"tape"}})
	batch := f.submit(func(s *registry.Submission) { s.Collection = "tapes" })
	c := f.takeItem(batch)
	_, err := f.AddJobs(f.Context(), c.Lease, newJobs(1))
	f.must(err)
	f.done(c.Lease)
	onTape, onDisk := f.children(batch)[0], f.job(registry.Estimate)
	if a, b := f.item(onTape).Storages, f.item(onDisk).Storages; !slices.Equal(a, []string{"tape"}) || !slices.Equal(b, []string{registry.DefaultStorage}) {
		f.Errorf("volumes %q and %q", a, b)
	}
	route, _ := f.item(onTape).Route()
	for _, step := range route.Steps {
		f.bring(onTape, step.Stage)
		f.bring(onDisk, step.Stage)
		for _, tt := range []struct {
			volume       string
			tape, onDisk bool
		}{
			{"tape", step.Writes == registry.StorageVolume, false},
			{registry.DefaultStorage, false, step.Writes == registry.StorageVolume},
			{registry.DefaultStaging, step.Writes == registry.StagingVolume, step.Writes == registry.StagingVolume},
		} {
			f.hold(registry.HoldVolume, tt.volume)
			if got := f.item(onTape).HeldBy != nil; got != tt.tape {
				f.Errorf("%s, volume %s: the item for tape is held: %v, want %v", step.Stage, tt.volume, got, tt.tape)
			}
			if got := f.item(onDisk).HeldBy != nil; got != tt.onDisk {
				f.Errorf("%s, volume %s: the item for disk is held: %v, want %v", step.Stage, tt.volume, got, tt.onDisk)
			}
			f.release(registry.HoldVolume, tt.volume)
		}
	}
	if writes := slices.ContainsFunc(route.Steps, func(s registry.Step) bool { return s.Writes == registry.StorageVolume }); !writes {
		f.Error("no stage writes to storage")
	}
}

// otherStorageHeld: the first storage is held where the version is written, the others where it is copied; what waits goes on
// when the hold is gone.
func otherStorageHeld(f *fixture) {
	name := f.everyStep()
	_, jobs := f.batch(1, func(s *registry.Submission) { s.Collection = name })
	id := jobs[0]
	route, _ := f.item(id).Route()
	all := f.item(id).Storages
	for _, step := range route.Steps {
		f.bring(id, step.Stage)
		for i, volume := range all {
			want := step.Writes == registry.StorageVolume && i == 0 || step.Writes == registry.OtherStorages && i > 0 || step.Writes == registry.AllStorages
			f.hold(registry.HoldVolume, volume)
			if got := f.item(id).HeldBy != nil; got != want {
				f.Errorf("%s: a hold on storage %d of %v holds it: %v, want %v", step.Stage, i+1, all, got, want)
			}
			if want {
				if got := f.refused(step.Stage, id).Reason; got != registry.ReasonHeld {
					f.Errorf("%s: claim: %s, want held", step.Stage, got)
				}
			}
			f.release(registry.HoldVolume, volume)
			if got := f.take(step.Stage, id); got.Item.ID != id {
				f.Errorf("%s: after the release %s is claimed", step.Stage, got.Item.ID)
			} else {
				f.settle(registry.Settlement{Lease: got.Lease, Outcome: registry.OutcomeReleased})
			}
		}
	}
	if _, there := route.Step(registry.Replicate); !there || len(all) < 3 {
		f.Errorf("the route has no replicate, or the storages are only %v", all)
	}
}

func heldBatch(f *fixture) {
	f.hold(registry.HoldCollection, mnemonic)
	id := f.submit()
	f.state(id, registry.StateHeld)
	if got := f.refused(registry.Expand, id).Reason; got != registry.ReasonHeld {
		f.Errorf("claim: %s, want held", got)
	}
	if got := f.children(id); len(got) != 0 {
		f.Errorf("a held batch has jobs %v", got)
	}
	f.release(registry.HoldCollection, mnemonic)
	f.state(id, registry.StatePending)
	f.take(registry.Expand, id)
}

func heldDuringBatch(f *fixture) {
	batch, jobs := f.batch(3)
	f.finish(jobs[0])
	running := f.takeItem(jobs[1])
	f.hold(registry.HoldCollection, mnemonic)
	f.done(running.Lease)
	for _, id := range jobs[1:] {
		f.state(id, registry.StateHeld)
	}
	p, err := f.BatchProgress(f.Context(), batch)
	f.must(err)
	if !p.Held || p.Completed != 1 || p.States[registry.StateHeld] != 2 {
		f.Errorf("progress %+v, want 1 completed and all the rest held", p)
	}
	f.release(registry.HoldCollection, mnemonic)
	for _, id := range jobs[1:] {
		f.finish(id)
	}
	f.done(f.take(registry.Report, batch).Lease)
	f.state(batch, registry.StateCompleted)
}

// sameRule: whatever is held, what a list shows, what the queue counts and what a claim is refused for is what
// registry.Hold.Covers says.
func sameRule(f *fixture) {
	random := rand.New(rand.NewPCG(3, 1)) //nolint:gosec // a test that can be repeated
	f.collection("tapes", registry.Profile{Storages: []string{"tape", "cold"}})
	keys := map[registry.HoldScope][]string{
		registry.HoldAll: {""}, registry.HoldIngest: {""}, registry.HoldCollection: {mnemonic, "tapes", "none"}, registry.HoldWorker: {"worker-1"},
		registry.HoldVolume: {registry.DefaultStorage, registry.DefaultStaging, "tape", "cold", "col", "none"}, registry.HoldBatch: {"none"}, registry.HoldItem: {"none"},
	}
	for _, stage := range registry.Stages() {
		keys[registry.HoldStage] = append(keys[registry.HoldStage], string(stage))
	}
	for i, stage := range []registry.Stage{registry.Expand, registry.Estimate, registry.Provision, registry.Download, registry.Process, registry.Replicate, registry.Record, registry.Process, registry.Notify} {
		batch := f.submit(func(s *registry.Submission) { s.Collection = []string{mnemonic, "tapes"}[i%2] })
		keys[registry.HoldBatch] = append(keys[registry.HoldBatch], batch)
		keys[registry.HoldItem] = append(keys[registry.HoldItem], batch)
		if stage == registry.Expand {
			continue
		}
		c := f.takeItem(batch)
		_, err := f.AddJobs(f.Context(), c.Lease, newJobs(2))
		f.must(err)
		f.done(c.Lease)
		jobs := f.children(batch)
		for _, job := range jobs {
			f.bring(job, stage)
		}
		f.takeItem(jobs[1])
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
			f.clock.pass(time.Millisecond)
			f.hold(h.Scope, h.Key)
			holds = append(holds, h)
		}
		f.agrees(holds)
		for _, h := range holds {
			f.release(h.Scope, h.Key)
		}
	}
}

// agrees checks all items against holds, which stand in the order of their making.
func (f *fixture) agrees(holds []registry.Hold) {
	f.Helper()
	counted := map[registry.Stage]int64{}
	for _, it := range f.all(registry.ItemQuery{}) {
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
	q, err := f.QueueStatus(f.Context())
	f.must(err)
	for _, stage := range q.Stages {
		if stage.Held != counted[stage.Stage] {
			f.Errorf("the queue counts %d held at %s under %+v, want %d", stage.Held, stage.Stage, holds, counted[stage.Stage])
		}
	}
}
