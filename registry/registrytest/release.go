package registrytest

import (
	"slices"
	"strings"
	"time"

	"github.com/holdfast/holdfast/registry"
)

func releaseTests() []test {
	return []test{
		{"a_collection_goes_all_at_once", releaseAllAtOnce},
		{"a_collection_goes_one_by_one", releaseOneByOne},
		{"one_by_one_only_what_this_hold_alone_covered", releaseOneByOneAlone},
		{"while_another_hold_covers", releaseWhileHeld},
		{"the_setting_counts_at_the_release", releaseSetting},
	}
}

// oneByOne makes a collection that releases one by one, with a batch of two jobs.
func (f *fixture) oneByOne() (name, batch string, jobs []string) {
	f.Helper()
	name = "careful"
	f.collection(name, registry.Profile{Owner: owner, ReleaseOneByOne: true})
	batch = f.submit(func(s *registry.Submission) { s.Collection = name })
	c := f.takeItem(batch)
	_, err := f.AddJobs(f.Context(), c.Lease, newJobs(2))
	f.must(err)
	f.done(c.Lease)
	return name, batch, f.children(batch)
}

func releaseAllAtOnce(f *fixture) {
	batch, jobs := f.batch(3)
	f.hold(registry.HoldCollection, mnemonic)
	f.release(registry.HoldCollection, mnemonic)
	for _, id := range append(jobs, batch) {
		f.heldBy(id, "", "")
	}
	if got := f.offered(5); len(got) != 3 {
		f.Errorf("due %v, want the three jobs", got)
	}
}

func releaseOneByOne(f *fixture) {
	name, batch, jobs := f.oneByOne()
	apart := f.submit()
	pending := f.submit(func(s *registry.Submission) { s.Collection = name })
	running := f.takeItem(jobs[0])
	f.hold(registry.HoldCollection, name)
	since := f.clock.now()
	f.clock.pass(time.Hour)
	f.must(f.RemoveHold(f.Context(), registry.HoldCollection, name, "boss"))

	for _, id := range []string{batch, jobs[1], pending} {
		h := f.item(id).HeldBy
		if h == nil || h.Scope != registry.HoldItem || h.Key != id || h.Actor != "admin" || !h.CreatedAt.Equal(since) ||
			!strings.Contains(h.Reason, "one by one") || !strings.Contains(h.Reason, "look at it") {
			f.Errorf("%s is held by %+v, want by a hold of its own with actor, reason and time of the collection's", id, h)
		}
	}
	f.heldBy(apart, "", "")
	f.heldBy(jobs[0], "", "") // it ran
	f.done(running.Lease)
	f.state(jobs[0], registry.StateProvisioning)
	if got := f.offered(5); slices.Contains(got, jobs[1]) || slices.Contains(got, pending) {
		f.Errorf("due %v: what is released one by one was rung for", got)
	}
	later := f.submit(func(s *registry.Submission) { s.Collection = name })
	f.heldBy(later, "", "")

	f.release(registry.HoldItem, jobs[1])
	f.state(jobs[1], registry.StatePending)
	f.state(pending, registry.StateHeld)
	f.takeItem(jobs[1])
	f.release(registry.HoldItem, pending)
	f.command(batch, registry.ActUnhold, "")
	got, err := f.Holds(f.Context())
	f.must(err)
	if len(got) != 0 {
		f.Errorf("holds %+v are left", got)
	}
}

func releaseOneByOneAlone(f *fixture) {
	name, batch, jobs := f.oneByOne()
	f.hold(registry.HoldItem, jobs[0])
	f.hold(registry.HoldCollection, name)
	f.hold(registry.HoldStage, string(registry.Report)) // where the batch stands
	f.release(registry.HoldCollection, name)
	got, err := f.Holds(f.Context())
	f.must(err)
	var keys []string
	for _, h := range got {
		keys = append(keys, string(h.Scope)+" "+h.Key)
	}
	want := []string{"item " + jobs[0], "item " + jobs[1], "stage report"}
	slices.Sort(keys)
	slices.Sort(want)
	if !slices.Equal(keys, want) {
		f.Errorf("holds %v, want %v: only the second job was covered by the collection's alone", keys, want)
	}
	f.heldBy(jobs[0], registry.HoldItem, jobs[0])
	f.heldBy(batch, registry.HoldStage, string(registry.Report))
	f.release(registry.HoldStage, string(registry.Report))
	f.heldBy(batch, "", "")
}

func releaseWhileHeld(f *fixture) {
	batch, jobs := f.batch(2)
	f.hold(registry.HoldCollection, mnemonic)
	f.hold(registry.HoldBatch, batch)
	f.offered(5)
	f.release(registry.HoldCollection, mnemonic)
	for _, id := range jobs {
		f.state(id, registry.StateHeld)
		if got := f.refused(registry.Estimate, id).Reason; got != registry.ReasonHeld {
			f.Errorf("claim: %s, want held", got)
		}
	}
	if got := f.offered(5); len(got) != 0 {
		f.Errorf("due %v although the batch is held", got)
	}
	f.release(registry.HoldBatch, batch)
	if got := f.offered(5); !slices.Equal(got, jobs) {
		f.Errorf("due %v, want %v", got, jobs)
	}
}

func releaseSetting(f *fixture) {
	name, _, jobs := f.oneByOne()
	f.hold(registry.HoldCollection, name)
	f.collection(name, registry.Profile{Owner: owner})
	f.release(registry.HoldCollection, name)
	f.heldBy(jobs[0], "", "")
}
